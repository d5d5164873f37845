"""Base classes of answers: build an answer from values of `core`, and paginate lists."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import cache
from types import NoneType
from typing import Any, ClassVar, Generic, Self, TypeVar, get_args, get_origin

A_co = TypeVar("A_co", bound="ApiAnswer", covariant=True)
T = TypeVar("T", bound="ApiAnswer")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAnswer:
    """A JSON object of the operator API. It always has all its keys. Unknown values are null."""

    # The key around a whole answer: `{"machine": {…}}`. None: the answer has no such key.
    NOUN: ClassVar[str | None] = None

    @classmethod
    def like(cls, *values: object, **given: Any) -> Self:
        """Build an answer from the arguments and, for other fields, the attributes of `values`.

        A field `gap_seconds` takes the timedelta `gap`. A field that is an answer, or a tuple of answers, is
        built by the `of` or `like` of its class. A nullable field takes an empty text as null.
        """
        found: dict[str, Any] = {}
        for name, is_nullable, build in _fields(cls):  # type: ignore[arg-type]  # a class is hashable
            value = given[name] if name in given else _attribute(values, name)
            if is_nullable and (value is None or value == ""):
                found[name] = None
            else:
                found[name] = value if build is None or name in given else build(value)
        return cls(**found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[A_co]):
    """A page of a list: `{"machines": […], "next": "…"}`. `next` is the cursor of the next page, or null."""

    kind: type[A_co]
    items: Sequence[A_co]
    next: str | None = None


def leading(*names: str) -> Callable[[type[T]], type[T]]:
    """Place these keys of an answer before the keys of its base class."""

    def ordered(kind: type[T]) -> type[T]:
        known = kind.__dataclass_fields__
        rest = [name for name in known if name not in names]
        kind.__dataclass_fields__ = {name: known[name] for name in (*names, *rest)}
        return kind

    return ordered


@cache
def _fields(kind: type[ApiAnswer]) -> tuple[tuple[str, bool, Callable[[Any], Any] | None], ...]:
    """Return each field's name, whether it can be null, and how to build it if it consists of answers."""
    found = []
    for each in fields(kind):
        choices: tuple[Any, ...] = (each.type,) if get_origin(each.type) is tuple else get_args(each.type)
        found.append((each.name, NoneType in choices, _builder(choices[0] if choices else each.type)))
    return tuple(found)


def _builder(kind: Any) -> Callable[[Any], Any] | None:
    if get_origin(kind) is tuple:
        build = _builder(get_args(kind)[0])
        return None if build is None else lambda values: tuple(map(build, values))
    if isinstance(kind, type) and issubclass(kind, ApiAnswer):
        return getattr(kind, "of", kind.like)
    return None


def _attribute(values: Sequence[object], name: str) -> object:
    for value in values:
        if hasattr(value, name):
            return getattr(value, name)
    if not name.endswith("_seconds"):
        raise AttributeError(name)
    span = _attribute(values, name.removesuffix("_seconds"))
    return span.total_seconds() if isinstance(span, timedelta) else span
