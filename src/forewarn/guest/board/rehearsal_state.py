"""A machine's state in a rehearsal: the faults its guest meets, and the documents it was sent.

A machine without one is answered as ever.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from forewarn.core.guests.document import Document
from forewarn.core.model.event import Event
from forewarn.core.rehearsal_ledger import GuestLedger
from forewarn.core.rehearsal_rules import Fault, FaultKind

FIRST_INCARNATION = 1


class RehearsalState:
    """What one machine meets, and an account of what its guest does."""

    def __init__(self, machine: str, ledger: GuestLedger) -> None:
        self.machine = machine
        self.ledger = ledger
        self.faults: tuple[Fault, ...] = ()
        self.shown = ShownDocuments()
        self._calls: Counter[int] = Counter()

    def spoils(self, now: datetime) -> bool:
        """Return whether a request would meet a fault."""
        return any(self._meets(fault, now) for fault in self.faults)

    def meet(self, now: datetime) -> list[Fault]:
        """Return the faults that a request meets, and count it."""
        met = [fault for fault in self.faults if self._meets(fault, now)]
        self._calls.update(fault.number for fault in met)
        return met

    def still(self, fault: Fault) -> Fault | None:
        """Return what a fault that was met has become; None if it was lifted."""
        return next((each for each in self.faults if each.number == fault.number), None)

    def next_change(self, now: datetime) -> datetime | None:
        """Return when a fault begins or ends next."""
        moments = (moment for fault in self.faults for moment in (fault.since, fault.until))
        return min((moment for moment in moments if moment is not None and moment > now), default=None)

    def _meets(self, fault: Fault, now: datetime) -> bool:
        left = fault.calls is None or self._calls[fault.number] < fault.calls
        return left and fault.concerns(self.machine) and fault.on(now)


class ShownDocuments:
    """The documents that one machine has been sent, where they leave something out.

    Once a document was twisted the incarnations are numbered here, so that they differ whenever the
    events do: that is what clients look at.
    """

    def __init__(self) -> None:
        self._number = FIRST_INCARNATION
        self._events: Sequence[Event] | None = None
        self._restarted: set[int] = set()
        self.twisted = False

    def instead_of(self, document: Document, faults: Sequence[Fault], *, now: datetime) -> Document | None:
        """Return the document to show instead; None if it is to be shown as it is."""
        events = tuple(
            event for event in document.events if not any(fault.hides(event, now) for fault in faults)
        )
        restarts = {fault.number for fault in faults if fault.kind is FaultKind.INCARNATION_RESTART}
        restarting = restarts - self._restarted
        self._restarted |= restarts
        if not (self.twisted or restarting or events != document.events):
            self._number, self._events = document.incarnation, events
            return None
        if restarting:
            self._number = FIRST_INCARNATION
        elif self._events is None:
            self._number = document.incarnation
        elif events != self._events:
            self._number += 1
        self.twisted, self._events = True, events
        return replace(document, incarnation=self._number, events=events)
