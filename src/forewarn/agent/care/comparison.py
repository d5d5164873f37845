"""Compare a document with the journal: which events are new, have changed or are over.

One document without an event does not prove its end. An endpoint that has restarted or lags behind may omit
an event that goes on. A machine that resumes its work then would be interrupted. So a missing event counts as
over when a second document omits it too, or after the settle time. It counts as over at once only if its end
is certain.

A restart of the machine counts only if it came after the start of the event. The journal stores the last boot
before the restart. A document that lists the event as Started in a later boot proves the restart.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import Entry, Restarted, RestartExpected, key
from forewarn.agent.journal.tracked_events import TrackedEvent, TrackedEvents
from forewarn.agent.setup.handler import RESTARTING
from forewarn.core.basic_types import EventStatus
from forewarn.sdk.documents import Document, Event

# If the incarnation goes back, the endpoint has restarted and may not know all events yet. For this many
# seconds, a missing event does not count as over, whatever the number of documents.
RESTART_SECONDS = 10.0
# This many documents without an event prove its end.
ENOUGH_DOCUMENTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A missing event: since when, by the monotonic clock, and the number of documents without it."""

    since: float
    documents: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenDocuments:
    """The history of documents: the last incarnation, the last restart of the endpoint, missing events."""

    incarnation: int
    restarted: float | None = None
    missing: Mapping[str, Missing] = field(default_factory=dict)


def seen(
    before: SeenDocuments | None,
    document: Document,
    tracked_events: TrackedEvents,
    *,
    machine: str,
    now: float,
) -> SeenDocuments:
    """Return the history with one more document."""
    known = {} if before is None else before.missing
    missing = {
        id_: Missing(since=known[id_].since, documents=known[id_].documents + 1)
        if id_ in known
        else Missing(since=now)
        for id_ in _gone(tracked_events, document, machine)
    }
    restarted = None if before is None else before.restarted
    if before is not None and document.incarnation < before.incarnation:
        restarted = now
    return SeenDocuments(incarnation=document.incarnation, restarted=restarted, missing=missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """The conditions under which a missing event counts as over."""

    settle: float  # seconds
    booted: datetime | None = None  # when this machine booted, if known
    answers: bool = True  # the endpoint answers

    def seconds(self, seen: SeenDocuments, id_: str, tracked: TrackedEvent, *, now: float) -> float:
        """Return the seconds until a missing event counts as over."""
        if self.booted is not None and tracked.since < self.booted:
            return 0.0  # the machine has restarted since, so nothing more can happen
        missing = seen.missing.get(id_, Missing(since=now))
        enough = missing.documents >= ENOUGH_DOCUMENTS
        settling = 0.0 if enough else missing.since + self.settle - now
        if not enough and not self.answers:
            settling = self.settle  # without answers, time proves nothing
        restarting = 0.0 if seen.restarted is None else seen.restarted + RESTART_SECONDS - now
        return max(0.0, settling, restarting)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDifference:
    """The differences between a document and the tracked events."""

    take_up: tuple[Event, ...] = ()
    change: tuple[Event, ...] = ()
    leave: Mapping[str, str]  # events that are over, with the reason
    doubted: Mapping[str, float] = field(default_factory=dict)  # events that will be over in some seconds
    unread: frozenset[str] = frozenset()  # events that may be among the unreadable ones

    @property
    def look_again_in(self) -> float | None:
        """The seconds until a doubted event counts as over, without another document."""
        return min(self.doubted.values(), default=None)


def compare(
    tracked_events: TrackedEvents,
    document: Document,
    *,
    machine: str,
    seen: SeenDocuments,
    doubt: Doubt,
    now: float,
) -> DocumentDifference:
    """Compare the tracked events with a document.

    If a document lists an event again during its recovery, the agent finishes the recovery first.
    """
    mine = _mine(document, machine)
    gone = _gone(tracked_events, document, machine)
    doubts = {
        id_: 0.0 if _leaves_out(document, tracked, machine) else doubt.seconds(seen, id_, tracked, now=now)
        for id_, tracked in gone.items()
    }
    return DocumentDifference(
        take_up=tuple(event for id_, event in mine.items() if id_ not in tracked_events),
        change=tuple(event for id_, event in mine.items() if _changed(tracked_events.get(id_), event)),
        leave={id_: _why(document, gone[id_], machine) for id_, seconds in doubts.items() if not seconds},
        doubted={id_: seconds for id_, seconds in doubts.items() if seconds},
        unread=frozenset(_unread(tracked_events, document, mine)),
    )


def held_by_another(tracked_events: TrackedEvents, id_: str, handler: str) -> str | None:
    """Return another event that still needs a handler's preparation, if there is one."""
    for other, tracked in tracked_events.items():
        if other == id_ or tracked.left is not None:
            continue
        if tracked.attempt(Side.PREPARE, handler) is not None and not tracked.recovered(handler):
            return other
    return None


def _mine(document: Document, machine: str) -> dict[str, Event]:
    # Events of every status: an unknown status may mean that the event has started.
    return {key(event): event for event in document.naming(machine)}


def _gone(tracked_events: TrackedEvents, document: Document, machine: str) -> dict[str, TrackedEvent]:
    mine = _mine(document, machine)
    present = mine.keys() | _unread(tracked_events, document, mine)
    return {
        id_: tracked for id_, tracked in tracked_events.items() if tracked.left is None and id_ not in present
    }


def _unread(tracked_events: TrackedEvents, document: Document, mine: Collection[str]) -> set[str]:
    """Return the tracked events that may be among the unreadable ones."""
    listed = {key(event) for event in document.events}
    ids = {key(each.id) for each in document.unreadable}
    missing = (id_ for id_ in tracked_events if id_ not in mine and id_ not in listed)
    return {id_ for id_ in missing if id_ in ids or "" in ids}


def _leaves_out(document: Document, tracked: TrackedEvent, machine: str) -> bool:
    """Return whether the document lists the event without this machine, which proves its end here."""
    listed = document.event(tracked.event.id)
    return listed is not None and not listed.names(machine)


def _changed(tracked: TrackedEvent | None, event: Event) -> bool:
    return tracked is not None and tracked.left is None and tracked.event != event


def _why(document: Document, tracked: TrackedEvent, machine: str) -> str:
    if document.event(tracked.event.id) is not None:
        return f"it no longer names {machine}"
    return "it is over" if tracked.event.started else "it is no longer listed"


def boot_entry(
    tracked: TrackedEvent,
    event: Event,
    *,
    boot: str | None,
    up_seconds: float | None,
    server_now: Callable[[], datetime],
    now: datetime,
) -> Entry | None:
    """Return the journal entry about the boot in which a document lists an event.

    The caller writes it before the change of the event, so that an agent that is killed in between decides
    the same again.
    """
    if boot is None or event.type not in RESTARTING:
        return None
    if tracked.restarted is not None or tracked.boot == boot:
        return None
    if tracked.boot is not None and event.status == EventStatus.STARTED:
        booted = None if up_seconds is None else server_now() - timedelta(seconds=up_seconds)
        if _began_before(tracked, booted):
            return Restarted(event=key(event), boot=boot, at=now)
    return RestartExpected(event=key(event), boot=boot)


def _began_before(tracked: TrackedEvent, booted: datetime | None) -> bool:
    """Return whether the event had started when the machine booted, as far as earlier boots have seen.

    An event starts before NotBefore only if it is approved. A crash before the start is not its restart.
    """
    if tracked.event.status == EventStatus.STARTED or tracked.approved is not None:
        return True
    not_before = tracked.event.not_before
    return booted is not None and not_before is not None and not_before <= booted
