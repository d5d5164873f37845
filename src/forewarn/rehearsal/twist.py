"""Documents that tell less than is so: events that vanish, come late or are born Started."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias

from forewarn.rehearsal.scenario import Fault, FaultKind, Step

Events: TypeAlias = list[dict[str, Any]]
Document: TypeAlias = Mapping[str, Any]

SCHEDULED = "Scheduled"
FIRST_INCARNATION = 1


def shown(events: Events, faults: Sequence[Fault], *, now: datetime) -> Events:
    """Leave out the events that some fault hides."""
    return [event for event in events if not any(_hides(fault, event, now) for fault in faults)]


def _hides(fault: Fault, event: Mapping[str, Any], now: datetime) -> bool:
    scheduled = event.get("EventStatus") == SCHEDULED
    match fault.kind:
        case FaultKind.VANISHED:
            return True
        case FaultKind.BORN_STARTED:
            return scheduled
        case FaultKind.SHORT_NOTICE:
            return scheduled and parsedate_to_datetime(event["NotBefore"]) - now > fault.notice
        case _:
            return False


class Telling:
    """What one machine has been told so far.

    Once a document was twisted the incarnations are numbered here, so that they differ whenever the
    events do: that is what clients look at.
    """

    def __init__(self) -> None:
        self._number = FIRST_INCARNATION
        self._events: Events | None = None
        self._restarted: set[Step] = set()
        self.twisted = False

    def tell(self, document: Document, faults: Sequence[Step], *, now: datetime) -> Document | None:
        """Return the document to show instead; None if it is to be shown as it is."""
        events = shown(document["Events"], [_fault(step) for step in faults], now=now)
        restarts = {step for step in faults if _fault(step).kind is FaultKind.INCARNATION_RESTART}
        restarting = restarts - self._restarted
        self._restarted |= restarts
        if not (self.twisted or restarting or events != document["Events"]):
            self._number, self._events = document["DocumentIncarnation"], events
            return None
        if restarting:
            self._number = FIRST_INCARNATION
        elif self._events is None:
            self._number = document["DocumentIncarnation"]
        elif events != self._events:
            self._number += 1
        self.twisted, self._events = True, events
        return {"DocumentIncarnation": self._number, "Events": events}


def _fault(step: Step) -> Fault:
    assert isinstance(step.does, Fault)  # noqa: S101 - only faults are active
    return step.does
