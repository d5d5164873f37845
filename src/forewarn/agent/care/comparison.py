"""What it knew against what it sees: which events to take up, which to follow, which to come back from."""

from collections.abc import Mapping
from dataclasses import dataclass

from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import key
from forewarn.agent.journal.tracked_events import Case, Cases
from forewarn.core.words import EventStatus
from forewarn.sdk.documents import Document, Event

# An endpoint that begins to count anew may not know all its events at once; what it leaves out then is
# believed to be over only if it is still left out after so many seconds.
SETTLING_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """The incarnation that was seen last, and when incarnations last began anew, by the monotonic clock."""

    incarnation: int
    restarted: float | None = None

    def doubted_for(self, now: float) -> float:
        """Say how many seconds longer a missing event is not taken for over."""
        return 0.0 if self.restarted is None else max(0.0, self.restarted + SETTLING_SECONDS - now)


def look(before: Sight | None, document: Document, *, now: float) -> Sight:
    """Take a document in."""
    if before is None:
        return Sight(incarnation=document.incarnation)
    restarted = now if document.incarnation < before.incarnation else before.restarted
    return Sight(incarnation=document.incarnation, restarted=restarted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What is to be done about a document."""

    take_up: tuple[Event, ...] = ()
    change: tuple[Event, ...] = ()
    leave: Mapping[str, str]  # the keys of cases, with the reason
    look_again_in: float | None = None


def compare(cases: Cases, document: Document, *, machine: str, doubted_for: float = 0.0) -> Difference:
    """Compare what is known with a document.

    A case that is being left stays so: should its event be listed again it is taken up anew once that is
    done.
    """
    mine = {key(event): event for event in document.naming(machine) if _counts(event)}
    gone = {id_: case for id_, case in cases.items() if case.left is None and id_ not in mine}
    doubtful = bool(gone) and doubted_for > 0
    return Difference(
        take_up=tuple(event for id_, event in mine.items() if id_ not in cases),
        change=tuple(event for id_, event in mine.items() if _changed(cases.get(id_), event)),
        leave={} if doubtful else {id_: _why(document, case, machine) for id_, case in gone.items()},
        look_again_in=doubted_for if doubtful else None,
    )


def held_by_another(cases: Cases, id_: str, handler: str) -> str | None:
    """Find an event that still needs what a handler has prepared: its recovery is left to that one."""
    for other, case in cases.items():
        if other != id_ and case.left is None and case.attempt(Side.PREPARE, handler) is not None:
            return other
    return None


def _counts(event: Event) -> bool:
    return event.status in (EventStatus.SCHEDULED, EventStatus.STARTED)


def _changed(case: Case | None, event: Event) -> bool:
    return case is not None and case.left is None and case.event != event


def _why(document: Document, case: Case, machine: str) -> str:
    if document.event(case.event.id) is not None:
        return f"{machine} is no longer named in it"
    return "it is over" if case.event.started else "it is no longer listed"
