"""The names and ids in a path, and how lists are answered."""

from collections.abc import Callable, Iterable
from typing import Annotated, TypeVar

from fastapi import Path
from fastapi.responses import JSONResponse

from forewarn.core.errors import NotFound
from forewarn.core.model.webhook import WebhookId
from forewarn.core.words import EventId, OrderId, ProjectName
from forewarn.wire.fields import is_name
from forewarn.wire.guid import is_guid

T = TypeVar("T")

Name = Annotated[str, Path(description="Its name.")]
Id = Annotated[str, Path(description="Its id: a GUID, in any case.")]


def known_name(text: str, what: str) -> str:
    """Take a name from a path; what cannot be a name names nothing, and the store is not bothered."""
    if not is_name(text):
        raise NotFound(f'{what} "{text[:100]}" does not exist')
    return text


def order_id(text: str) -> OrderId:
    """Take an order's id from a path."""
    return OrderId(_guid(text, "order"))


def event_id(text: str) -> EventId:
    """Take an event's id from a path."""
    return EventId(_guid(text, "event"))


def hold_id(text: str) -> str:
    """Take a hold's id from a path."""
    return _guid(text, "hold")


def webhook_id(text: str) -> WebhookId:
    """Take a webhook's id from a path."""
    return WebhookId(_guid(text, "webhook"))


def rollout_id(text: str) -> str:
    """Take a rollout's id from a path."""
    return _guid(text, "rollout")


def project_name(text: str | None) -> ProjectName | None:
    """Take a project's name from a query."""
    return None if text is None else ProjectName(known_name(text, "project"))


def listed(
    what: str, page: Iterable[T], after: str | None, show: Callable[[T], object], **more: object
) -> JSONResponse:
    """Answer with a page of a list and the cursor of the next, and what else is to be said of it."""
    return JSONResponse({what: [show(each) for each in page], "next": after, **more})


def _guid(text: str, what: str) -> str:
    if not is_guid(text):
        raise NotFound(f"{what} {text[:100]} does not exist")
    return text.upper()
