"""What all answers have in common: how they are made of values, and how lists of them are sent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from types import NoneType
from typing import Any, ClassVar, Generic, Self, TypeVar, get_args

A_co = TypeVar("A_co", bound="ApiAnswer", covariant=True)
T = TypeVar("T", bound="ApiAnswer")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAnswer:
    """A JSON object of the operator API, which always has all its keys; what is not known is null."""

    # The key that it is sent under, `{"machine": {…}}`, when it is the whole answer; None: it is sent bare.
    NOUN: ClassVar[str | None] = None

    @classmethod
    def like(cls, *values: object, **given: Any) -> Self:
        """Make an answer of what is given and, for the rest, of the attributes that these values have.

        A field `gap_seconds` takes the timedelta `gap`. An empty text is null where null can be.
        """
        found = {}
        for each in fields(cls):
            value = given[each.name] if each.name in given else _attribute(values, each.name)
            found[each.name] = None if value == "" and NoneType in get_args(each.type) else value
        return cls(**found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[A_co]):
    """A page of a list, `{"machines": […], "next": "…"}`: the cursor of the next page, if there is one."""

    kind: type[A_co]
    items: Sequence[A_co]
    next: str | None = None


def leading(*names: str) -> Callable[[type[T]], type[T]]:
    """Let an answer's own keys come before those of its base, in this order."""

    def ordered(kind: type[T]) -> type[T]:
        known = kind.__dataclass_fields__
        rest = [name for name in known if name not in names]
        kind.__dataclass_fields__ = {name: known[name] for name in (*names, *rest)}
        return kind

    return ordered


def _attribute(values: Sequence[object], name: str) -> object:
    for value in values:
        if hasattr(value, name):
            return getattr(value, name)
    if not name.endswith("_seconds"):
        raise AttributeError(name)
    span = _attribute(values, name.removesuffix("_seconds"))
    return span.total_seconds() if isinstance(span, timedelta) else span
