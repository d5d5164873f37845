"""Queries and bodies: classes that declare each field once, with its check, its default and what it means.

A class within a schema stands for the component of the OpenAPI document that is made of it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import timedelta
from inspect import getdoc
from typing import Any, ClassVar, Protocol, Self, TypeVar, cast, dataclass_transform

from forewarn.core.errors import Invalid
from forewarn.wire.fields import Field, Schema, inside
from forewarn.wire.texts import shown


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


T = TypeVar("T")
D = TypeVar("D", bound=_Dataclass)


def given(reader: Field[T], about: str = "", *, default: Any = MISSING) -> T:
    """Declare a field; one without a default must be there."""
    declaration = {"field": reader.about(about) if about else reader}
    return cast(T, field(default=default, metadata=declaration))


def maybe(reader: Field[T], about: str = "") -> T | None:
    """Declare a field that may be null, or left out."""
    nullable: Field[T | None] = Field(
        read=lambda value: None if value is None else reader(value),
        schema={"anyOf": [reader.schema, {"type": "null"}]},
    )
    return given(nullable, about, default=None)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(given,))
def declared(kind: type[T]) -> type[T]:
    """Make a class of the fields that it declares."""
    # They are neither compared nor shown, and what makes that possible is a third of a start's work on them.
    return dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)(kind)


@declared
class RequestPart:
    """What a request carries; anything unknown is an error."""

    # What an unknown field is not.
    CALLED: ClassVar[str]

    @classmethod
    def take(cls, written: Mapping[str, object], where: str = "") -> Self:
        """Read all fields; Invalid names the first that is wrong."""
        values = {}
        for each in fields(cls):
            with inside(f"{where}{each.name}"):
                if each.name in written:
                    values[each.name] = each.metadata["field"](written[each.name])
                elif each.default is MISSING:
                    raise Invalid("this is missing")
        for key in written:
            if key not in cls.__dataclass_fields__:
                with inside(f"{where}{key}"):
                    raise Invalid(f"there is no such {cls.CALLED}")
        return cls(**values)

    @classmethod
    def properties(cls) -> dict[str, Schema]:
        """Return the schema of each field."""
        return {
            each.name: each.metadata["field"].schema
            | (
                {}
                if each.default in (MISSING, None, ())
                else {"default": each.metadata["field"].write(each.default)}
            )
            for each in fields(cls)
        }


@declared
class Query(RequestPart):
    """Query parameters; an empty one is none."""

    CALLED = "query parameter"

    @classmethod
    def read(cls, parameters: Iterable[tuple[str, str]]) -> Self:
        """Read what follows a path; of a parameter that is no list, the last counts."""
        lists = {name for name, schema in cls.properties().items() if schema.get("type") == "array"}
        written: dict[str, Any] = {}
        for name, value in parameters:
            written[name] = [*written.get(name, ()), value] if name in lists else value
        return cls.take({name: value for name, value in written.items() if value not in ("", [""])})


@declared
class Body(RequestPart):
    """A body of JSON."""

    CALLED = "key in the body"

    @classmethod
    def read(cls, written: object, where: str = "") -> Self:
        """Read what is sent."""
        if not isinstance(written, Mapping):
            raise Invalid(f"{'' if where else 'the body: '}expected an object, got {shown(written)}")
        return cls.take(written, where)

    @classmethod
    def part(cls) -> Field[Self]:
        """Declare a body within a body."""
        return Field(read=lambda value: cls.read(value, "."), schema={"$ref": cls})

    @classmethod
    def schema(cls) -> Schema:
        """Return the schema of the whole body."""
        shape = {"type": "object", "properties": cls.properties(), "additionalProperties": False}
        required = [each.name for each in fields(cls) if each.default is MISSING]
        described = {"title": cls.__name__, "description": getdoc(cls)}
        return {**shape, **({"required": required} if required else {}), **described}

    def asked(self, kind: type[D], **more: Any) -> D:
        """Make a value of what is given and of the body's fields; `gap_seconds` is the timedelta `gap`."""
        for each in fields(self):
            attribute, value = each.name.removesuffix("_seconds"), getattr(self, each.name)
            if value is not None and attribute not in more and attribute in kind.__dataclass_fields__:
                more[attribute] = value if attribute == each.name else timedelta(seconds=value)
        return kind(**more)
