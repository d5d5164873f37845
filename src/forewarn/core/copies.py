"""Changed copies of frozen values, which rules make by thousands: `dataclasses.replace` takes thrice as long.

That calls `__init__`, which takes every field by name and asks for each whether it may be set. Here the slots
of a value are copied as they are.
"""

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import replace as replace  # so that mypy knows which fields there are, and their types
else:

    def replace(value, /, **changes):
        """Return a copy of a frozen value with slots, in which some fields have changed."""
        kind = type(value)
        slots = _slots(kind)
        copy = object.__new__(kind)
        for read, write in slots.values():
            write(copy, read(value))
        for name, changed in changes.items():
            slots[name][1](copy, changed)
        if hasattr(kind, "__post_init__"):
            copy.__post_init__()
        return copy


@cache
def _slots(kind: Any) -> dict[str, tuple[Callable[..., Any], Callable[..., None]]]:
    """Return how each field of a class is read and written."""
    slots = {field.name: getattr(kind, field.name) for field in fields(kind)}
    return {name: (slot.__get__, slot.__set__) for name, slot in slots.items()}
