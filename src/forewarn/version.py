"""Which forewarn this is: a release, or the commit that it was built from.

The build backend calls `built_version` and writes the answer into the metadata of the package, so an
installed wheel needs no git. A checkout asks git, for its commit changes after it was installed.
"""

import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path

# The release that this code is, or becomes. A commit with the tag `v0.1.0` is that release.
RELEASE = "0.1.0"
# So many digits of a commit name it.
_DIGITS = 8
# git answers in milliseconds; a repository on a network disk that hangs must not hang a command.
_PATIENCE = 5.0


@cache
def version() -> str:
    """Return the version that runs: `0.1.0`, or between releases `0.1.0.dev0+gc6e952f5`."""
    checkout = _checkout()
    described = None if checkout is None else _described(checkout)
    return metadata.version("forewarn") if described is None else described


def built_version() -> str:
    """Return the version of a package that is being built here; of sources without git, the release."""
    checkout = _checkout()
    described = None if checkout is None else _described(checkout)
    return RELEASE if described is None else described


def _checkout() -> Path | None:
    """Return the folder of the checkout that this file is in; a repository that only contains it is none."""
    folder = Path(__file__).resolve().parents[2]
    project = folder / "pyproject.toml"
    is_ours = (folder / ".git").exists() and project.is_file() and 'name = "forewarn"' in project.read_text()
    return folder if is_ours else None


def _described(checkout: Path) -> str | None:
    """Return the version of a commit; None if git cannot say."""
    tag = f"v{RELEASE}"
    words = [
        "describe",
        "--tags",
        "--match",
        tag,
        "--always",
        "--long",
        f"--abbrev={_DIGITS}",
        "--dirty=.dirty",
    ]
    try:
        # Without locks: another git may be at work here.
        said = subprocess.run(  # noqa: S603 - all words are constants
            ["git", "--no-optional-locks", *words],  # noqa: S607 - wherever it is
            cwd=checkout,
            capture_output=True,
            text=True,
            check=True,
            timeout=_PATIENCE,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
    *tagged, commit = said.removeprefix(f"{tag}-").split("-")
    is_release = tagged == ["0"] and not commit.endswith(".dirty")
    return RELEASE if is_release else f"{RELEASE}.dev0+g{commit.removeprefix('g')}"
