"""The package as users install it."""

import shutil
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from forewarn.agent.setup import recipe
from forewarn.cli.commands.unit_commands import UNITS
from forewarn.console import web_files
from forewarn.version import built_version
from tests.helpers.programs import wheels
from tests.helpers.programs.wheels import ROOT, BuildFailed

PAGE = "forewarn/console/web/"
# An environment without Node.js. Only git is there, which gives the version.
WITHOUT_NPM = {"PATH": "/nonexistent"}


def page_in(wheel: Path) -> Mapping[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(PAGE)]
        return {name.removeprefix(PAGE): archive.read(name) for name in names}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the sources in git, without the files that `make` has installed."""
    folder = tmp_path_factory.mktemp("clone") / "forewarn"
    ignored = shutil.ignore_patterns(".git", ".venv", "node_modules", "dist", "tests", "docs", "__pycache__")
    shutil.copytree(ROOT, folder, symlinks=True, ignore=ignored)
    return folder


def test_the_package_has_recipes_units_and_the_bundled_console(tmp_path: Path) -> None:
    wheel, _ = wheels.build("wheel", tmp_path)
    assert wheel.name.split("-")[1] == built_version()
    with zipfile.ZipFile(wheel) as archive:
        for name in recipe.names():
            inside = archive.read(f"forewarn/agent/recipes/{name}/{recipe.CONFIG}")
            assert inside.decode() == recipe.text(name)
        for service in UNITS.values():
            unit = (ROOT / "packaging/systemd" / service.file).read_bytes()
            assert archive.read(f"forewarn/cli/unit_files/{service.file}") == unit
    page = page_in(wheel)
    assert page.keys() == {"index.html", "app.js", "app.css", "style/favicon.svg"}
    assert b"fw-fleet-view" in page["app.js"]
    assert b"--tone-ground" in page["app.css"]


def test_a_source_archive_has_the_bundle_and_builds_without_npm(tmp_path: Path) -> None:
    wheel, _ = wheels.build("wheel", tmp_path / "from-clone")
    archive, _ = wheels.build("sdist", tmp_path)
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path / "sources", filter="data")
    (sources,) = (tmp_path / "sources").iterdir()
    again, _ = wheels.build("wheel", tmp_path / "from-archive", root=sources, environment=WITHOUT_NPM)
    assert page_in(again) == page_in(wheel)


def test_without_npm_a_wheel_has_the_unbundled_files_and_the_build_warns(clone: Path, tmp_path: Path) -> None:
    wheel, said = wheels.build("wheel", tmp_path / "built", root=clone, environment=WITHOUT_NPM)
    assert "The console is not bundled" in said
    assert "`make wheel`" in said
    with zipfile.ZipFile(wheel) as archive:
        (folder,) = (each for each in zipfile.Path(archive, "forewarn/console/").iterdir() if each.is_dir())
        assert web_files.read(folder) == web_files.packaged()


def test_a_release_without_the_bundle_is_refused(clone: Path, tmp_path: Path) -> None:
    release = {**WITHOUT_NPM, "FOREWARN_CONSOLE": "bundled"}
    with pytest.raises(BuildFailed, match="npm is not installed"):
        wheels.build("wheel", tmp_path / "built", root=clone, environment=release)
