"""A lenient parser for documents of every api-version, of forewarn and of Azure.

An answer that is no document raises `Unreadable`. Each event is parsed by itself. An event that cannot be
parsed is in `Document.unreadable`, so that a caller does not take an event that is missing from
`Document.events` for over.
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
# A preview: an endpoint that does not support it answers 404.
PREVIEW_VERSION = "2024-07-09"
# The only version that puts an underscore before machine names.
UNDERSCORED_VERSION = "2017-03-01"

# How many characters of an unreadable answer to show.
EXCERPT_LENGTH = 60

Choice = TypeVar("Choice", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event that is scheduled for machines or has started.

    `type`, `status` and `source` are members of their enum if the word is known, in any case. Unknown words
    stay strings.
    """

    id: str
    type: EventType | str
    status: EventStatus | str
    resources: tuple[str, ...]  # names of machines
    not_before: datetime | None = None  # aware, UTC; None once it has started
    description: str = ""
    source: Source | str = ""  # empty if the version has none
    duration: timedelta | None = None  # of the interruption; None if unknown
    resource_type: str = "VirtualMachine"

    @property
    def started(self) -> bool:
        """Whether the impact may come at any time."""
        return self.status == EventStatus.STARTED

    @property
    def status_is_known(self) -> bool:
        """Whether this version of forewarn knows the status."""
        return self.status in tuple(EventStatus)

    @property
    def type_is_known(self) -> bool:
        """Whether this version of forewarn knows the type."""
        return isinstance(self.type, EventType)

    def names(self, machine: str) -> bool:
        """Return whether the event names a machine, in any case."""
        return machine.casefold() in (name.casefold() for name in self.resources)

    def has_id(self, id_: str) -> bool:
        """Return whether the event has this id, in any case."""
        return self.id.casefold() == id_.casefold()

    def seconds_left(self, now: datetime) -> float | None:
        """Return the seconds until the event may start: 0 once it has, None if that is not known.

        It is not known for an unknown status: such an event may have started.
        """
        if self.started:
            return 0.0
        if not self.status_is_known:
            return None
        return None if self.not_before is None else max(0.0, (self.not_before - now).total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableEvent:
    """An event that cannot be parsed."""

    why: str
    id: str = ""  # empty if it cannot be parsed either


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """All events of the group of a machine.

    A different incarnation means a change, even if it is lower.
    """

    incarnation: int
    events: tuple[Event, ...] = ()
    unreadable: tuple[UnreadableEvent, ...] = ()  # these are not over: the document lists them

    def event(self, id_: str) -> Event | None:
        """Return the event with an id."""
        return next((event for event in self.events if event.has_id(id_)), None)

    def naming(self, machine: str) -> tuple[Event, ...]:
        """Return the events that name a machine."""
        return tuple(event for event in self.events if event.names(machine))


def parse_document(body: bytes, *, version: str = NEWEST_VERSION) -> Document:
    """Parse a document, whatever its content type."""
    whole = _members(_json(body), "the answer")
    if "events" not in whole:
        raise Unreadable(f"a document without Events: {excerpt(body)}")
    events = whole["events"]
    if not isinstance(events, list):
        raise Unreadable(f"Events is not a list: {excerpt(body)}")
    incarnation = _number(whole.get("documentincarnation"))  # some endpoints write numbers as strings
    if incarnation is None:
        shown = _shown(whole.get("documentincarnation"))
        raise Unreadable(f"DocumentIncarnation is {shown}, not a number")
    readable: list[Event] = []
    unreadable: list[UnreadableEvent] = []
    for each in events:
        try:
            readable.append(parse_event(each, version=version))
        except Unreadable as error:
            unreadable.append(UnreadableEvent(why=str(error), id=_id_of(each)))
    return Document(incarnation=incarnation, events=tuple(readable), unreadable=tuple(unreadable))


def _id_of(value: object) -> str:
    """Return the id of an unreadable event; empty if it has none."""
    try:
        return _text(_members(value, "an event"), "eventid")
    except Unreadable:
        return ""


def excerpt(body: bytes, *, length: int = EXCERPT_LENGTH) -> str:
    """Return the beginning of an answer, for messages."""
    text = body[: length * 4].decode(errors="replace")
    shown = on_one_line(text).strip()
    return shown if len(shown) <= length else f"{shown[:length]}…"


def _json(body: bytes) -> object:
    if not body.strip():
        raise Unreadable("an empty answer")
    try:
        # Some answers begin with a byte order mark.
        return json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise Unreadable(f"an answer that is not JSON: {excerpt(body)}") from None


def _members(value: object, what: str) -> Mapping[str, Any]:
    """Return the members of a JSON object by lower-case name."""
    if not isinstance(value, dict):
        raise Unreadable(f"{what} is not a JSON object")
    return {name.lower(): member for name, member in value.items()}


def parse_event(value: object, *, version: str = NEWEST_VERSION) -> Event:
    """Parse one event of a document; Unreadable if that fails."""
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
        # NotBefore has no meaning once the event has started.
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
        raise Unreadable(f"{name} is {_shown(value)}, not a string")
    return _valid_text(value, name)


def _valid_text(text: str, name: str) -> str:
    """Refuse a lone surrogate, which JSON can express but UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unreadable(f"{name} is {_shown(text)}, which has a lone surrogate") from None
    return text


def _resources(value: object, *, version: str) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if names is None:
        return ()
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Unreadable(f"Resources is {_shown(value)}, not a list of names")
    names = [_valid_text(name, "Resources") for name in names]
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
    """Parse a time of any version (RFC 1123), or of early documentation (ISO 8601)."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = read(text.strip())
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


def _shown(value: object) -> str:
    return excerpt(repr(value).encode(errors="replace"))
