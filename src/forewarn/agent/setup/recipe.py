"""Configs to start from, which come with forewarn: the recipes of `examples/`, which `recipes` links to.

A recipe is a folder with a config and, where its config runs some, programs. There is one text of each: what
people read in the repository is what `init` writes, but for where the programs lie.
"""

import json
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from forewarn.core.errors import NotFound

CONFIG = "agent.toml"
# Where the configs expect their programs, until they are put elsewhere.
HOME = "/etc/forewarn"


def names() -> list[str]:
    """Return the names of all recipes."""
    return sorted(folder.name for folder in _folder().iterdir() if (folder / CONFIG).is_file())


def about(name: str) -> str:
    """Return what a recipe is for: its first line says so."""
    return text(name).splitlines()[0].lstrip("# ")


def text(name: str) -> str:
    """Return a recipe's config."""
    if name not in names():
        raise NotFound(f"recipe {name!r} does not exist: there is {', '.join(names())}")
    return (_folder() / name / CONFIG).read_text(encoding="utf-8")


def programs(name: str) -> dict[str, str]:
    """Return the programs that a recipe's config runs and that come with it, by name."""
    config = text(name)
    return {
        file.name: file.read_text(encoding="utf-8")
        for file in sorted((_folder() / name).iterdir(), key=lambda file: file.name)
        if f'"{HOME}/{file.name}"' in config
    }


def placed(name: str, folder: Path) -> str:
    """Return a recipe's config as it must be for programs that lie in a folder."""
    config = text(name)
    for program in programs(name):
        # As TOML quotes: a folder may be called anything.
        config = config.replace(f'"{HOME}/{program}"', json.dumps(str(folder / program), ensure_ascii=False))
    return config


def _folder() -> Traversable:
    return resources.files("forewarn.agent") / "recipes"
