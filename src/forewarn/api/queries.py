"""What may stand in a path, and what several lists take after it."""

from functools import partial
from typing import Annotated

from forewarn.api.declared import Query, declared, given, maybe
from forewarn.api.inputs import InPath
from forewarn.api.request_fields import CURSOR, PROJECT, whole_in_query
from forewarn.core.errors import NotFound
from forewarn.core.push import WebhookId
from forewarn.core.words import EventId, OrderId, ProjectName
from forewarn.wire.texts import is_guid, is_name

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
GroupInPath = Annotated[str, _named("group")]
HostInPath = Annotated[str, _named("host")]
ProjectInPath = Annotated[ProjectName, _named("project")]
TokenInPath = Annotated[str, _named("token")]
OrderInPath = Annotated[OrderId, _numbered("order")]
EventInPath = Annotated[EventId, _numbered("event")]
HoldInPath = Annotated[str, _numbered("hold")]
WebhookInPath = Annotated[WebhookId, _numbered("webhook")]
RolloutInPath = Annotated[str, _numbered("rollout")]
