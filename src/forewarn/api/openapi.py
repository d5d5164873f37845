"""The OpenAPI document, generated from the endpoints and from the classes of bodies and answers.

The description of an answer's field is the comment that starts with `#:`. The server generates the document
at its first request: it does not need this module to start.
"""

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import date, datetime
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, NewType, Union, get_args, get_origin

from starlette.responses import Response

from forewarn.api.authentication import COOKIE
from forewarn.api.error_answers import documented
from forewarn.api.inputs import BodyInput, HeaderInput, Input, PathInput, QueryInput, RawBodyInput
from forewarn.api.middleware import OPEN_TO_ALL
from forewarn.api.request_headers import ABOUT_KEY, DESCRIPTIONS, KEY_HEADER, KEY_SCHEMA, ConditionInput
from forewarn.api.request_models import Body
from forewarn.api.routing import ApiRoute, WithStatus
from forewarn.core.session_cookies import CSRF_HEADER
from forewarn.version import RELEASE
from forewarn.wire.answers.answer import ApiAnswer, Page
from forewarn.wire.answers.coding import key_of_page
from forewarn.wire.answers.service_answers import ErrorAnswer
from forewarn.wire.fields import Schema

ABOUT = """An open Scheduled Events service for any fleet of virtual machines.

Times are RFC 3339 with Z. Ids are GUIDs in upper case and accepted in any case. Lists are paginated: send
`next` as `after` to get the next page. Fields that end in `_seconds` are numbers of seconds.

Until the first token exists, the API is open on loopback. From then on every request except probes needs a
token, or a session that was started with one.

Every error is `{"error": {"code": …, "message": …}}`. The message about a field begins with its path:
`windows[0].start: expected a time of day such as 22:00, got "25:00"`."""

# The name of a component is that of its class without "Answer", with these exceptions.
COMPONENTS = {
    "OneHostWithMachines": "OneHost",
    "OneErrorDetail": "ErrorAnswer",
    "Error": "ErrorDetail",
}
_SECURITY_SCHEMES = {
    "HTTPBearer": {
        "type": "http",
        "description": "A token from `forewarn token create` or `POST /v1/tokens`.",
        "scheme": "bearer",
    },
    "HTTPBasic": {
        "type": "http",
        "description": (
            "A token as the password, with any user name. For calendars, which support only Basic "
            "authentication."
        ),
        "scheme": "basic",
    },
    "SessionCookie": {
        "type": "apiKey",
        "description": (
            "A browser session from `POST /v1/session`. The name of the cookie ends with the server's port. "
            "Over TLS it begins with `__Host-`. Requests other than GET and HEAD also need the header "
            f"`{CSRF_HEADER}` with the session's `csrf`."
        ),
        "in": "cookie",
        "name": f"{COOKIE}-8170",
    },
}
_SIMPLE: Mapping[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    Any: {},
}


def document(endpoints: Iterable[ApiRoute]) -> dict[str, Any]:
    """Generate the document."""
    components = _Components()
    components.body(ErrorAnswer)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        if endpoint.info.is_documented:
            operations = paths.setdefault(endpoint.path, {})
            operations[endpoint.method.lower()] = _operation(endpoint, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "forewarn", "description": ABOUT, "version": RELEASE},
        "paths": paths,
        "components": {"schemas": components.schemas, "securitySchemes": _SECURITY_SCHEMES},
    }


def _operation(endpoint: ApiRoute, components: "_Components") -> dict[str, Any]:
    info = endpoint.info
    description = info.description or inspect.getdoc(endpoint.handler)
    parameters = [each for name, found in endpoint.inputs.items() for each in _parameters(name, found)]
    if endpoint.method == "POST":
        parameters.append(_parameter("header", KEY_HEADER, {**KEY_SCHEMA, "description": ABOUT_KEY}))
    bodies = [found for found in endpoint.inputs.values() if isinstance(found, BodyInput | RawBodyInput)]
    operation: dict[str, Any] = {
        "tags": [info.tag],
        "summary": info.summary,
        "description": description,
        "operationId": endpoint.operation,
        "security": [] if endpoint.path in OPEN_TO_ALL else [{name: []} for name in _SECURITY_SCHEMES],
        "parameters": [components.resolved(each) for each in parameters],
        "requestBody": _request_body(bodies[0], components) if bodies else None,
        "responses": _responses(endpoint, components),
    }
    # An empty list means that the call needs no token.
    return {key: value for key, value in operation.items() if value or key == "security"}


def _parameters(name: str, found: Input) -> list[dict[str, Any]]:
    match found:
        case PathInput(description=description):
            return [_parameter("path", name, {"type": "string", "description": description}, required=True)]
        case HeaderInput(description=description):
            return [_header(name.replace("_", "-"), description)]
        case ConditionInput():
            return [_header(header, description) for header, description in DESCRIPTIONS.items()]
        case QueryInput(kind=kind):
            return [_parameter("query", each, schema) for each, schema in kind.properties().items()]
        case _:
            return []


def _header(name: str, description: str) -> dict[str, Any]:
    nullable = {"anyOf": [{"type": "string"}, {"type": "null"}], "description": description}
    return _parameter("header", name, nullable)


def _parameter(where: str, name: str, schema: Schema, *, required: bool = False) -> dict[str, Any]:
    described = {"description": schema["description"]}
    return {"name": name, "in": where, "required": required, "schema": schema, **described}


def _request_body(found: BodyInput | RawBodyInput, components: "_Components") -> dict[str, Any]:
    if isinstance(found, RawBodyInput):
        schema, required = found.schema, True
    else:
        schema, required = components.of(found.kind if found.required else found.kind | None), found.required
    content = {"content": {"application/json": {"schema": schema}}}
    return {"required": True, **content} if required else content


def _responses(endpoint: ApiRoute, components: "_Components") -> dict[str, Any]:
    info, answer = endpoint.info, endpoint.answer
    if isinstance(answer, type) and issubclass(answer, Response):
        sent = {answer.media_type: {"schema": {"type": "string"}}} if answer.media_type else {}
    else:
        sent = {"application/json": {"schema": components.body(answer)}}
    content = {"content": sent} if sent else {}
    return {
        str(info.status): {"description": "The request succeeded.", **content},
        **documented(*sorted(endpoint.errors)),
        **{str(status): {"description": meaning, **content} for status, meaning in info.also.items()},
    }


class _Components:
    """The schemas in the components of the document."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}

    def body(self, answer: Any) -> Schema:
        """Return the schema of a whole answer."""
        if get_origin(answer) is WithStatus:
            (answer,) = get_args(answer)
        if get_origin(answer) is Page:
            kind: type[ApiAnswer] = get_args(answer)[0]
            items = {"type": "array", "items": self.of(kind)}
            page = {
                key_of_page(kind): {**items, "description": "Items of this page."},
                "next": {
                    **self.of(str | None),
                    "description": "Cursor of the next page. Null: there is none.",
                },
            }
            return self._add(f"{_component(kind)}s", page, "A page of a list.")
        if answer.NOUN is None:
            return self.of(answer)
        one = f"One{_component(answer)}"
        about = inspect.cleandoc(answer.__doc__)
        return self._add(
            COMPONENTS.get(one, one), {answer.NOUN: {**self.of(answer), "description": about}}, about
        )

    def of(self, kind: Any) -> Schema:
        """Return the schema of a type. The schema of a class is a component."""
        if isinstance(kind, NewType):
            return self.of(kind.__supertype__)
        if kind in _SIMPLE:
            return dict(_SIMPLE[kind])
        arguments = get_args(kind)
        match get_origin(kind):
            case None:
                return self._component_of(kind)
            case origin if origin in (UnionType, Union):  # Union: from Optional of a NewType
                return {"anyOf": [self.of(each) for each in arguments]}
            case origin if issubclass(origin, Mapping):
                return {"type": "object", "additionalProperties": self.of(arguments[1]) or True}
            case origin if issubclass(origin, Sequence):
                return {"type": "array", "items": self.of(arguments[0])}
        raise TypeError(f"no schema for {kind!r}")

    def resolved(self, schema: Any) -> Any:
        """Replace classes in a schema by references."""
        if isinstance(schema, Mapping):
            if isinstance(schema.get("$ref"), type):
                return {**schema, **self.of(schema["$ref"])}
            return {key: self.resolved(value) for key, value in schema.items()}
        return [self.resolved(each) for each in schema] if isinstance(schema, list) else schema

    def _component_of(self, kind: Any) -> Schema:
        name = _component(kind)
        if name not in self.schemas:
            about = inspect.cleandoc(kind.__doc__ or "")
            self.schemas[name] = {}  # the class may refer to itself
            if issubclass(kind, Body):
                self.schemas[name] = self.resolved(kind.schema())
            elif issubclass(kind, StrEnum):
                values = [each.value for each in kind]
                self.schemas[name] = {"type": "string", "enum": values, "title": name, "description": about}
            else:
                comments = field_comments(kind)
                properties = {
                    each.name: self.of(each.type) | comments.get(each.name, {}) for each in fields(kind)
                }
                self._add(name, properties, about)
        return _reference(name)

    def _add(self, name: str, properties: dict[str, Any], about: str) -> Schema:
        """Add an object that always has exactly these keys."""
        shape = {"type": "object", "properties": properties, "required": list(properties)}
        self.schemas[name] = {**shape, "additionalProperties": False, "title": name, "description": about}
        return _reference(name)


def _component(kind: type) -> str:
    short = kind.__name__.removesuffix("Answer")
    return COMPONENTS.get(short, short)


def _reference(component: str) -> Schema:
    return {"$ref": f"#/components/schemas/{component}"}


_FIELD = re.compile(r"    (\w+): [^#]*(?:#: (.*))?")


def field_comments(kind: type) -> dict[str, Schema]:
    """Return the descriptions of a class's fields: the comments with `#:` behind a field or above it."""
    found: dict[str, Schema] = {}
    for base in reversed(kind.__mro__[:-1]):
        above: list[str] = []
        for line in inspect.getsource(base).splitlines():
            if line.startswith("    #: "):
                above.append(line.removeprefix("    #: "))
                continue
            field = _FIELD.fullmatch(line)
            if field and (above or field[2]):
                found[field[1]] = {"description": " ".join([*above, field[2] or ""]).strip()}
            above = []
    return found
