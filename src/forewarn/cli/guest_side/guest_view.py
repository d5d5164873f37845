"""How a person in a machine is shown its events: a table, drawn while it changes, or line by line."""

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
    from forewarn.sdk.guest_errors import Unavailable

NOTHING = "No events: nothing is going to happen to this machine's group."
NOTHING_THEN = "There were no events then; what comes now is not known."
REDRAWN = 4  # times a second


def as_json(document: "Document", client: "GuestClient") -> dict[str, Any]:
    """Write a document for a program."""
    odd = [{"id": each.id or None, "why": each.why} for each in document.unreadable]
    return {
        "incarnation": document.incarnation,
        "events": [_event(event, client) for event in document.events],
        **({"unreadable": odd} if odd else {}),
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
    for line in unreadable(document):
        terminal.print_error(line)


def unreadable(document: "Document") -> list[str]:
    """Return a line for each event that cannot be read."""
    return [f"an event cannot be read ({each.why})" for each in document.unreadable]


def event_table(client: "GuestClient") -> "terminal.ItemTable[Event]":
    """Make the table of events, with countdowns by the endpoint's time."""
    return terminal.ItemTable(
        columns={
            "EVENT": lambda event: terminal.short(event.id),
            "TYPE": lambda event: event.type,
            "STATUS": lambda event: event.status,
            "MACHINES": lambda event: event.resources,
            "STARTS": lambda event: starts(event, client),
            "LASTS": lambda event: event.duration and format_span_briefly(event.duration.total_seconds()),
            "SOURCE": lambda event: event.source,
            "DESCRIPTION": lambda event: event.description,
        },
        wraps=("MACHINES", "DESCRIPTION"),
        spare=("DESCRIPTION", "SOURCE", "LASTS"),
        empty=NOTHING,
    )


def starts(event: "Event", client: "GuestClient") -> str:
    """Return when an event starts, as seen from now."""
    if event.status == EventStatus.STARTED:
        return "has started"
    left = client.seconds_left(event)
    if left is None:
        return "at any time"
    return f"in {format_span_briefly(left)}" if round(left) else "now"


# As it changes


def print_changes(client: "GuestClient") -> None:
    """Print each document as a line of JSON."""
    for document in client.watch(trouble=_complain):
        print(json.dumps(as_json(document, client), ensure_ascii=False), flush=True)


def print_documents(client: "GuestClient") -> None:
    """Print each document as it comes."""
    for document in client.watch(trouble=_complain):
        terminal.echo(f"{client.server_now():%H:%M:%S} UTC, document {document.incarnation}")
        show_events(document, client)
        sys.stdout.flush()


def draw(client: "GuestClient") -> None:
    """Draw the document, and count down."""
    from rich.live import Live

    drawing = _Drawing(client)
    with Live(get_renderable=drawing.drawn, refresh_per_second=REDRAWN):
        for document in client.watch(trouble=drawing.note):
            drawing.document = document


class _Drawing:
    """What is drawn: the newest document, or what keeps it from coming."""

    def __init__(self, client: "GuestClient") -> None:
        self._client = client
        self._trouble: str | None = None
        self.document: Document | None = None

    def note(self, trouble: "Unavailable | None") -> None:
        """Take note that the endpoint is away, or is back."""
        self._trouble = None if trouble is None else str(trouble)

    def drawn(self) -> "RenderableType":
        """Draw the present state."""
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
        """Return when the endpoint last answered, in its own time."""
        answered = self._client.last_answered
        ago = 0.0 if answered is None else monotonic() - answered
        return self._client.server_now() - timedelta(seconds=ago)

    def _events(self) -> "RenderableType":
        from rich.text import Text

        if self.document is None:
            return Text("Asking; the first answer may take two minutes …")
        odd = [Text(line) for line in unreadable(self.document)]
        if not self.document.events and not odd:
            return Text(NOTHING if self._trouble is None else NOTHING_THEN)
        lines = event_table(self._client).lines(self.document.events) if self.document.events else []
        return Text("\n").join([*lines, *odd])


def _complain(trouble: "Unavailable | None") -> None:
    terminal.print_error("the endpoint answers again" if trouble is None else str(trouble))


# Approving


def is_wanted(event: "Event", client: "GuestClient") -> bool:
    """Show an event and ask whether it may start."""
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
    return click.confirm("May it start now?", default=False)


def show_approved(events: "Sequence[Event]") -> None:
    """Show what was approved."""
    if not events:
        terminal.echo("Nothing was approved.")
    for event in events:
        named = formatting.listing(list(event.resources))
        terminal.echo(f"Approved: {event.type} of {named} ({terminal.short(event.id)}).")
