"""The package as users install it: a wheel, built from this repository like `make wheel`."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tests import ROOT


def build(
    target: str, folder: Path, *, root: Path = ROOT, environment: Mapping[str, str] | None = None
) -> tuple[Path, str]:
    """Build a `wheel` or an `sdist` of sources into a folder. Return it with the output of the build."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    given = {**os.environ, **(environment or {})}
    built = subprocess.run(command, cwd=root, env=given, capture_output=True, text=True, check=False)
    if built.returncode:
        raise BuildFailed(built.stdout + built.stderr)
    (made,) = folder.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return made, built.stdout + built.stderr


class BuildFailed(Exception):
    """A build failed. The message is its output."""


def unpacked(folder: Path) -> Path:
    """Build a wheel with the bundled console, and return a folder from which Python can import it."""
    wheel, _ = build("wheel", folder / "built", environment={"FOREWARN_CONSOLE": "bundled"})
    place = folder / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    return place
