"""Inputs of endpoints: a parameter's annotation tells where its argument comes from."""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from enum import Enum
from functools import cache, partial
from types import NoneType
from typing import Annotated, Any, NamedTuple, Protocol, get_args, get_origin, runtime_checkable

from starlette.requests import ClientDisconnect, Request

from forewarn.api.request_fields import CURSOR, PROJECT, FreeText, whole_in_query
from forewarn.api.request_models import Body, Query, field, nullable, request_model
from forewarn.control.all_use_cases import check_operator
from forewarn.core.access import Caller
from forewarn.core.basic_types import EventId, OrderId, ProjectName
from forewarn.core.errors import Invalid, NotFound
from forewarn.core.redaction import mark_operator_text
from forewarn.core.scope import Scope
from forewarn.core.webhook_rules import WebhookId
from forewarn.store.batch import ScopedTransaction, Transaction
from forewarn.wire.fields import Schema, name, table
from forewarn.wire.texts import is_guid, is_name


@runtime_checkable
class Input(Protocol):
    """The source of an argument."""

    async def read(self, name: str, request: Request) -> Any:
        """Return the argument of a parameter; NotFound or Invalid if the request has no valid one."""
        ...


class RequestInput(NamedTuple):
    """A value that the server knows about the request."""

    find: Callable[[Request], Any]

    async def read(self, name: str, request: Request) -> Any:
        """Find the value."""
        return self.find(request)


class PreparedInput(NamedTuple):
    """The result of the endpoint's `prepare` function, which runs after all other inputs are read."""

    async def read(self, name: str, request: Request) -> None:
        """Return a placeholder."""


class TransactionScope(Enum):
    """The part of the store that the transaction of a POST can access."""

    CALLER = "caller"  # what the caller may access
    WHOLE = "whole"  # everything; the users of a project are refused
    OWN = "own"  # everything, for an endpoint that uses only what belongs to the caller


class TransactionInput(NamedTuple):
    """The open transaction, which the worker passes in when it runs the endpoint."""

    scope: TransactionScope

    async def read(self, name: str, request: Request) -> None:
        """Return a placeholder."""

    def scoped(self, tx: Transaction, scope: Scope) -> ScopedTransaction:
        """Return the transaction with the access of a caller; Refused if the caller must not have it."""
        if self.scope is TransactionScope.CALLER:
            return tx.scoped(scope)
        if self.scope is TransactionScope.WHOLE:
            check_operator(scope)
        return tx


class PathInput(NamedTuple):
    """A part of the path."""

    check: Callable[[str], str]
    description: str

    async def read(self, name: str, request: Request) -> str:
        """Check the part."""
        return self.check(request.path_params[name])


class HeaderInput(NamedTuple):
    """The header with the name of the parameter."""

    description: str

    async def read(self, name: str, request: Request) -> str | None:
        """Return the header, or None."""
        return request.headers.get(name.replace("_", "-"))


class QueryInput(NamedTuple):
    """The query string."""

    kind: type[Query]

    async def read(self, name: str, request: Request) -> Query:
        """Read all query parameters."""
        return self.kind.read(request.query_params.multi_items())


class BodyInput(NamedTuple):
    """The body."""

    kind: type[Body]
    required: bool = True

    async def read(self, name: str, request: Request) -> Body | None:
        """Read the body. Null counts as no body."""
        written = await _json(request, required=self.required)
        if written is None:
            return None
        caller: Caller = request.state.caller
        body = self.kind.read(written)
        return body if caller.project is not None else _marked(body)


class RawBodyInput(NamedTuple):
    """A body that the endpoint reads itself."""

    schema: Schema

    async def read(self, name: str, request: Request) -> Mapping[str, object]:
        """Return the JSON object in the body."""
        return table(await _json(request, required=True), "the body")


def _marked(body: Body) -> Body:
    """Mark the free texts of an operator for redaction: users of projects must not read them."""
    texts = {each.name: getattr(body, each.name) for each in fields(body)}
    marked = {name: mark_operator_text(text) for name, text in texts.items() if isinstance(text, FreeText)}
    return replace(body, **marked) if marked else body


@cache
def inputs_of(handler: Callable[..., Any]) -> Mapping[str, Input]:
    """Return the input of each parameter of an endpoint, inspected at its first request."""
    parameters = inspect.signature(handler).parameters.items()
    return {name: _input(parameter.annotation) for name, parameter in parameters}


def _input(annotation: Any) -> Input:
    for each in getattr(annotation, "__metadata__", ()):
        if isinstance(each, Input):
            return each
    if annotation is Request:
        return RequestInput(lambda request: request)
    kinds = [kind for kind in get_args(annotation) or (annotation,) if kind is not NoneType]
    match kinds:
        case [type() as kind] if issubclass(kind, Query):
            return QueryInput(kind)
        case [type() as kind] if issubclass(kind, Body):
            return BodyInput(kind, required=get_origin(annotation) is None)
    raise TypeError(f"no input for a parameter of type {annotation!r}")


async def _json(request: Request, *, required: bool) -> Any:
    try:
        body = await request.body()
        written = json.loads(body) if body else None
    except json.JSONDecodeError as error:
        raise Invalid(f"the body is not JSON: error at character {error.pos}") from None
    except (ValueError, RecursionError, ClientDisconnect):
        raise Invalid("the body cannot be read") from None
    if written is None and required:
        raise Invalid("the body: this is missing")
    return written


# A page that a person or script reads at once. Clients read larger fleets page by page.
DEFAULT_LIMIT = 100
MAX_LIMIT = 1000


@request_model
class PageQuery(Query):
    """A page of a list."""

    limit: int = field(
        whole_in_query(minimum=1, maximum=MAX_LIMIT), "Maximum number of items.", default=DEFAULT_LIMIT
    )
    after: str | None = nullable(CURSOR, "Cursor: the `next` of the previous page.")


@request_model
class ListQuery(PageQuery):
    """A page of a list, optionally of one project."""

    project: ProjectName | None = nullable(PROJECT, "Only items of this project.")


def _guid(what: str, text: str) -> str:
    if not is_guid(text):
        raise NotFound(f"{what} {text[:100]} does not exist")
    return text.upper()


def _name(what: str, text: str) -> str:
    if not is_name(text):
        raise NotFound(f'{what} "{text[:100]}" does not exist')
    return text


def _named(what: str) -> PathInput:
    return PathInput(partial(_name, what), f"Name of the {what}.")


def _numbered(what: str) -> PathInput:
    return PathInput(partial(_guid, what), f"Id of the {what}: a GUID in any case.")


MachineInPath = Annotated[str, _named("machine")]
# A PUT may name a machine that does not exist yet. The declaration reports a wrong name.
NewMachineInPath = Annotated[str, PathInput(str, "Name of the machine.")]
# The same for a host, group or project.
DeclaredNameInPath = Annotated[str, PathInput(name, "Name of the host, group or project.")]
GroupInPath = Annotated[str, _named("group")]
HostInPath = Annotated[str, _named("host")]
ProjectInPath = Annotated[ProjectName, _named("project")]
TokenInPath = Annotated[str, _named("token")]
OrderInPath = Annotated[OrderId, _numbered("order")]
EventInPath = Annotated[EventId, _numbered("event")]
HoldInPath = Annotated[str, _numbered("hold")]
WebhookInPath = Annotated[WebhookId, _numbered("webhook")]
RolloutInPath = Annotated[str, _numbered("rollout")]
