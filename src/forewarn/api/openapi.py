"""The OpenAPI document, made of the endpoints' declarations and of the classes of bodies and answers.

It is made when it is first asked for: the server needs nothing of it to start, or to answer anything else.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import date, datetime
from enum import StrEnum
from inspect import cleandoc, getdoc
from types import NoneType, UnionType
from typing import Any, NewType, Union, get_args, get_origin

from starlette.responses import Response

from forewarn.api.authentication import COOKIE
from forewarn.api.error_answers import documented
from forewarn.api.middleware import OPEN_TO_ALL
from forewarn.api.inputs import InBody, InHeader, InPath, Input, InQuery, TableInBody
from forewarn.api.request_headers import ABOUT_KEY, DESCRIPTIONS, KEY_HEADER, KEY_SCHEMA, InConditions
from forewarn.api.request_parts import Body
from forewarn.api.routing import ApiRoute, WithStatus
from forewarn.core.session_cookies import CSRF_HEADER
from forewarn.version import RELEASE
from forewarn.wire.answers.answer import ApiAnswer, Page
from forewarn.wire.answers.coding import key_of_page
from forewarn.wire.answers.service_answers import ErrorAnswer
from forewarn.wire.fields import Schema

ABOUT = """An open Scheduled Events service for any fleet of virtual machines.

Times are RFC 3339 with Z. Ids are upper-case GUIDs, accepted in any case. Lists are answered page by page:
send `next` back as `after`. Once there is a token, every call but the probes needs one, or a session that was
begun with one. Errors of every kind are `{"error": {"code": …, "message": …}}`."""

# A component has the name of its class without "Answer", but for these, which programs know by another.
COMPONENTS = {
    "MachineNotice": "Told",
    "OneHostWithMachines": "OneHost",
    "OneErrorDetail": "ErrorAnswer",
    "Error": "ErrorDetail",
}
_SECURITY_SCHEMES = {
    "HTTPBearer": {
        "type": "http",
        "description": "A token, as `forewarn token create` shows it.",
        "scheme": "bearer",
    },
    "HTTPBasic": {
        "type": "http",
        "description": "A token as the password, with any name: for calendars, which can send nothing else.",
        "scheme": "basic",
    },
    "SessionCookie": {
        "type": "apiKey",
        "description": (
            "A session that was begun with `POST /v1/session`. The cookie's name ends with the port that is "
            "called, and begins with `__Host-` under TLS. Calls other than GET and HEAD also need "
            f"`{CSRF_HEADER}`, with the session's `csrf`."
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
    """Make the document."""
    components = _Components()
    components.body(ErrorAnswer)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        if endpoint.promise.shown:
            operations = paths.setdefault(endpoint.path, {})
            operations[endpoint.method.lower()] = _operation(endpoint, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "forewarn", "description": ABOUT, "version": RELEASE},
        "paths": paths,
        "components": {"schemas": components.schemas, "securitySchemes": _SECURITY_SCHEMES},
    }


def _operation(endpoint: ApiRoute, components: "_Components") -> dict[str, Any]:
    promise = endpoint.promise
    description = promise.description or getdoc(endpoint.handler)
    parameters = [each for name, found in endpoint.inputs.items() for each in _parameters(name, found)]
    if endpoint.method == "POST":
        parameters.append(_parameter("header", KEY_HEADER, {**KEY_SCHEMA, "description": ABOUT_KEY}))
    bodies = [found for found in endpoint.inputs.values() if isinstance(found, InBody | TableInBody)]
    operation: dict[str, Any] = {
        "tags": [promise.tag],
        "summary": promise.summary,
        "description": description,
        "operationId": endpoint.operation,
        "security": [] if endpoint.path in OPEN_TO_ALL else [{name: []} for name in _SECURITY_SCHEMES],
        "parameters": [components.resolved(each) for each in parameters],
        "requestBody": _request_body(bodies[0], components) if bodies else None,
        "responses": _responses(endpoint, components),
    }
    # That a call needs no token is said by an empty list.
    return {key: value for key, value in operation.items() if value or key == "security"}


def _parameters(name: str, found: Input) -> list[dict[str, Any]]:
    match found:
        case InPath(description=description):
            return [_parameter("path", name, {"type": "string", "description": description}, required=True)]
        case InHeader(description=description):
            return [_header(name.replace("_", "-"), description)]
        case InConditions():
            return [_header(header, description) for header, description in DESCRIPTIONS.items()]
        case InQuery(kind=kind):
            return [_parameter("query", each, schema) for each, schema in kind.properties().items()]
        case _:
            return []


def _header(name: str, description: str) -> dict[str, Any]:
    nullable = {"anyOf": [{"type": "string"}, {"type": "null"}], "description": description}
    return _parameter("header", name, nullable)


def _parameter(where: str, name: str, schema: Schema, *, required: bool = False) -> dict[str, Any]:
    described = {"description": schema["description"]}
    return {"name": name, "in": where, "required": required, "schema": schema, **described}


def _request_body(found: InBody | TableInBody, components: "_Components") -> dict[str, Any]:
    if isinstance(found, TableInBody):
        schema, required = found.schema, True
    else:
        schema, required = components.of(found.kind if found.required else found.kind | None), found.required
    content = {"content": {"application/json": {"schema": schema}}}
    return {"required": True, **content} if required else content


def _responses(endpoint: ApiRoute, components: "_Components") -> dict[str, Any]:
    promise, answer = endpoint.promise, endpoint.answer
    if isinstance(answer, type) and issubclass(answer, Response):
        sent = {answer.media_type: {"schema": {"type": "string"}}} if answer.media_type else {}
    else:
        sent = {"application/json": {"schema": components.body(answer)}}
    content = {"content": sent} if sent else {}
    return {
        str(promise.status): {"description": "Successful Response", **content},
        **documented(*promise.errors, *((409,) if endpoint.method == "POST" else ())),
        **{str(status): {"description": meaning, **content} for status, meaning in promise.also.items()},
    }


class _Components:
    """The schemas that the document refers to."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}

    def body(self, answer: Any) -> Schema:
        """Return the schema of a whole answer."""
        if get_origin(answer) is WithStatus:
            (answer,) = get_args(answer)
        if get_origin(answer) is Page:
            kind: type[ApiAnswer] = get_args(answer)[0]
            items = {"type": "array", "items": self.of(kind)}
            return self._add(f"{_component(kind)}s", {key_of_page(kind): items, "next": self.of(str | None)})
        if answer.NOUN is None:
            return self.of(answer)
        one = f"One{_component(answer)}"
        return self._add(COMPONENTS.get(one, one), {answer.NOUN: self.of(answer)})

    def of(self, kind: Any) -> Schema:
        """Return the schema of a type: that of a class of ours is a component."""
        if isinstance(kind, NewType):
            return self.of(kind.__supertype__)
        if kind in _SIMPLE:
            return dict(_SIMPLE[kind])
        arguments = get_args(kind)
        match get_origin(kind):
            case None:
                return self._component_of(kind)
            case origin if origin in (UnionType, Union):  # the latter of what `NewType` makes
                return {"anyOf": [self.of(each) for each in arguments]}
            case origin if issubclass(origin, Mapping):
                return {"type": "object", "additionalProperties": self.of(arguments[1]) or True}
            case origin if issubclass(origin, Sequence):
                return {"type": "array", "items": self.of(arguments[0])}
        raise TypeError(f"there is no schema of {kind!r}")

    def resolved(self, schema: Any) -> Any:
        """Put references in place of the classes within a schema."""
        if isinstance(schema, Mapping):
            if isinstance(schema.get("$ref"), type):
                return {**schema, **self.of(schema["$ref"])}
            return {key: self.resolved(value) for key, value in schema.items()}
        return [self.resolved(each) for each in schema] if isinstance(schema, list) else schema

    def _component_of(self, kind: Any) -> Schema:
        name = _component(kind)
        if name not in self.schemas:
            described = {"title": name, "description": cleandoc(kind.__doc__ or "")}
            self.schemas[name] = {}  # it may refer to itself
            if issubclass(kind, Body):
                self.schemas[name] = self.resolved(kind.schema())
            elif issubclass(kind, StrEnum):
                self.schemas[name] = {"type": "string", "enum": [each.value for each in kind], **described}
            else:
                self._add(name, {each.name: self.of(each.type) for each in fields(kind)})
                self.schemas[name] |= described
        return _reference(name)

    def _add(self, name: str, properties: dict[str, Any]) -> Schema:
        """Add an object that has exactly these keys, and always all of them."""
        shape = {"type": "object", "properties": properties, "required": list(properties)}
        self.schemas[name] = {**shape, "additionalProperties": False, "title": name}
        return _reference(name)


def _component(kind: type) -> str:
    short = kind.__name__.removesuffix("Answer")
    return COMPONENTS.get(short, short)


def _reference(component: str) -> Schema:
    return {"$ref": f"#/components/schemas/{component}"}
