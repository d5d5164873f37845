"""Bundle the console with esbuild; hatchling runs this hook when it builds a wheel or a source archive.

A wheel contains the page as one module and one stylesheet, both minified. A source archive contains the
bundle beside the plain files, so building a wheel from it needs no npm. A clone serves the plain files.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WEB = "src/forewarn/console/web"
# Where the page lies in a wheel, and the bundle in a source archive.
IN_WHEEL = "forewarn/console/web"
IN_ARCHIVE = "packaging/console"
# Set to `bundled`, it makes a build fail that cannot bundle; `make wheel` does.
WANTED = "FOREWARN_CONSOLE"
# A registry that does not answer must not hang `pip install`.
NPM_PATIENCE = 120.0
NEXT_STEP = "install Node.js with npm, or build with `make wheel`"


class NotBundled(Exception):
    """The bundle cannot be made here."""


class ConsoleBundle(BuildHookInterface):
    """Puts the console into what is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the bundle; if it cannot be made, warn and let a wheel have the plain files."""
        if version == "editable":
            return
        self._made = tempfile.TemporaryDirectory(prefix="forewarn-console-")
        root, is_wheel = Path(self.root), self.target_name == "wheel"
        try:
            folder = _bundle(root, Path(self._made.name))
        except NotBundled as error:
            if os.environ.get(WANTED) == "bundled":
                raise RuntimeError(f"the console cannot be bundled: {error}; {NEXT_STEP}") from error
            self.app.display_warning(f"The console is not bundled: {error}; {NEXT_STEP}")
            files = _plain(root) if is_wheel else {}
        else:
            files = _named(folder, IN_WHEEL if is_wheel else IN_ARCHIVE)
        build_data["force_include"].update(files)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete the bundle, which is in the artifact now."""
        if version != "editable":
            self._made.cleanup()


def _bundle(root: Path, made: Path) -> Path:
    """Return the folder of the bundle: that of the source archive if this is one, else one made now."""
    shipped = root / IN_ARCHIVE
    if shipped.is_dir():
        return shipped
    esbuild, out = _esbuild(root, made), made / "out"
    for path, content in _web_files(root).served(root / WEB).items():
        if not path.endswith(".js"):
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            (out / path).write_bytes(content)
    web = root / WEB
    _run([esbuild, "app.js", "--bundle", "--format=esm", f"--outfile={out / 'app.js'}"], folder=web)
    _run([esbuild, "app.css", "--allow-overwrite", "--outfile=app.css"], folder=out)
    return out


def _run(command: list[str], *, folder: Path) -> None:
    subprocess.run([*command, "--minify", "--charset=utf8", "--log-level=warning"], cwd=folder, check=True)


def _web_files(root: Path) -> Any:
    """Import what reads the page's files; it needs nothing but Python."""
    sys.path.insert(0, str(root / "src"))
    from forewarn.console import web_files

    return web_files


def _plain(root: Path) -> dict[str, str]:
    served = _web_files(root).MEDIA_TYPES
    return {
        path: place for path, place in _named(root / WEB, IN_WHEEL).items() if Path(path).suffix in served
    }


def _named(folder: Path, place: str) -> dict[str, str]:
    """Say where in the artifact each file of a folder goes."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): f"{place}/{path.relative_to(folder).as_posix()}" for path in files}


def _esbuild(root: Path, made: Path) -> str:
    """Return the path of esbuild: as `make` has installed it, else installed now with npm."""
    wanted = json.loads((root / "package.json").read_text())["devDependencies"]["esbuild"]
    if found := _installed(root):
        return found
    npm = shutil.which("npm")
    if npm is None:
        raise NotBundled("esbuild is not in node_modules, and npm is not installed")
    quiet = ["--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    command = [npm, "install", "--prefix", str(made), *quiet, "--fetch-retries=0", f"esbuild@{wanted}"]
    try:
        subprocess.run(command, cwd=made, check=True, capture_output=True, text=True, timeout=NPM_PATIENCE)
    except subprocess.CalledProcessError as error:
        why = error.stderr.strip().partition("\n")[0]
        raise NotBundled(f"npm could not install esbuild {wanted}: {why}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotBundled(f"npm could not install esbuild {wanted}: {error}") from error
    if found := _installed(made):
        return found
    raise NotBundled(f"esbuild {wanted} has no program for this platform")


def _installed(folder: Path) -> str | None:
    """Return the program in the platform package that npm installs beside `esbuild`; it needs no Node.js."""
    return next((str(path) for path in folder.glob("node_modules/@esbuild/*/bin/esbuild")), None)
