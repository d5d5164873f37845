"""The entries of the journal: one for each thing that was seen, begun or done."""

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from forewarn.agent.facts import as_wire, from_wire
from forewarn.agent.handling import Side
from forewarn.sdk.documents import Event
from forewarn.sdk.guest_errors import Unreadable

# Why an attempt ended that was of no use any more.
GONE = "the event has left"


class Ending(StrEnum):
    """How an attempt ended."""

    READY = "ready"
    AGAIN = "again"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenUp:
    """An event for this machine is listed."""

    event: Event
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A document shows an event that was taken up differently."""

    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A handler is about to be run."""

    event: str
    side: Side
    handler: str
    attempt: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRunning:
    """It runs as a process of its own, which waits for this to be written."""

    event: str
    side: Side
    handler: str
    pid: int
    started: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    """A handler is about to change a thing to get ready, and owes it to be as it was."""

    event: str
    handler: str
    thing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An attempt is over."""

    event: str
    side: Side
    handler: str
    ending: Ending
    at: datetime
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """The event was approved at the endpoint."""

    event: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartExpected:
    """In this boot the event is listed, and the restart that it announces is still to come."""

    event: str
    boot: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarted:
    """The machine has restarted for the event, which is still listed."""

    event: str
    boot: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """The event, or this machine's name in it, is no longer listed."""

    event: str
    at: datetime
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """Everything that was prepared for it is undone."""

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
    """Return the key of an event: ids are the same in any case."""
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
    """Read an entry; ValueError if it is none."""
    try:
        kind = _KINDS[parsed["entry"]]
        return kind(**{each.name: _value(each, parsed[each.name]) for each in fields(kind)})
    except (KeyError, TypeError, ValueError, OverflowError, Unreadable) as error:
        raise ValueError(f"no entry of a journal: {error}") from None


def _value(field: Field[Any], value: Any) -> Any:
    if field.type is Event:
        return from_wire(value)
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
    # The system knows no process with another number, and takes some of them for groups of processes.
    if type(value) is not int or not 0 < value <= _MOST:
        raise ValueError(f"expected a number from 1 to {_MOST}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a text")  # noqa: TRY004 - all refusals here are of one kind
    return value
