"""The scenarios that come with forewarn, and those that people bring."""

import tomllib
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from forewarn.core.errors import Invalid, NotFound
from forewarn.rehearsal.scenario import Scenario
from forewarn.rehearsal.scenario_file import read_scenario

SUFFIX = ".toml"


def all_shipped() -> tuple[Scenario, ...]:
    """Read every scenario that comes with forewarn, by name."""
    return tuple(_read(file.read_text(encoding="utf-8"), file.name) for file in _files())


def find(name: str) -> Scenario:
    """Read a scenario that is a file, or one that comes with forewarn."""
    path = Path(name)
    if path.suffix == SUFFIX or path.is_file():
        return _read(_text(path), name)
    for file in _files():
        if file.name == name + SUFFIX:
            return _read(file.read_text(encoding="utf-8"), file.name)
    raise NotFound(f"scenario {name!r} does not exist: `forewarn rehearse --list` shows those that do")


def default_fleet() -> Mapping[str, object]:
    """Return the fleet of a scenario that brings none."""
    return tomllib.loads((_folder() / "fleet.toml").read_text(encoding="utf-8"))


def _folder() -> Traversable:
    return resources.files("forewarn.rehearsal")


def _files() -> list[Traversable]:
    folder = _folder() / "scenarios"
    return sorted(
        (file for file in folder.iterdir() if file.name.endswith(SUFFIX)), key=lambda file: file.name
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"scenario file {path} cannot be read: {error}") from None


def _read(text: str, where: str) -> Scenario:
    try:
        return read_scenario(text, default_fleet=default_fleet())
    except Invalid as refusal:
        raise Invalid(f"{where}: {refusal}") from None
