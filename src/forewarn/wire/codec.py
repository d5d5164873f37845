"""Frozen dataclasses as JSON values and back, by their fields: what the store keeps and what the API sends.

Enums are their values, tuples are lists, sets are sorted lists, and a dataclass is an object with a key for
each field. A key that is missing is read as the field's default; a key of a later version is passed over.
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
    """How the object of a class differs from its fields."""

    keys: Mapping[str, str] = field(default_factory=dict)  # of the fields whose key is not their name
    optional: Collection[str] = ()  # the fields that are left out while they have their default
    empty: object = None  # the value that is written as {}; what is read from {} is this very object


class Codec:
    """Writes and reads values.

    `forms` are the types that are not written by fields, such as `datetime`: how to write each, and read it.
    `keeps_unknown`: a text that is no value of an enum is read as it is, instead of being refused.
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
        # As cattrs does these, which looks up anew for each value, or each part of one, how to read it.
        self._converter.register_structure_hook_factory(_is_optional, self._optional_reader)
        self._converter.register_structure_hook_factory(_is_tuple, self._tuple_reader)
        self._converter.register_unstructure_hook_factory(_is_tuple, self._tuple_writer)
        self._converter.register_structure_hook_func(_is_text, _text)
        # Named, because to cattrs they are strings before they are enums.
        self._converter.register_unstructure_hook(StrEnum, attrgetter("value"))
        self._converter.register_structure_hook(StrEnum, _known_or_text if keeps_unknown else _known)
        for kind, (write, read) in forms.items():
            self._converter.register_unstructure_hook(kind, write)
            self._converter.register_structure_hook(kind, _reading(read))

    def write(self, value: object) -> Any:
        """Return the JSON value of a value, whose type is its class."""
        return self._converter.unstructure(value)

    def read(self, kind: type[Value], written: object) -> Value:
        """Return the value of a type; KeyError, TypeError or ValueError if it is not written like one."""
        return self._converter.structure(written, kind)

    def reader(self, kind: Any) -> Read:
        """Return what reads values of a type; how is found out once, when it is first used."""
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
        """Return the keys of a class's fields, in their order."""
        named = self._shape(kind).keys
        return tuple(named.get(each.name, each.name) for each in fields(kind))

    def _shape(self, kind: type) -> Shape:
        return self._shapes.get(kind, _AS_IT_IS)

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


_AS_IT_IS = Shape()


def _is_optional(kind: Any) -> bool:
    if get_origin(kind) not in (Union, UnionType):
        return False
    *_, last = choices = get_args(kind)
    return last is NoneType and choices == (choices[0], last)


def _is_tuple(kind: Any) -> bool:
    """Return whether a type is that of tuples of any length."""
    return get_origin(kind) is tuple and get_args(kind)[1:] == (Ellipsis,)


def _is_text(kind: Any) -> bool:
    """Return whether a type is another name of text."""
    return getattr(kind, "__supertype__", None) is str


def _text(written: Any, _kind: Any) -> str:
    return str(written)


def _within(kind: Any) -> Any:
    """Return the type that an optional type, or one of tuples, is made of."""
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
    """Return a class's values by their texts: to ask the class takes longer."""
    return {member.value: member for member in kind}
