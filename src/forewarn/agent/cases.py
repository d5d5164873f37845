"""What the agent knows: each event it has taken up, and how far each handler is with it.

All of it follows from the entries of the journal, one after the other; nothing else changes it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from forewarn.agent.facts import as_wire, from_wire
from forewarn.agent.handling import Again, Never, Outcome, Ready, Side
from forewarn.sdk.documents import Event
from forewarn.sdk.errors import Unreadable


class Ending(StrEnum):
    """How an attempt ended."""

    READY = "ready"
    AGAIN = "again"
    NEVER = "never"


class Share(NamedTuple):
    """A handler's share in one event."""

    side: Side
    handler: str


class ProcessId(NamedTuple):
    """A process, and when it started: its number alone may have been given to another since."""

    pid: int
    started: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """How far a handler is with its share; the last attempt counts."""

    number: int
    begun: datetime
    first: datetime  # when the first attempt began
    process: ProcessId | None = None
    ending: Ending | None = None  # None: it is not known to have ended
    ended: datetime | None = None
    why: str = ""

    @property
    def settled(self) -> bool:
        """Whether nothing is left to be done."""
        return self.ending in (Ending.READY, Ending.NEVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An event that was taken up."""

    event: Event
    since: datetime
    attempts: Mapping[Share, Attempt] = field(default_factory=dict)
    approved: datetime | None = None
    left: datetime | None = None  # when it was seen that it is over for this machine
    why: str = ""  # it left

    def attempt(self, side: Side, handler: str) -> Attempt | None:
        """Return how far a handler is."""
        return self.attempts.get(Share(side, handler))

    def touched(self) -> list[str]:
        """Name the handlers that have begun to prepare, as they did."""
        return [share.handler for share in self.attempts if share.side is Side.PREPARE]


Cases: TypeAlias = Mapping[str, Case]


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenUp:
    """An event for this machine is listed."""

    event: Event
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """An event that was taken up is told differently."""

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
class Running:
    """It runs as a process of its own, which waits for this to be written."""

    event: str
    side: Side
    handler: str
    pid: int
    started: str


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
    """The endpoint was told that the event may start."""

    event: str
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


Entry: TypeAlias = TakenUp | Changed | Begun | Running | Ended | Approved | Left | Over

_KINDS: Mapping[str, type[Entry]] = {
    "taken-up": TakenUp,
    "changed": Changed,
    "begun": Begun,
    "running": Running,
    "ended": Ended,
    "approved": Approved,
    "left": Left,
    "over": Over,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def key(event: Event | str) -> str:
    """Return the key of an event: ids are the same in any case."""
    return (event if isinstance(event, str) else event.id).upper()


def outcome_of(ending: Ending, why: str) -> Outcome:
    """Return what a handler had answered."""
    match ending:
        case Ending.READY:
            return Ready(why)
        case Ending.AGAIN:
            return Again(why)
        case Ending.NEVER:
            return Never(why)


def after(cases: Cases, entry: Entry) -> dict[str, Case]:
    """Return what is known after an entry; one about an event that nobody knows of changes nothing."""
    changed = dict(cases)
    id_ = key(entry.event)
    match entry:
        case TakenUp():
            changed[id_] = Case(event=entry.event, since=entry.at)
        case Over():
            changed.pop(id_, None)
        case _ if id_ in changed:
            changed[id_] = _case_after(changed[id_], entry)
        case _:
            pass
    return changed


def _case_after(case: Case, entry: Changed | Begun | Running | Ended | Approved | Left) -> Case:
    match entry:
        case Changed():
            return replace(case, event=entry.event)
        case Approved():
            return replace(case, approved=entry.at)
        case Left():
            return replace(case, left=entry.at, why=entry.why)
        case Begun() | Running() | Ended():
            share = Share(entry.side, entry.handler)
            attempt = _attempt_after(case.attempts.get(share), entry)
            return case if attempt is None else replace(case, attempts={**case.attempts, share: attempt})


def _attempt_after(known: Attempt | None, entry: Begun | Running | Ended) -> Attempt | None:
    match entry:
        case Begun():
            first = entry.at if known is None else known.first
            return Attempt(number=entry.attempt, begun=entry.at, first=first)
        case Running() if known:
            return replace(known, process=ProcessId(entry.pid, entry.started))
        case Ended() if known:
            return replace(known, ending=entry.ending, ended=entry.at, why=entry.why)
        case _:
            return None


def entries_of(cases: Cases) -> Iterator[Entry]:
    """Give the fewest entries that tell all that is known."""
    for id_, case in cases.items():
        yield TakenUp(event=case.event, at=case.since)
        for (side, handler), attempt in case.attempts.items():
            share = {"event": id_, "side": side, "handler": handler}
            if attempt.first != attempt.begun:
                yield Begun(**share, attempt=1, at=attempt.first)  # type: ignore[arg-type]
            yield Begun(**share, attempt=attempt.number, at=attempt.begun)  # type: ignore[arg-type]
            if attempt.process is not None:
                pid, started = attempt.process
                yield Running(**share, pid=pid, started=started)  # type: ignore[arg-type]
            if attempt.ending is not None and attempt.ended is not None:
                yield Ended(**share, ending=attempt.ending, at=attempt.ended, why=attempt.why)  # type: ignore[arg-type]
        if case.approved is not None:
            yield Approved(event=id_, at=case.approved)
        if case.left is not None:
            yield Left(event=id_, at=case.left, why=case.why)


def replayed(entries: Iterable[Entry]) -> dict[str, Case]:
    """Return what is known after all entries."""
    cases: dict[str, Case] = {}
    for entry in entries:
        cases = after(cases, entry)
    return cases


def as_json(entry: Entry) -> dict[str, Any]:
    """Write an entry."""
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


def from_json(said: Any) -> Entry:
    """Read an entry; ValueError if it is none."""
    try:
        kind = _KINDS[said["entry"]]
        return kind(**{each.name: _value(each.name, said[each.name]) for each in fields(kind)})
    except (KeyError, TypeError, ValueError, Unreadable) as error:
        raise ValueError(f"no entry of a journal: {error}") from None


def _value(name: str, value: Any) -> Any:
    if name == "event" and isinstance(value, dict):
        return from_wire(value)
    match name:
        case "at":
            return datetime.fromisoformat(value)
        case "side":
            return Side(value)
        case "ending":
            return Ending(value)
        case "attempt" | "pid":
            return int(value)
        case _:
            return str(value)
