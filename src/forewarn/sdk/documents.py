"""Documents of every api-version, read leniently.

An answer may come from any version, from Azure or from here, and may say more next year than it does today.
An answer that is no document is an `Unreadable`. Each event is read by itself: one that cannot be read is in
`Document.unreadable`, so that nothing that is missing from `Document.events` is taken for over.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, TypeVar

from forewarn.core.basic_types import EventStatus, EventType, Source
from forewarn.core.text_formats import on_one_line
from forewarn.sdk.guest_errors import Unreadable

NEWEST_VERSION = "2020-07-01"
# Not generally available: an endpoint that does not offer it answers 404.
PREVIEW_VERSION = "2024-07-09"
# The one version that puts an underscore before names.
UNDERSCORED_VERSION = "2017-03-01"

# How much of an unreadable answer is worth showing.
GLIMPSE = 60

Choice = TypeVar("Choice", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that is going to happen to machines, or is happening.

    `type`, `status` and `source` are members of their enum where the word is known, in whatever case it came,
    and else the word itself.
    """

    id: str
    type: EventType | str
    status: EventStatus | str
    resources: tuple[str, ...]  # names of machines
    not_before: datetime | None = None  # aware, UTC; None once it has started
    description: str = ""
    source: Source | str = ""  # empty where the version does not tell
    duration: timedelta | None = None  # how long the interruption is; None if unknown
    resource_type: str = "VirtualMachine"

    @property
    def started(self) -> bool:
        """Whether the impact may come at any moment."""
        return self.status == EventStatus.STARTED

    @property
    def status_is_known(self) -> bool:
        """Whether its status is one that this version of forewarn knows."""
        return self.status in tuple(EventStatus)

    @property
    def type_is_known(self) -> bool:
        """Whether its type is one that this version of forewarn knows."""
        return isinstance(self.type, EventType)

    def names(self, machine: str) -> bool:
        """Check whether a machine is named in it, in whatever case."""
        return machine.casefold() in (name.casefold() for name in self.resources)

    def has_id(self, id_: str) -> bool:
        """Check whether this is the event's id, in whatever case."""
        return self.id.casefold() == id_.casefold()

    def seconds_left(self, now: datetime) -> float | None:
        """Return the seconds until it may start: 0 once it has, None if the document does not say.

        Of an event whose status is unknown it does not: the event may have started.
        """
        if self.started:
            return 0.0
        if not self.status_is_known:
            return None
        return None if self.not_before is None else max(0.0, (self.not_before - now).total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableEvent:
    """An event of a document that cannot be read, with as much of it as can."""

    why: str
    id: str = ""  # empty if that cannot be read either


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """All events of a machine's group.

    Compare it with the one before: an incarnation that differs, lower too, is news.
    """

    incarnation: int
    events: tuple[Event, ...] = ()
    unreadable: tuple[UnreadableEvent, ...] = ()  # these go on too: they are listed

    def event(self, id_: str) -> Event | None:
        """Return the event with an id."""
        return next((event for event in self.events if event.has_id(id_)), None)

    def naming(self, machine: str) -> tuple[Event, ...]:
        """Return the events that name a machine."""
        return tuple(event for event in self.events if event.names(machine))


def parse_document(body: bytes, *, version: str = NEWEST_VERSION) -> Document:
    """Read a document; the type of its content does not matter."""
    whole = _members(_json(body), "the answer")
    if "events" not in whole:
        raise Unreadable(f"a document without Events: {glimpse(body)}")
    events = whole["events"]
    if not isinstance(events, list):
        raise Unreadable(f"Events is no list: {glimpse(body)}")
    read = [_event_or_not(each, version=version) for each in events]
    return Document(
        incarnation=_incarnation(whole.get("documentincarnation")),
        events=tuple(each for each in read if isinstance(each, Event)),
        unreadable=tuple(each for each in read if isinstance(each, UnreadableEvent)),
    )


def _event_or_not(value: object, *, version: str) -> Event | UnreadableEvent:
    try:
        return parse_event(value, version=version)
    except Unreadable as error:
        return UnreadableEvent(why=str(error), id=_id_of(value))


def _id_of(value: object) -> str:
    """Return the id of an event that cannot be read; empty if it has none."""
    try:
        return _text(_members(value, "an event"), "eventid")
    except Unreadable:
        return ""


def glimpse(body: bytes, *, length: int = GLIMPSE) -> str:
    """Return the beginning of an answer, for people to read."""
    text = body[: length * 4].decode(errors="replace")
    shown = on_one_line(text).strip()
    return shown if len(shown) <= length else f"{shown[:length]}…"


def _json(body: bytes) -> object:
    if not body.strip():
        raise Unreadable("an empty answer")
    try:
        # Some put a byte order mark before it.
        return json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise Unreadable(f"an answer that is no JSON: {glimpse(body)}") from None


def _members(value: object, what: str) -> Mapping[str, Any]:
    """Take an object apart, by names in lower case."""
    if not isinstance(value, dict):
        raise Unreadable(f"{what} is no JSON object")
    return {name.lower(): member for name, member in value.items()}


def _incarnation(value: object) -> int:
    """Read the incarnation; some write numbers as strings."""
    number = _number(value)
    if number is None:
        raise Unreadable(f"DocumentIncarnation is {_shown(value)}, not a number")
    return number


def parse_event(value: object, *, version: str = NEWEST_VERSION) -> Event:
    """Read one event of a document; raises Unreadable."""
    members = _members(value, "an event")
    status = _choice(EventStatus, _text(members, "eventstatus"))
    id_ = _text(members, "eventid")
    if not id_:
        raise Unreadable("an event without EventId")
    return Event(
        id=id_,
        type=_choice(EventType, _text(members, "eventtype")),
        status=status,
        resources=_resources(members.get("resources"), version=version),
        # An event that has started has no time any more, whatever is written there.
        not_before=None if status == EventStatus.STARTED else _moment(members.get("notbefore"), id_),
        description=_text(members, "description"),
        source=_choice(Source, _text(members, "eventsource")),
        duration=_duration(members.get("durationinseconds")),
        resource_type=_text(members, "resourcetype") or "VirtualMachine",
    )


def _choice(kind: type[Choice], word: str) -> Choice | str:
    return next((member for member in kind if member.value.lower() == word.lower()), word)


def _text(members: Mapping[str, Any], name: str) -> str:
    value = members.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Unreadable(f"{name} is {_shown(value)}, not a text")
    return _whole(value, name)


def _whole(text: str, name: str) -> str:
    """Refuse half a character, which JSON can express, and which can be neither encoded nor passed on."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unreadable(f"{name} is {_shown(text)}, which holds half a character") from None
    return text


def _resources(value: object, *, version: str) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if names is None:
        return ()
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Unreadable(f"Resources is {_shown(value)}, not a list of names")
    names = [_whole(name, "Resources") for name in names]
    if version == UNDERSCORED_VERSION:
        return tuple(name.removeprefix("_") for name in names)
    return tuple(names)


def _duration(value: object) -> timedelta | None:
    seconds = _number(value)
    try:
        return None if seconds is None or seconds < 0 else timedelta(seconds=seconds)
    except OverflowError:
        return None


def _number(value: object) -> int | None:
    match value:
        case bool():
            return None
        case int():
            return value
        case float() if value.is_integer():
            return int(value)
        case str() if re.fullmatch(r"[+-]?[0-9]{1,18}", value.strip()):
            return int(value)
        case _:
            return None


def _moment(value: object, id_: str) -> datetime | None:
    if value is None or value == "":
        return None
    moment = parse_moment(value) if isinstance(value, str) else None
    if moment is None:
        raise Unreadable(f"event {id_}: NotBefore is {_shown(value)}, not a time")
    return moment


def parse_moment(text: str) -> datetime | None:
    """Read a time as every version writes it (RFC 1123), or as early documentation did (ISO 8601)."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = read(text.strip())
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


def _shown(value: object) -> str:
    return glimpse(repr(value).encode(errors="replace"))
