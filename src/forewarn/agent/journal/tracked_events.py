"""The state of each event that the agent tracks, and of its handlers.

The state follows from the entries of the journal, in their order, and from nothing else.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import (
    GONE,
    Approved,
    Begun,
    Changed,
    Ended,
    Ending,
    Entry,
    Left,
    Over,
    Owed,
    ProgramRunning,
    Restarted,
    RestartExpected,
    TakenUp,
    key,
)
from forewarn.core.basic_types import EventStatus
from forewarn.programs.program import ProcessId
from forewarn.sdk.documents import Event

# Values that a damaged journal has lost.
UNKNOWN = "Unknown"
LONG_AGO = datetime.fromtimestamp(0, UTC)


class Share(NamedTuple):
    """A handler's share in one event."""

    side: Side
    handler: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The last attempt of a handler's share."""

    number: int
    begun: datetime
    first: datetime  # when the first attempt began
    process: ProcessId | None = None
    ending: Ending | None = None  # None: running, as far as the journal shows
    ended: datetime | None = None
    why: str = ""

    @property
    def settled(self) -> bool:
        """Whether the handler needs no other attempt."""
        return self.ending in (Ending.READY, Ending.NEVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedEvent:
    """An event that the agent tracks."""

    event: Event
    since: datetime
    attempts: Mapping[Share, Attempt] = field(default_factory=dict)
    owed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by handler, the things to restore
    approved: datetime | None = None
    boot: str | None = None  # the last boot before its restart; None: unknown
    restarted: datetime | None = None  # when the agent detected the machine's restart for the event
    left: datetime | None = None  # when the agent detected that the event is over for this machine
    why: str = ""  # why it left

    def attempt(self, side: Side, handler: str) -> Attempt | None:
        """Return a handler's last attempt."""
        return self.attempts.get(Share(side, handler))

    def recovered(self, handler: str) -> bool:
        """Return whether a handler's recovery has ended."""
        known = self.attempt(Side.RECOVER, handler)
        return known is not None and known.settled

    def owes(self, handler: str) -> tuple[str, ...]:
        """Return the things that a handler must restore."""
        return self.owed.get(handler, ())

    def failures(self) -> dict[str, str]:
        """Return the handlers that failed to prepare, with reasons."""
        return {
            share.handler: attempt.why
            for share, attempt in self.attempts.items()
            if share.side is Side.PREPARE and attempt.ending is Ending.NEVER and attempt.why != GONE
        }

    def at_work(self) -> bool:
        """Return whether a handler runs, as far as the journal shows."""
        return any(attempt.ending is None for attempt in self.attempts.values())

    def touched(self) -> list[str]:
        """Return the handlers that have begun to prepare, in their order."""
        begun = (share.handler for share in self.attempts if share.side is Side.PREPARE)
        return list(dict.fromkeys((*begun, *self.owed)))


TrackedEvents: TypeAlias = Mapping[str, TrackedEvent]


def after(tracked_events: TrackedEvents, entry: Entry) -> dict[str, TrackedEvent]:
    """Apply an entry, also if earlier entries are lost."""
    changed = dict(tracked_events)
    id_ = key(entry.event)
    match entry:
        case TakenUp():
            changed[id_] = TrackedEvent(event=entry.event, since=entry.at)
        case Over():
            changed.pop(id_, None)
        case _:
            changed[id_] = _tracked_after(changed.get(id_) or _unknown(entry), entry)
    return changed


def _unknown(entry: Entry) -> TrackedEvent:
    """Track an event whose first entry is lost, so that its preparation is still undone."""
    event = entry.event
    if isinstance(event, str):
        event = Event(id=event, type=UNKNOWN, status=EventStatus.SCHEDULED, resources=())
    return TrackedEvent(event=event, since=getattr(entry, "at", LONG_AGO))


def _tracked_after(
    tracked: TrackedEvent,
    entry: Changed | Begun | ProgramRunning | Owed | Ended | Approved | RestartExpected | Restarted | Left,
) -> TrackedEvent:
    match entry:
        case Changed():
            return replace(tracked, event=entry.event)
        case Approved():
            return replace(tracked, approved=entry.at)
        case RestartExpected():
            return replace(tracked, boot=entry.boot)
        case Restarted():
            return replace(tracked, boot=entry.boot, restarted=entry.at)
        case Left():
            return replace(tracked, left=entry.at, why=entry.why)
        case Owed():
            things = dict.fromkeys((*tracked.owes(entry.handler), entry.thing))
            return replace(tracked, owed={**tracked.owed, entry.handler: tuple(things)})
        case Begun() | ProgramRunning() | Ended():
            share = Share(entry.side, entry.handler)
            attempt = _attempt_after(tracked.attempts.get(share), entry, since=tracked.since)
            return replace(tracked, attempts={**tracked.attempts, share: attempt})


def _attempt_after(
    known: Attempt | None, entry: Begun | ProgramRunning | Ended, *, since: datetime
) -> Attempt:
    if isinstance(entry, Begun):
        first = entry.at if known is None else known.first
        return Attempt(number=entry.attempt, begun=entry.at, first=first)
    known = known or Attempt(number=1, begun=since, first=since)
    match entry:
        case ProgramRunning():
            return replace(known, process=ProcessId(entry.pid, entry.started))
        case Ended():
            return replace(known, ending=entry.ending, ended=entry.at, why=entry.why)


def entries_of(tracked_events: TrackedEvents) -> Iterator[Entry]:
    """Yield the shortest list of entries that results in these tracked events."""
    for id_, tracked in tracked_events.items():
        yield TakenUp(event=tracked.event, at=tracked.since)
        for share, attempt in tracked.attempts.items():
            yield from _attempt_entries(id_, share, attempt)
        for handler, things in tracked.owed.items():
            for thing in things:
                yield Owed(event=id_, handler=handler, thing=thing)
        if tracked.approved is not None:
            yield Approved(event=id_, at=tracked.approved)
        yield from _boot_entries(id_, tracked)
        if tracked.left is not None:
            yield Left(event=id_, at=tracked.left, why=tracked.why)


def _boot_entries(id_: str, tracked: TrackedEvent) -> Iterator[Entry]:
    if tracked.boot is None:
        return
    if tracked.restarted is None:
        yield RestartExpected(event=id_, boot=tracked.boot)
    else:
        yield Restarted(event=id_, boot=tracked.boot, at=tracked.restarted)


def _attempt_entries(id_: str, share: Share, attempt: Attempt) -> Iterator[Entry]:
    keys = {"event": id_, "side": share.side, "handler": share.handler}
    if attempt.first != attempt.begun:
        yield Begun(**keys, attempt=1, at=attempt.first)  # type: ignore[arg-type]
    yield Begun(**keys, attempt=attempt.number, at=attempt.begun)  # type: ignore[arg-type]
    if attempt.process is not None:
        pid, started = attempt.process
        yield ProgramRunning(**keys, pid=pid, started=started)  # type: ignore[arg-type]
    if attempt.ending is not None and attempt.ended is not None:
        yield Ended(**keys, ending=attempt.ending, at=attempt.ended, why=attempt.why)  # type: ignore[arg-type]


def replay(entries: Iterable[Entry]) -> dict[str, TrackedEvent]:
    """Return the tracked events after all entries."""
    tracked_events: dict[str, TrackedEvent] = {}
    for entry in entries:
        tracked_events = after(tracked_events, entry)
    return tracked_events
