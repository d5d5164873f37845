"""What may stand in a path and after it: names, ids and query parameters; anything unknown is an error."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import Path
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from forewarn.api.field_types import (
    LARGEST,
    Cursor,
    GroupField,
    Guid,
    HostField,
    MachineField,
    Name,
    ProjectField,
    Time,
)
from forewarn.core.errors import NotFound
from forewarn.core.model.webhook import WebhookId
from forewarn.core.words import EventId, Kind, OrderId, OrderState, ProjectName
from forewarn.wire.fields import is_name
from forewarn.wire.guid import is_guid

# As many as a person or a script reads at once; a fleet of any size is read page by page.
DEFAULT_LIMIT = 100
MAX_LIMIT = 1000


class Parameters(BaseModel):
    """Query parameters; an empty one is none."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, given: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in given.items() if value not in ("", [""])}


class PageQuery(Parameters):
    """Which page of a list."""

    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="How many at most.")
    after: Cursor | None = Field(None, description="The `next` of the page before.")


class ListQuery(PageQuery):
    """Which page of a list, and whose things."""

    project: ProjectField | None = Field(None, description="Only of this project.")


class MachinesQuery(ListQuery):
    """Which machines."""

    group: GroupField | None = Field(None, description="Only of this group.")
    host: HostField | None = Field(None, description="Only on this host.")


class OrdersQuery(ListQuery):
    """Which orders."""

    state: OrderState | None = Field(None, description="Only orders in this state.")


class RolloutsQuery(PageQuery):
    """Which rollouts."""

    open: bool = Field(default=False, description="Only those that are not over.")


class RolloutQuery(Parameters):
    """What to show of a rollout."""

    expected: bool = Field(default=False, description="With the times to be expected of coming waves.")


class HistoryQuery(ListQuery):
    """Which records."""

    machine: MachineField | None = Field(None, description="Only of this machine.")
    event: Guid | None = Field(None, description="Only of this event.")
    order: Guid | None = Field(None, description="Only of this order.")
    kind: list[Kind] = Field(default_factory=list, description="Only of these kinds.")
    since: Time | None = Field(
        None, description="Only from this time on (RFC 3339); a record's number is given by `above`."
    )
    above: int | None = Field(
        None, ge=0, le=LARGEST, description="Only after this number, and oldest first; 0 for all."
    )


class StreamQuery(Parameters):
    """Which records, and from where on."""

    project: ProjectField | None = Field(None, description="Only of this project.")
    machine: MachineField | None = Field(None, description="Only of this machine.")
    kind: list[Kind] = Field(default_factory=list, description="Only of these kinds.")
    last_event_id: int | None = Field(
        None, ge=0, le=LARGEST, description="As the header, for readers that cannot send it."
    )
    since: int | None = Field(
        None, ge=0, le=LARGEST, description="Only after this record's number; 0 for all."
    )


class ProjectQuery(Parameters):
    """Whose machine."""

    project: ProjectField | None = Field(None, description="Its project; needed where several have the name.")


class RehearsalQuery(Parameters):
    """Which rehearsal."""

    id: Name | None = Field(None, description="Only if it is this one; 404 otherwise.")


class CalendarQuery(Parameters):
    """Whose events."""

    project: ProjectField | None = Field(None, description="Only of this project; left out: all you may see.")


class FleetQuery(Parameters):
    """How a fleet is applied."""

    dry_run: bool = Field(default=False, description="Only say what would change.")


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


def _checked(check: Callable[[str, str], str], what: str) -> AfterValidator:
    return AfterValidator(partial(check, what))


_NAME = Path(description="Its name.")
_ID = Path(description="Its id: a GUID, in any case.")

MachineInPath = Annotated[str, _NAME, _checked(_name, "machine")]
GroupInPath = Annotated[str, _NAME, _checked(_name, "group")]
HostInPath = Annotated[str, _NAME, _checked(_name, "host")]
ProjectInPath = Annotated[ProjectName, _NAME, _checked(_name, "project")]
TokenInPath = Annotated[str, _NAME, _checked(_name, "token")]
OrderInPath = Annotated[OrderId, _ID, _checked(_guid, "order")]
EventInPath = Annotated[EventId, _ID, _checked(_guid, "event")]
HoldInPath = Annotated[str, _ID, _checked(_guid, "hold")]
WebhookInPath = Annotated[WebhookId, _ID, _checked(_guid, "webhook")]
RolloutInPath = Annotated[str, _ID, _checked(_guid, "rollout")]
