"""Base classes of queries and bodies: each field declares its check, its default and its description once.

In a schema, a class represents the component that the OpenAPI document generates from it.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import timedelta
from inspect import getdoc
from typing import Any, ClassVar, Protocol, Self, TypeVar, cast, dataclass_transform

from forewarn.core.errors import Invalid
from forewarn.wire.fields import Field, Schema
from forewarn.wire.invalid_field import within_field
from forewarn.wire.texts import shown


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


T = TypeVar("T")
D = TypeVar("D", bound=_Dataclass)


def field(reader: Field[T], about: str = "", *, default: Any = MISSING) -> T:
    """Declare a field. It is required unless it has a default."""
    declaration = {"field": reader.about(about) if about else reader}
    return cast(T, dataclasses.field(default=default, metadata=declaration))


def nullable(reader: Field[T], about: str = "") -> T | None:
    """Declare an optional field that can be null."""
    field_or_null: Field[T | None] = Field(
        read=lambda value: None if value is None else reader(value),
        schema={"anyOf": [reader.schema, {"type": "null"}]},
    )
    return field(field_or_null, about, default=None)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def request_model(kind: type[T]) -> type[T]:
    """Make a class a dataclass of its declared fields."""
    # No slots, so that a body can inherit fields of several classes.
    # Requests are neither compared nor printed. `eq` and `repr` take a third of the time to make the class.
    return dataclass(frozen=True, kw_only=True, eq=False, repr=False)(kind)


@request_model
class RequestModel:
    """A query or a body. An unknown field is an error."""

    NOUN: ClassVar[str]  # what an error calls a field

    @classmethod
    def read_fields(cls, written: Mapping[str, object], where: str = "") -> Self:
        """Read all fields; Invalid names the first wrong one."""
        values = {}
        for each in fields(cls):
            with within_field(f"{where}{each.name}"):
                if each.name in written:
                    values[each.name] = each.metadata["field"](written[each.name])
                elif each.default is MISSING:
                    raise Invalid("this is missing")
        for key in written:
            if key not in cls.__dataclass_fields__:
                with within_field(f"{where}{key}"):
                    raise Invalid(f"there is no such {cls.NOUN}")
        return cls(**values)

    @classmethod
    def properties(cls) -> dict[str, Schema]:
        """Return the schema of each field."""
        found = {}
        for each in fields(cls):
            declared = each.metadata["field"]
            has_default = each.default not in (MISSING, None, ())
            default = {"default": declared.write(each.default)} if has_default else {}
            found[each.name] = declared.schema | default
        return found

    def build(self, kind: type[D], **more: Any) -> D:
        """Build a value from the arguments and the fields. `gap_seconds` sets the timedelta `gap`."""
        for each in fields(self):
            attribute, value = each.name.removesuffix("_seconds"), getattr(self, each.name)
            if value is not None and attribute not in more and attribute in kind.__dataclass_fields__:
                more[attribute] = value if attribute == each.name else timedelta(seconds=value)
        return kind(**more)


@request_model
class Query(RequestModel):
    """Query parameters. An empty parameter counts as omitted."""

    NOUN = "query parameter"

    @classmethod
    def read(cls, parameters: Iterable[tuple[str, str]]) -> Self:
        """Read a query string. If a parameter that is no list is repeated, the last value counts."""
        lists = {name for name, schema in cls.properties().items() if schema.get("type") == "array"}
        written: dict[str, Any] = {}
        for name, value in parameters:
            written[name] = [*written.get(name, ()), value] if name in lists else value
        return cls.read_fields({name: value for name, value in written.items() if value not in ("", [""])})


@request_model
class Body(RequestModel):
    """A JSON body."""

    NOUN = "key in the body"

    @classmethod
    def read(cls, written: object, where: str = "") -> Self:
        """Read a body, or a part of one."""
        if not isinstance(written, Mapping):
            raise Invalid(f"{'' if where else 'the body: '}expected an object, got {shown(written)}")
        return cls.read_fields(written, where)

    @classmethod
    def part(cls) -> Field[Self]:
        """Declare a field that holds this object."""
        return Field(read=lambda value: cls.read(value, "."), schema={"$ref": cls})

    @classmethod
    def schema(cls) -> Schema:
        """Return the schema of the body."""
        shape = {"type": "object", "properties": cls.properties(), "additionalProperties": False}
        required = [each.name for each in fields(cls) if each.default is MISSING]
        described = {"title": cls.__name__, "description": getdoc(cls)}
        return {**shape, **({"required": required} if required else {}), **described}
