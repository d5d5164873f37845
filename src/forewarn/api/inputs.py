"""Where the arguments of an endpoint come from: each parameter's annotation says it.

The end has those that many endpoints share: pages of lists, and names and ids in paths.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from enum import Enum
from functools import partial
from types import NoneType
from typing import Annotated, Any, NamedTuple, Protocol, get_args, get_origin, runtime_checkable

from starlette.requests import ClientDisconnect, Request

from forewarn.api.request_fields import CURSOR, PROJECT, FreeText, whole_in_query
from forewarn.api.request_parts import Body, Query, declared, given, maybe
from forewarn.control.all_use_cases import check_operator
from forewarn.core.access import Caller
from forewarn.core.basic_types import EventId, OrderId, ProjectName
from forewarn.core.errors import Invalid, NotFound
from forewarn.core.webhook_rules import WebhookId
from forewarn.core.redaction import mark_operator_text
from forewarn.core.scope import Scope
from forewarn.store.batch import ScopedTransaction, Transaction
from forewarn.wire.fields import Schema, name, table
from forewarn.wire.texts import is_guid, is_name


@runtime_checkable
class Input(Protocol):
    """Where an argument comes from."""

    async def read(self, name: str, request: Request) -> Any:
        """Return the argument for a parameter; NotFound or Invalid if a request cannot have it."""
        ...


class FromRequest(NamedTuple):
    """Something that the server knows of a request."""

    find: Callable[[Request], Any]

    async def read(self, name: str, request: Request) -> Any:
        """Find it."""
        return self.find(request)


class Prepared(NamedTuple):
    """What is read for a call before its turn comes (`Promise.prepare`), and so after all other arguments."""

    async def read(self, name: str, request: Request) -> None:
        """Return nothing yet."""


class Reach(Enum):
    """What the transaction of a POST sees."""

    CALLER = "caller"
    WHOLE = "whole"
    OWN = "own"


class OpenedBy(NamedTuple):
    """The open transaction, which the worker adds when it runs the call."""

    reach: Reach

    async def read(self, name: str, request: Request) -> None:
        """Return nothing yet."""

    def seen(self, tx: Transaction, scope: Scope) -> ScopedTransaction:
        """Return the transaction as the caller may see it; Refused if it must not."""
        match self.reach:
            case Reach.CALLER:
                return tx.scoped(scope)
            case Reach.WHOLE:
                check_operator(scope)
                return tx
            case Reach.OWN:
                return tx


class InPath(NamedTuple):
    """A part of the path."""

    check: Callable[[str], str]
    description: str

    async def read(self, name: str, request: Request) -> str:
        """Check it."""
        return self.check(request.path_params[name])


class InHeader(NamedTuple):
    """A header, which is named as its parameter."""

    description: str

    async def read(self, name: str, request: Request) -> str | None:
        """Return it, if there is one."""
        return request.headers.get(name.replace("_", "-"))


class InQuery(NamedTuple):
    """All that follows the path."""

    kind: type[Query]

    async def read(self, name: str, request: Request) -> Query:
        """Read all parameters."""
        return self.kind.read(request.query_params.multi_items())


class InBody(NamedTuple):
    """The body."""

    kind: type[Body]
    required: bool = True

    async def read(self, name: str, request: Request) -> Body | None:
        """Read the body; null is the same as none."""
        written = await _json(request, required=self.required)
        if written is None:
            return None
        caller: Caller = request.state.caller
        body = self.kind.read(written)
        return body if caller.project is not None else _said_by_operator(body)


class TableInBody(NamedTuple):
    """A body whose endpoint reads it."""

    schema: Schema

    async def read(self, name: str, request: Request) -> Mapping[str, object]:
        """Return the object that the body is."""
        return table(await _json(request, required=True), "the body")


def _said_by_operator(body: Body) -> Body:
    """Mark what an operator has written freely: the people of projects do not read it."""
    texts = {each.name: getattr(body, each.name) for each in fields(body)}
    marked = {name: mark_operator_text(text) for name, text in texts.items() if isinstance(text, FreeText)}
    return replace(body, **marked) if marked else body


def inputs(handler: Callable[..., Any]) -> dict[str, Input]:
    """Return where the arguments of an endpoint come from, by the parameters' names."""
    parameters = inspect.signature(handler).parameters.items()
    return {name: _input(parameter.annotation) for name, parameter in parameters}


def _input(annotation: Any) -> Input:
    for each in getattr(annotation, "__metadata__", ()):
        if isinstance(each, Input):
            return each
    if annotation is Request:
        return FromRequest(lambda request: request)
    kinds = [kind for kind in get_args(annotation) or (annotation,) if kind is not NoneType]
    match kinds:
        case [type() as kind] if issubclass(kind, Query):
            return InQuery(kind)
        case [type() as kind] if issubclass(kind, Body):
            return InBody(kind, required=get_origin(annotation) is None)
    raise TypeError(f"a request has no {annotation!r}")


async def _json(request: Request, *, required: bool) -> Any:
    try:
        body = await request.body()
        written = json.loads(body) if body else None
    except json.JSONDecodeError as error:
        raise Invalid(f"the body is not JSON: {error.msg} at character {error.pos}") from None
    except (ValueError, RecursionError, ClientDisconnect):
        raise Invalid("the body cannot be read") from None
    if written is None and required:
        raise Invalid("the body: this is missing")
    return written


# As many as a person or a script reads at once; a fleet of any size is read page by page.
DEFAULT_LIMIT = 100
MAX_LIMIT = 1000


@declared
class PageQuery(Query):
    """Which page of a list."""

    limit: int = given(
        whole_in_query(minimum=1, maximum=MAX_LIMIT), "How many at most.", default=DEFAULT_LIMIT
    )
    after: str | None = maybe(CURSOR, "The `next` of the page before.")


@declared
class ListQuery(PageQuery):
    """Which page of a list, and whose things."""

    project: ProjectName | None = maybe(PROJECT, "Only of this project.")


def order_id(text: str) -> OrderId:
    """Return the id of an order, in any case; NotFound for what cannot be one."""
    return OrderId(_guid("order", text))


def event_id(text: str) -> EventId:
    """Return the id of an event, in any case; NotFound for what cannot be one."""
    return EventId(_guid("event", text))


def _guid(what: str, text: str) -> str:
    if not is_guid(text):
        raise NotFound(f"{what} {text[:100]} does not exist")
    return text.upper()


def _name(what: str, text: str) -> str:
    """Return a name; what cannot be one is the name of nothing, and the store is not asked."""
    if not is_name(text):
        raise NotFound(f'{what} "{text[:100]}" does not exist')
    return text


def _named(what: str) -> InPath:
    return InPath(partial(_name, what), "Its name.")


def _numbered(what: str) -> InPath:
    return InPath(partial(_guid, what), "Its id: a GUID, in any case.")


MachineInPath = Annotated[str, _named("machine")]
# One that may not be there yet: its declaration says what is wrong with its name.
NewMachineInPath = Annotated[str, InPath(str, "Its name.")]
# The same of a host, group or project.
DeclaredNameInPath = Annotated[str, InPath(name, "Its name.")]
GroupInPath = Annotated[str, _named("group")]
HostInPath = Annotated[str, _named("host")]
ProjectInPath = Annotated[ProjectName, _named("project")]
TokenInPath = Annotated[str, _named("token")]
OrderInPath = Annotated[OrderId, _numbered("order")]
EventInPath = Annotated[EventId, _numbered("event")]
HoldInPath = Annotated[str, _numbered("hold")]
WebhookInPath = Annotated[WebhookId, _numbered("webhook")]
RolloutInPath = Annotated[str, _numbered("rollout")]
