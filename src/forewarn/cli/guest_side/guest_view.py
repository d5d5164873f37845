"""How `forewarn guest` shows events: as a table, live, or line by line."""

import json
import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from forewarn.cli import formatting, terminal
from forewarn.clock import monotonic
from forewarn.core.basic_types import EventStatus
from forewarn.core.time_formats import format_span_briefly

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from forewarn.sdk.blocking_client import GuestClient
    from forewarn.sdk.documents import Document, Event
    from forewarn.sdk.guest_errors import EndpointUnavailable

NO_EVENTS = "No events for the group of this machine."
NO_EVENTS_THEN = "No events at that time; the current ones are unknown."
REDRAWS_PER_SECOND = 4


def as_json(document: "Document", client: "GuestClient") -> dict[str, Any]:
    """Return the JSON form of a document."""
    unreadable = [{"id": each.id or None, "why": each.why} for each in document.unreadable]
    return {
        "incarnation": document.incarnation,
        "events": [_event(event, client) for event in document.events],
        **({"unreadable": unreadable} if unreadable else {}),
    }


def _event(event: "Event", client: "GuestClient") -> dict[str, Any]:
    left = client.seconds_left(event)
    return {
        "id": event.id,
        "type": str(event.type),
        "status": str(event.status),
        "resources": list(event.resources),
        "not_before": None if event.not_before is None else f"{event.not_before:%Y-%m-%dT%H:%M:%SZ}",
        "seconds_left": None if left is None else round(left),
        "description": event.description,
        "source": str(event.source),
        "duration_seconds": -1 if event.duration is None else round(event.duration.total_seconds()),
    }


def show_events(document: "Document", client: "GuestClient") -> None:
    """Print a table with countdowns."""
    event_table(client).print(document.events)
    for line in unreadable_lines(document):
        terminal.print_error(line)


def unreadable_lines(document: "Document") -> list[str]:
    """Return a line for each unreadable event."""
    return [f"unreadable event ({each.why})" for each in document.unreadable]


def event_table(client: "GuestClient") -> "terminal.ItemTable[Event]":
    """Return the table of events, with countdowns in the endpoint's time."""
    return terminal.ItemTable(
        columns={
            "EVENT": lambda event: terminal.short(event.id),
            **terminal.columns("TYPE STATUS MACHINES=resources"),
            "STARTS": lambda event: starts(event, client),
            "LASTS": lambda event: event.duration and format_span_briefly(event.duration.total_seconds()),
            "SOURCE": lambda event: event.source,
            "DESCRIPTION": lambda event: event.description,
        },
        wraps=("MACHINES", "DESCRIPTION"),
        spare=("DESCRIPTION", "SOURCE", "LASTS"),
        empty=NO_EVENTS,
    )


def starts(event: "Event", client: "GuestClient") -> str:
    """Return when an event starts, relative to now."""
    if event.status == EventStatus.STARTED:
        return "has started"
    left = client.seconds_left(event)
    if left is None:
        return "at any time"
    return f"in {format_span_briefly(left)}" if round(left) else "now"


def print_changes(client: "GuestClient") -> None:
    """Print each document as a line of JSON."""
    for document in client.watch(trouble=_complain):
        print(json.dumps(as_json(document, client), ensure_ascii=False), flush=True)


def print_documents(client: "GuestClient") -> None:
    """Print each document as it arrives."""
    for document in client.watch(trouble=_complain):
        terminal.echo(f"{client.server_now():%H:%M:%S} UTC, document {document.incarnation}")
        show_events(document, client)
        sys.stdout.flush()


def draw(client: "GuestClient") -> None:
    """Draw the document, with countdowns."""
    from rich.live import Live

    drawing = _Drawing(client)
    with Live(get_renderable=drawing.drawn, refresh_per_second=REDRAWS_PER_SECOND):
        for document in client.watch(trouble=drawing.note):
            drawing.document = document


class _Drawing:
    """The newest document, or the reason why it is missing."""

    def __init__(self, client: "GuestClient") -> None:
        self._client = client
        self._trouble: str | None = None
        self.document: Document | None = None

    def note(self, trouble: "EndpointUnavailable | None") -> None:
        """Take note that the endpoint is away, or is back."""
        self._trouble = None if trouble is None else str(trouble)

    def drawn(self) -> "RenderableType":
        """Draw the current state."""
        from rich.console import Group
        from rich.text import Text

        if self._trouble is None or self.document is None:
            head = f"{self._client.url}, {self._client.server_now():%H:%M:%S} UTC"
        else:
            head = f"{self._client.url}, last known at {self._last_known():%H:%M:%S} UTC"
        parts: list[RenderableType] = [Text(head, style="dim"), self._events()]
        if self._trouble is not None:
            parts.append(Text(self._trouble, style="bold red"))
        return Group(*parts)

    def _last_known(self) -> datetime:
        """Return the endpoint's time of its last answer."""
        answered = self._client.last_answered
        ago = 0.0 if answered is None else monotonic() - answered
        return self._client.server_now() - timedelta(seconds=ago)

    def _events(self) -> "RenderableType":
        from rich.text import Text

        if self.document is None:
            return Text("Waiting for the first answer, which may take two minutes …")
        unreadable = [Text(line) for line in unreadable_lines(self.document)]
        if not self.document.events and not unreadable:
            return Text(NO_EVENTS if self._trouble is None else NO_EVENTS_THEN)
        lines = event_table(self._client).lines(self.document.events) if self.document.events else []
        return Text("\n").join([*lines, *unreadable])


def _complain(trouble: "EndpointUnavailable | None") -> None:
    terminal.print_error("the endpoint answers again" if trouble is None else str(trouble))


def is_wanted(event: "Event", client: "GuestClient") -> bool:
    """Show an event, and ask whether to approve it."""
    import click

    terminal.details(
        [
            ("event", event.id),
            ("type", str(event.type)),
            ("machines", list(event.resources)),
            ("starts", starts(event, client)),
            ("source", str(event.source)),
            ("description", event.description),
        ]
    )
    return click.confirm("Approve this event?", default=False)


def show_approved(events: "Sequence[Event]") -> None:
    """Show the approved events."""
    if not events:
        terminal.echo("No event was approved.")
    for event in events:
        named = formatting.listing(list(event.resources))
        terminal.echo(f"Approved: {event.type} of {named} ({terminal.short(event.id)}).")
