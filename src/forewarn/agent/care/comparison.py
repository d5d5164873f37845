"""A document against the journal: which events to take up, which have changed, which are over."""

from collections.abc import Mapping
from dataclasses import dataclass

from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import key
from forewarn.agent.journal.tracked_events import TrackedEvent, TrackedEvents
from forewarn.core.words import EventStatus
from forewarn.sdk.documents import Document, Event

# An endpoint that begins to count anew may not know all its events at once; what it leaves out then is
# believed to be over only if it is still left out after so many seconds.
SETTLING_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenIncarnation:
    """The incarnation that was seen last, and when incarnations last began anew, by the monotonic clock."""

    incarnation: int
    restarted: float | None = None

    def doubted_for(self, now: float) -> float:
        """Return for how many seconds more a missing event is not taken for over."""
        return 0.0 if self.restarted is None else max(0.0, self.restarted + SETTLING_SECONDS - now)


def seen(before: SeenIncarnation | None, document: Document, *, now: float) -> SeenIncarnation:
    """Return what is seen of incarnations after a document."""
    if before is None:
        return SeenIncarnation(incarnation=document.incarnation)
    restarted = now if document.incarnation < before.incarnation else before.restarted
    return SeenIncarnation(incarnation=document.incarnation, restarted=restarted)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDifference:
    """What is to be done about a document."""

    take_up: tuple[Event, ...] = ()
    change: tuple[Event, ...] = ()
    leave: Mapping[str, str]  # keys of tracked events, with the reason
    look_again_in: float | None = None


def compare(
    tracked_events: TrackedEvents, document: Document, *, machine: str, doubted_for: float = 0.0
) -> DocumentDifference:
    """Compare the tracked events with a document.

    An event that is being recovered from stays so: should it be listed again, it is taken up anew once that
    is done.
    """
    mine = {key(event): event for event in document.naming(machine) if _counts(event)}
    gone = {
        id_: tracked for id_, tracked in tracked_events.items() if tracked.left is None and id_ not in mine
    }
    doubtful = bool(gone) and doubted_for > 0
    return DocumentDifference(
        take_up=tuple(event for id_, event in mine.items() if id_ not in tracked_events),
        change=tuple(event for id_, event in mine.items() if _changed(tracked_events.get(id_), event)),
        leave={} if doubtful else {id_: _why(document, tracked, machine) for id_, tracked in gone.items()},
        look_again_in=doubted_for if doubtful else None,
    )


def held_by_another(tracked_events: TrackedEvents, id_: str, handler: str) -> str | None:
    """Find an event that still needs what a handler has prepared: its recovery is left to that one."""
    for other, tracked in tracked_events.items():
        if other != id_ and tracked.left is None and tracked.attempt(Side.PREPARE, handler) is not None:
            return other
    return None


def _counts(event: Event) -> bool:
    return event.status in (EventStatus.SCHEDULED, EventStatus.STARTED)


def _changed(tracked: TrackedEvent | None, event: Event) -> bool:
    return tracked is not None and tracked.left is None and tracked.event != event


def _why(document: Document, tracked: TrackedEvent, machine: str) -> str:
    if document.event(tracked.event.id) is not None:
        return f"{machine} is no longer named in it"
    return "it is over" if tracked.event.started else "it is no longer listed"
