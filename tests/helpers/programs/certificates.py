"""Self-signed certificates for 127.0.0.1, made by openssl."""

import shutil
import subprocess
from pathlib import Path

import pytest

from forewarn.server.threads.operator_server import Tls


def made(folder: Path) -> Tls:
    """Create a certificate and its key in a folder, and replace existing ones."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes certificates, is not installed")
    tls = Tls(certificate=str(folder / "cert.pem"), key=str(folder / "key.pem"))
    command = ["openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    more = ["-subj", "/CN=127.0.0.1", "-days", "1", "-keyout", tls.key, "-out", tls.certificate]
    subprocess.run([*command, *more], check=True, capture_output=True)
    return tls
