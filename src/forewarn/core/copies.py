"""Frozen values, which rules make and copy by thousands: their slots are written as they are.

`__init__` of a frozen dataclass, which `dataclasses.replace` calls too, asks for each field whether it may be
set, and takes it by name: three times as long.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

Value = TypeVar("Value")

if TYPE_CHECKING:
    from dataclasses import replace as replace  # so that mypy knows which fields there are, and their types
else:

    def replace(value, /, **changes):
        """Return a copy of a frozen value with slots, in which some fields have changed."""
        slots = _slots(type(value))
        copy = slots.copy(value)
        for name, changed in changes.items():
            slots.write[name](copy, changed)
        if slots.check is not None:
            slots.check(copy)
        return copy


def maker(kind: type[Value]) -> Callable[..., Value]:
    """Return what makes values of a class with slots: it takes all fields, in their order."""
    hashable: Any = kind
    slots = _slots(hashable)
    make, check = slots.make, slots.check
    if check is None:
        return make

    def make_checked(*values: Any) -> Value:
        made: Value = make(*values)
        check(made)
        return made

    return make_checked


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slots:
    """How the values of a class are made without its `__init__`."""

    make: Callable[..., Any]
    copy: Callable[[Any], Any]
    write: dict[str, Callable[[Any, Any], None]]
    check: Callable[[Any], None] | None


@cache
def _slots(kind: Any) -> _Slots:
    names = [field.name for field in fields(kind)]
    write = {name: getattr(kind, name).__set__ for name in names}
    # Written out, as dataclasses write `__init__`: a loop over the slots takes twice as long.
    scope = {"new": object.__new__, "kind": kind} | {f"write_{name}": write[name] for name in names}
    return _Slots(
        make=_function(f"made({', '.join(f'value_{name}' for name in names)})", names, "value_{}", scope),
        copy=_function("made(value)", names, "value.{}", scope),
        write=write,
        check=getattr(kind, "__post_init__", None),
    )


def _function(signature: str, names: list[str], value: str, scope: dict[str, Any]) -> Callable[..., Any]:
    lines = [f"    write_{name}(new_one, {value.format(name)})" for name in names]
    source = "\n".join([f"def {signature}:", "    new_one = new(kind)", *lines, "    return new_one"])
    defined = dict(scope)
    exec(source, defined)  # noqa: S102 - made of the names of fields alone
    made: Callable[..., Any] = defined["made"]
    return made
