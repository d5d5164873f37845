"""The version of forewarn: a release, or the commit that it was built from.

The build backend calls `built_version` and writes the result into the metadata of the package, so an
installed wheel needs no git. A checkout asks git, because its commit changes after the installation.
"""

import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path

# The current or next release. A commit with the tag `v0.1.0` is that release.
RELEASE = "0.1.0"
# Digits of an abbreviated commit.
_DIGITS = 8
# git answers in milliseconds. A repository on a network disk that hangs must not block a command.
_TIMEOUT = 5.0


@cache
def version() -> str:
    """Return the running version: `0.1.0`, or between releases `0.1.0.dev0+gc6e952f5`."""
    return _version_of_checkout() or metadata.version("forewarn")


def built_version() -> str:
    """Return the version of a package that is being built; without git this is the release."""
    return _version_of_checkout() or RELEASE


def _version_of_checkout() -> str | None:
    """Return the version of the checkout with this file; None if there is none or git fails."""
    checkout = Path(__file__).resolve().parents[2]
    project = checkout / "pyproject.toml"
    # A repository of another project may contain forewarn, for example in a virtual environment.
    if not (
        (checkout / ".git").exists() and project.is_file() and 'name = "forewarn"' in project.read_text()
    ):
        return None
    tag = f"v{RELEASE}"
    options = ["--tags", "--match", tag, "--always", "--long", f"--abbrev={_DIGITS}", "--dirty=.dirty"]
    try:
        # Without locks, because another git process may be running.
        described = subprocess.run(  # noqa: S603 - all words are constants
            ["git", "--no-optional-locks", "describe", *options],  # noqa: S607 - found in PATH
            cwd=checkout,
            capture_output=True,
            text=True,
            check=True,
            timeout=_TIMEOUT,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
    *tagged, commit = described.removeprefix(f"{tag}-").split("-")
    is_release = tagged == ["0"] and not commit.endswith(".dirty")
    return RELEASE if is_release else f"{RELEASE}.dev0+g{commit.removeprefix('g')}"
