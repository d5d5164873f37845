"""Names of a package that are imported when they are first used: one does not load them all."""

from collections.abc import Callable, Mapping, MutableMapping
from importlib import import_module
from typing import Any


def lazily(
    names: MutableMapping[str, Any], homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make a package's `__getattr__` and `__dir__` of its globals and of the modules that have its names."""

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {names['__name__']!r} has no attribute {name!r}")
        found = names[name] = getattr(import_module(homes[name]), name)
        return found

    return find, lambda: sorted({*names, *homes})
