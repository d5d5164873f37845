"""The entries of the journal: one for each thing that the agent sees, begins or completes."""

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from forewarn.agent.facts import as_wire
from forewarn.agent.handling import Side
from forewarn.sdk.documents import Event, parse_event
from forewarn.sdk.guest_errors import Unreadable

# The reason of an attempt that ended because its event had left.
GONE = "the event has left"


class Ending(StrEnum):
    """How an attempt ended."""

    READY = "ready"
    AGAIN = "again"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenUp:
    """A document lists a new event for this machine."""

    event: Event
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A document lists a known event with changes."""

    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class _AttemptEntry:
    event: str
    side: Side
    handler: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun(_AttemptEntry):
    """The agent is about to run a handler."""

    attempt: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRunning(_AttemptEntry):
    """A handler's program runs as a process, which waits until this entry is written."""

    pid: int
    started: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    """A handler is about to change a thing that recovery must restore."""

    event: str
    handler: str
    thing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(_AttemptEntry):
    """An attempt has ended."""

    ending: Ending
    at: datetime
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """The agent has approved the event."""

    event: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartExpected:
    """A document lists an event in this boot, and its restart is still to come."""

    event: str
    boot: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarted:
    """The machine has restarted for the event, which documents still list."""

    event: str
    boot: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Documents no longer list the event for this machine."""

    event: str
    at: datetime
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """Recovery from the event is complete."""

    event: str
    at: datetime


Entry: TypeAlias = (
    TakenUp
    | Changed
    | Begun
    | ProgramRunning
    | Owed
    | Ended
    | Approved
    | RestartExpected
    | Restarted
    | Left
    | Over
)

_KINDS: Mapping[str, type[Entry]] = {
    "taken-up": TakenUp,
    "changed": Changed,
    "begun": Begun,
    "running": ProgramRunning,
    "owed": Owed,
    "ended": Ended,
    "approved": Approved,
    "restart-expected": RestartExpected,
    "restarted": Restarted,
    "left": Left,
    "over": Over,
}
_MOST = 2**31 - 1
_NAMES = {kind: name for name, kind in _KINDS.items()}


def key(event: Event | str) -> str:
    """Return the key of an event; event ids are case-insensitive."""
    return (event if isinstance(event, str) else event.id).upper()


def as_json(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON."""
    written: dict[str, Any] = {"entry": _NAMES[type(entry)]}
    for each in fields(entry):
        value = getattr(entry, each.name)
        match value:
            case Event():
                written[each.name] = as_wire(value)
            case datetime():
                written[each.name] = value.isoformat()
            case _:
                written[each.name] = value
    return written


def from_json(parsed: Any) -> Entry:
    """Read an entry; raise ValueError if it is invalid."""
    try:
        kind = _KINDS[parsed["entry"]]
        return kind(**{each.name: _value(each, parsed[each.name]) for each in fields(kind)})
    except (KeyError, TypeError, ValueError, OverflowError, Unreadable) as error:
        raise ValueError(f"invalid journal entry: {error}") from None


def _value(field: Field[Any], value: Any) -> Any:
    if field.type is Event:
        return parse_event(value)
    match field.name:
        case "at":
            return _time(value)
        case "side":
            return Side(value)
        case "ending":
            return Ending(value)
        case "attempt" | "pid":
            return _number(value)
        case _:
            return _text(value)


def _time(value: Any) -> datetime:
    time = datetime.fromisoformat(value)
    if time.tzinfo is None:
        raise ValueError("a time without an offset")
    return time


def _number(value: Any) -> int:
    # Signals to other numbers would reach process groups.
    if type(value) is not int or not 0 < value <= _MOST:
        raise ValueError(f"expected a number from 1 to {_MOST}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a text")  # noqa: TRY004 - callers expect ValueError
    return value
