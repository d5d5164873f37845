"""The version: a release, or between releases the commit."""

import importlib.metadata
import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from forewarn import version

ROOT = Path(version.__file__).parents[2]


def git(folder: Path, *words: str) -> str:
    own = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *own, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder with the module and pyproject.toml, without git."""
    own = tmp_path / "src" / "forewarn"
    own.mkdir(parents=True)
    shutil.copy(version.__file__, own)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.fixture
def checkout(sources: Path) -> Path:
    git(sources, "init")
    git(sources, "add", ".")
    git(sources, "commit", "--message", "first")
    return sources


def loaded(folder: Path) -> Any:
    """Load the module of a folder like the build backend."""
    spec = importlib.util.spec_from_file_location("built", folder / "src" / "forewarn" / "version.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_between_releases_a_checkout_and_its_builds_name_the_commit(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "--short=8", "HEAD")
    expected = f"{version.RELEASE}.dev0+g{commit}"
    assert (loaded(checkout).version(), loaded(checkout).built_version()) == (expected, expected)
    (checkout / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text() + "# changed\n")
    assert loaded(checkout).built_version() == f"{expected}.dirty"


def test_a_commit_with_the_tag_of_the_release_has_its_version(checkout: Path) -> None:
    git(checkout, "tag", f"v{version.RELEASE}")
    assert loaded(checkout).built_version() == version.RELEASE
    git(checkout, "commit", "--allow-empty", "--message", "later")
    commit = git(checkout, "rev-parse", "--short=8", "HEAD")
    assert loaded(checkout).built_version() == f"{version.RELEASE}.dev0+g{commit}"


def test_sources_without_git_have_the_version_of_the_release(sources: Path) -> None:
    assert loaded(sources).built_version() == version.RELEASE


def test_without_a_commit_or_git_the_version_comes_from_the_metadata(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(sources, "init")
    installed = importlib.metadata.version("forewarn")
    assert (loaded(sources).version(), loaded(sources).built_version()) == (installed, version.RELEASE)
    monkeypatch.setenv("PATH", "")
    assert loaded(sources).version() == installed


def test_a_repository_that_only_contains_forewarn_is_not_its_checkout(checkout: Path) -> None:
    (checkout / "pyproject.toml").write_text('[project]\nname = "theirs"\n')
    assert loaded(checkout).version() == importlib.metadata.version("forewarn")
