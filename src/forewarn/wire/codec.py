"""Convert frozen dataclasses to JSON values and back, for the store and the API.

An enum becomes its value, a tuple a list, a set a sorted list, and a dataclass an object with a key for each
field. A missing key is read as the field's default. Unknown keys, which a later version may have written,
are ignored.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from cattrs import Converter
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

Value = TypeVar("Value")
Write = Callable[[Any], Any]
Read = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Differences between the JSON object of a class and its fields."""

    keys: Mapping[str, str] = field(default_factory=dict)  # by field, if the key is not the name
    optional: Collection[str] = ()  # fields that are left out if they have their default
    empty: object = None  # the value that is written as {}, and read from it as the same object


class Codec:
    """Writes and reads values.

    `forms` has the writer and reader of types that are not dataclasses, such as `datetime`. With
    `keeps_unknown`, a text that is no value of its enum is kept instead of refused.
    """

    def __init__(
        self,
        forms: Mapping[type, tuple[Write, Read]],
        *,
        shapes: Mapping[type, Shape] | None = None,
        keeps_unknown: bool = False,
    ) -> None:
        self._shapes = shapes or {}
        self._converter = Converter(
            detailed_validation=False, unstruct_collection_overrides={tuple: list, frozenset: sorted}
        )
        self._converter.register_unstructure_hook_factory(is_dataclass, self._writer)
        self._converter.register_structure_hook_factory(is_dataclass, self._reader)
        # cattrs looks up the hook again for each value or item. These look it up once for each type.
        self._converter.register_structure_hook_factory(_is_optional, self._optional_reader)
        self._converter.register_structure_hook_factory(_is_tuple, self._tuple_reader)
        self._converter.register_unstructure_hook_factory(_is_tuple, self._tuple_writer)
        self._converter.register_structure_hook_func(_is_text, _text)
        # Explicit, because cattrs treats a StrEnum as a string.
        self._converter.register_unstructure_hook(StrEnum, attrgetter("value"))
        self._converter.register_structure_hook(StrEnum, _known_or_text if keeps_unknown else _known)
        for kind, (write, read) in forms.items():
            self._converter.register_unstructure_hook(kind, write)
            self._converter.register_structure_hook(kind, _reading(read))

    def write(self, value: object) -> Any:
        """Return the JSON value of a value."""
        return self._converter.unstructure(value)

    def read(self, kind: type[Value], written: object) -> Value:
        """Return a value of a type; KeyError, TypeError or ValueError if the JSON value does not fit."""
        return self._converter.structure(written, kind)

    def reader(self, kind: Any) -> Read:
        """Return a function that reads values of a type. It looks up the hook at its first call."""
        if _is_optional(kind):
            inner = self.reader(_within(kind))
            return lambda written: None if written is None else inner(written)
        hooks: list[Callable[[Any, Any], Any]] = []

        def read(written: Any) -> Any:
            if not hooks:
                hooks.append(self._converter.get_structure_hook(kind))
            return hooks[0](written, kind)

        return read

    def keys(self, kind: type) -> tuple[str, ...]:
        """Return the keys of a class, in the order of its fields."""
        named = self._shape(kind).keys
        return tuple(named.get(each.name, each.name) for each in fields(kind))

    def _shape(self, kind: type) -> Shape:
        return self._shapes.get(kind, _NO_DIFFERENCES)

    def _writer(self, kind: type) -> Write:
        shape = self._shape(kind)
        write: Write = make_dict_unstructure_fn(kind, self._converter, **_overrides(shape))
        if shape.empty is None:
            return write
        return lambda value: {} if value == shape.empty else write(value)

    def _reader(self, kind: type) -> Callable[[Any, Any], Any]:
        shape = self._shape(kind)
        read: Callable[[Any, Any], Any] = make_dict_structure_fn(kind, self._converter, **_overrides(shape))
        if shape.empty is None:
            return read
        return lambda written, kind: read(written, kind) if written else shape.empty

    def _optional_reader(self, kind: Any) -> Callable[[Any, Any], Any]:
        within = _within(kind)
        read = self._converter.get_structure_hook(within)
        return lambda written, _kind: None if written is None else read(written, within)

    def _tuple_reader(self, kind: Any) -> Callable[[Any, Any], Any]:
        within = _within(kind)
        read = self._converter.get_structure_hook(within)
        return lambda written, _kind: tuple([read(each, within) for each in written])

    def _tuple_writer(self, kind: Any) -> Write:
        write = self._converter.get_unstructure_hook(_within(kind))
        return lambda values: [write(each) for each in values]


_NO_DIFFERENCES = Shape()


def _is_optional(kind: Any) -> bool:
    if get_origin(kind) not in (Union, UnionType):
        return False
    *_, last = choices = get_args(kind)
    return last is NoneType and choices == (choices[0], last)


def _is_tuple(kind: Any) -> bool:
    return get_origin(kind) is tuple and get_args(kind)[1:] == (Ellipsis,)


def _is_text(kind: Any) -> bool:
    return getattr(kind, "__supertype__", None) is str


def _text(written: Any, _kind: Any) -> str:
    return str(written)


def _within(kind: Any) -> Any:
    """Return the inner type of an optional type, or the item type of a tuple."""
    return get_args(kind)[0]


def _overrides(shape: Shape) -> dict[str, Any]:
    return {
        name: override(rename=shape.keys.get(name), omit_if_default=name in shape.optional or None)
        for name in {*shape.keys, *shape.optional}
    }


def _reading(read: Read) -> Callable[[Any, Any], Any]:
    return lambda written, _kind: read(written)


def _known(value: str, kind: type[StrEnum]) -> StrEnum:
    known = _members(kind).get(value) if isinstance(value, str) else None
    return known or kind(value)


def _known_or_text(value: str, kind: type[StrEnum]) -> str:
    return _members(kind).get(value, value) if isinstance(value, str) else value


@cache
def _members(kind: Any) -> Mapping[str, StrEnum]:
    """Return the members of an enum by value. A call of the class is slower."""
    return {member.value: member for member in kind}
