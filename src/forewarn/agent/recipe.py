"""Configs to start from, which come with forewarn."""

from importlib import resources

from forewarn.core.errors import NotFound

SUFFIX = ".toml"


def names() -> list[str]:
    """Name them all."""
    files = (resources.files("forewarn.agent") / "recipes").iterdir()
    return sorted(file.name.removesuffix(SUFFIX) for file in files if file.name.endswith(SUFFIX))


def about(name: str) -> str:
    """Say what one is for: its first line says so."""
    return text(name).splitlines()[0].lstrip("# ")


def text(name: str) -> str:
    """Return a recipe."""
    if name not in names():
        raise NotFound(f"recipe {name!r} does not exist: there is {', '.join(names())}")
    file = resources.files("forewarn.agent") / "recipes" / (name + SUFFIX)
    return file.read_text(encoding="utf-8")
