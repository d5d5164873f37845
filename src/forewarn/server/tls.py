"""TLS for the operator API: a certificate and its key, tried before anything is started."""

import ssl
from dataclasses import dataclass

from forewarn.config import OperatorSettings
from forewarn.core.errors import Invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Two files, in PEM; the first may hold the certificates that lead to the root too."""

    certificate: str
    key: str


def tls_of(settings: OperatorSettings) -> Tls | None:
    """Take what is set, if it can be used; None if TLS is not wanted."""
    certificate, key = settings.certificate, settings.key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise Invalid("[operator] certificate and key: expected both or neither")
    try:
        # A key with a passphrase would have OpenSSL ask at the terminal, where no person may be.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except OSError as error:  # what ssl raises is one too
        reason = error.strerror if type(error) is not ssl.SSLError and error.strerror else error
        raise Invalid(
            f"[operator] certificate {certificate} and key {key} cannot be used: {reason}"
        ) from None
    return Tls(certificate=certificate, key=key)
