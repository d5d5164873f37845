"""Events as an iCalendar feed (RFC 5545)."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from forewarn.core.basic_types import EventStatus
from forewarn.core.guests.document import resource_names
from forewarn.core.model.event import Event

MEDIA_TYPE = "text/calendar; charset=utf-8"
PRODUCT = "-//forewarn//forewarn//EN"
# How often calendars should reload the feed (RFC 7986): less than the shortest useful notice.
REFRESH = "PT5M"
# Octets without the line break (RFC 5545, section 3.1).
LONGEST_LINE = 75


def calendar(name: str, events: Iterable[tuple[Event, Sequence[datetime]]]) -> bytes:
    """Write a calendar with one entry for each event. Each event comes with the times of its deferrals."""
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        f"PRODID:{PRODUCT}",
        "CALSCALE:GREGORIAN",
        f"NAME:{escaped(name)}",
        f"X-WR-CALNAME:{escaped(name)}",
        f"REFRESH-INTERVAL;VALUE=DURATION:{REFRESH}",
        *(line for event, deferred_at in events for line in _entry(event, deferred_at)),
        "END:VCALENDAR",
    ]
    return b"".join(folded(line) + b"\r\n" for line in lines)


def escaped(text: str) -> str:
    """Escape separators in a text (section 3.3.11)."""
    for special, written in (("\\", "\\\\"), (";", "\\;"), (",", "\\,"), ("\r\n", "\\n"), ("\n", "\\n")):
        text = text.replace(special, written)
    return text


def folded(line: str) -> bytes:
    """Fold a long line between characters. Continuation lines begin with a blank."""
    pieces, piece = [], b""
    for character in line:
        octets = character.encode()
        if len(piece) + len(octets) > LONGEST_LINE:
            pieces.append(piece)
            piece = b" "
        piece += octets
    return b"\r\n".join([*pieces, piece])


def _entry(event: Event, deferred_at: Sequence[datetime]) -> Iterator[str]:
    started = event.status is EventStatus.STARTED
    names = ", ".join(resource_names(event))
    yield "BEGIN:VEVENT"
    yield f"UID:{event.id}"
    # Calendars update a known entry only if these have changed.
    changed_at = _moment(event.started_at or max((event.announced_at, *deferred_at)))
    yield f"DTSTAMP:{changed_at}"
    yield f"LAST-MODIFIED:{changed_at}"
    yield f"SEQUENCE:{len(deferred_at) + int(started)}"
    yield f"DTSTART:{_moment(event.started_at or event.not_before)}"
    # Without a duration, the entry is a moment.
    if event.duration_seconds >= 0:
        yield f"DURATION:PT{event.duration_seconds}S"
    yield f"SUMMARY:{escaped(f'{event.type.value} of {names}')}"
    yield f"DESCRIPTION:{escaped(_description(event))}"
    yield f"CATEGORIES:{event.type.value}"
    # Until its start the event can be cancelled.
    yield f"STATUS:{'CONFIRMED' if started else 'TENTATIVE'}"
    yield "TRANSP:TRANSPARENT"
    yield "END:VEVENT"


def _description(event: Event) -> str:
    state = "Started" if event.started_at else "Approved" if event.approved else "Not approved yet"
    lines = [event.description] if event.description else []
    return "\n".join([*lines, f"{state}. Source: {event.source.value}. Event {event.id}."])


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"
