"""Recipes: sample configs for `forewarn agent init`, from `examples/` in the repository.

A recipe is a folder with a config and the programs that the config runs. `init` writes the same files as in
the repository and changes only the paths of programs.
"""

import json
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from forewarn.core.errors import NotFound

CONFIG = "agent.toml"
# The folder of programs in the configs of the repository.
HOME = "/etc/forewarn"


def names() -> list[str]:
    """Return the names of all recipes."""
    return sorted(folder.name for folder in _folder().iterdir() if (folder / CONFIG).is_file())


def about(name: str) -> str:
    """Return the purpose of a recipe from the first line of its config."""
    return text(name).splitlines()[0].lstrip("# ")


def text(name: str) -> str:
    """Return a recipe's config."""
    if name not in names():
        raise NotFound(f"recipe {name!r} does not exist; expected one of {', '.join(names())}")
    return (_folder() / name / CONFIG).read_text(encoding="utf-8")


def programs(name: str) -> dict[str, str]:
    """Return the programs of a recipe by name."""
    config = text(name)
    return {
        file.name: file.read_text(encoding="utf-8")
        for file in sorted((_folder() / name).iterdir(), key=lambda file: file.name)
        if f'"{HOME}/{file.name}"' in config
    }


def placed(name: str, folder: Path) -> str:
    """Return a recipe's config with its programs in another folder."""
    config = text(name)
    for program in programs(name):
        # Quoted, because a folder may have any name; TOML accepts JSON strings.
        config = config.replace(f'"{HOME}/{program}"', json.dumps(str(folder / program), ensure_ascii=False))
    return config


def _folder() -> Traversable:
    return resources.files("forewarn.agent") / "recipes"
