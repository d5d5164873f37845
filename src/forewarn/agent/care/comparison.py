"""A document against the journal: which events to take up, which have changed, which are over.

One document without an event is not yet its end: an endpoint that was restarted, or another that is behind,
may leave it out while it goes on, and a machine that takes its work back then is hit in the middle of it. So
it is taken for over when a second document leaves it out too, or when it has been missing for the settle
time; at once only where its end is certain.

A restart counts only if it came after the event started. The journal has the boot in which the restart was
still to come; a document that lists the event as Started in a later boot shows that it is done.
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

# An endpoint that begins to count anew may not know all its events at once; what it leaves out then is
# believed to be over only if it is still left out after so many seconds, however many documents say so.
RESTART_SECONDS = 10.0
# As many documents without an event are believed.
ENOUGH_DOCUMENTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Since when an event is missing, by the monotonic clock, and from how many documents."""

    since: float
    documents: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenDocuments:
    """What was seen of documents: the last incarnation, when they last began anew, and what is missing."""

    incarnation: int
    restarted: float | None = None
    missing: Mapping[str, Missing] = field(default_factory=dict)

    def restarted_for(self, now: float) -> float:
        """Return for how many seconds more nothing is believed to be over, after a restart."""
        return 0.0 if self.restarted is None else max(0.0, self.restarted + RESTART_SECONDS - now)


def seen(
    before: SeenDocuments | None,
    document: Document,
    tracked_events: TrackedEvents,
    *,
    machine: str,
    now: float,
) -> SeenDocuments:
    """Return what is seen after a document."""
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
    """How an event that is missing is taken for over."""

    settle: float  # seconds
    booted: datetime | None = None  # when this machine was started, if that is known
    answers: bool = True  # whether the endpoint does

    def seconds(self, seen: SeenDocuments, id_: str, tracked: TrackedEvent, *, now: float) -> float:
        """Return for how many seconds more a missing event is not taken for over."""
        if self._has_happened(tracked):
            return 0.0
        missing = seen.missing.get(id_, Missing(since=now))
        enough = missing.documents >= ENOUGH_DOCUMENTS
        settling = 0.0 if enough else missing.since + self.settle - now
        if not enough and not self.answers:
            settling = self.settle  # silence confirms nothing
        return max(0.0, settling, seen.restarted_for(now))

    def _has_happened(self, tracked: TrackedEvent) -> bool:
        """Check whether the machine was restarted since, so that nothing more can come of the event."""
        return self.booted is not None and tracked.since < self.booted


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDifference:
    """What is to be done about a document."""

    take_up: tuple[Event, ...] = ()
    change: tuple[Event, ...] = ()
    leave: Mapping[str, str]  # keys of tracked events, with the reason
    doubted: Mapping[str, float] = field(default_factory=dict)  # those that may be over, in so many seconds
    unread: frozenset[str] = frozenset()  # those that may be among the unreadable events

    @property
    def look_again_in(self) -> float | None:
        """In how many seconds more will be known without another document."""
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

    An event that is being recovered from stays so: should it be listed again, it is taken up anew once that
    is done.
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
    """Find an event that still needs what a handler has prepared: its recovery is left to that one."""
    for other, tracked in tracked_events.items():
        if other == id_ or tracked.left is not None:
            continue
        if tracked.attempt(Side.PREPARE, handler) is not None and not tracked.recovered(handler):
            return other
    return None


def _mine(document: Document, machine: str) -> dict[str, Event]:
    # Of any status: one that is not known may be that of an event that has started.
    return {key(event): event for event in document.naming(machine)}


def _gone(tracked_events: TrackedEvents, document: Document, machine: str) -> dict[str, TrackedEvent]:
    mine = _mine(document, machine)
    present = mine.keys() | _unread(tracked_events, document, mine)
    return {
        id_: tracked for id_, tracked in tracked_events.items() if tracked.left is None and id_ not in present
    }


def _unread(tracked_events: TrackedEvents, document: Document, mine: Collection[str]) -> set[str]:
    """Return the tracked events that may be among those that cannot be read."""
    listed = {key(event) for event in document.events}
    ids = {key(each.id) for each in document.unreadable}
    missing = (id_ for id_ in tracked_events if id_ not in mine and id_ not in listed)
    return {id_ for id_ in missing if id_ in ids or "" in ids}


def _leaves_out(document: Document, tracked: TrackedEvent, machine: str) -> bool:
    """Check whether the event is listed without this machine: then it is certainly over for it."""
    listed = document.event(tracked.event.id)
    return listed is not None and not listed.names(machine)


def _changed(tracked: TrackedEvent | None, event: Event) -> bool:
    return tracked is not None and tracked.left is None and tracked.event != event


def _why(document: Document, tracked: TrackedEvent, machine: str) -> str:
    if document.event(tracked.event.id) is not None:
        return f"{machine} is no longer named in it"
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
    """Return what to write down about the boot in which a document lists an event.

    It is written before the change of the event itself: an agent that is killed between the two decides the
    same again.
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
    """Check whether the event had started when the machine booted, by what earlier boots have seen of it.

    An event starts early only if it is approved. A crash before the start is no restart of the event.
    """
    if tracked.event.status == EventStatus.STARTED or tracked.approved is not None:
        return True
    not_before = tracked.event.not_before
    return booted is not None and not_before is not None and not_before <= booted
