"""Lazy imports: a package imports the module of a name when the name is first used."""

from collections.abc import Callable, Mapping, MutableMapping
from importlib import import_module
from typing import Any


def lazily(
    names: MutableMapping[str, Any], homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make `__getattr__` and `__dir__` of a package from its globals and the modules of its names."""

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {names['__name__']!r} has no attribute {name!r}")
        found = names[name] = getattr(import_module(homes[name]), name)
        return found

    return find, lambda: sorted({*names, *homes})
