"""The state of a machine in a rehearsal: its faults, and the documents that it was sent."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from forewarn.core.guests.document import GroupDocument
from forewarn.core.model.event import Event
from forewarn.core.rehearsal_ledger import GuestLedger
from forewarn.core.rehearsal_rules import Fault, FaultKind

FIRST_INCARNATION = 1


class RehearsalState:
    """The faults of one machine, and the ledger of what its guest does."""

    def __init__(self, machine: str, ledger: GuestLedger) -> None:
        self.machine = machine
        self.ledger = ledger
        self.faults: tuple[Fault, ...] = ()
        self.shown = ShownDocuments()
        self._calls: Counter[int] = Counter()

    def has_fault(self, now: datetime) -> bool:
        """Whether a request would get a fault."""
        return any(self._applies(fault, now) for fault in self.faults)

    def take_faults(self, now: datetime) -> list[Fault]:
        """Return the faults of a request, and count the request towards them."""
        taken = [fault for fault in self.faults if self._applies(fault, now)]
        self._calls.update(fault.number for fault in taken)
        return taken

    def still(self, fault: Fault) -> Fault | None:
        """Return the current form of a fault; None if it was removed."""
        return next((each for each in self.faults if each.number == fault.number), None)

    def next_change(self, now: datetime) -> datetime | None:
        """Return when the next fault begins or ends."""
        moments = (moment for fault in self.faults for moment in (fault.since, fault.until))
        return min((moment for moment in moments if moment is not None and moment > now), default=None)

    def _applies(self, fault: Fault, now: datetime) -> bool:
        left = fault.calls is None or self._calls[fault.number] < fault.calls
        return left and fault.concerns(self.machine) and fault.on(now)


class ShownDocuments:
    """The altered documents that one machine was sent.

    After the first altered document this class numbers the incarnations. They change whenever the events
    change, because clients rely on that.
    """

    def __init__(self) -> None:
        self._number = FIRST_INCARNATION
        self._events: Sequence[Event] | None = None
        self._restarted: set[int] = set()
        self.altered = False

    def instead_of(
        self, document: GroupDocument, faults: Sequence[Fault], *, now: datetime
    ) -> GroupDocument | None:
        """Return the altered document to send; None to send the real one."""
        events = tuple(
            event for event in document.events if not any(fault.hides(event, now) for fault in faults)
        )
        restarts = {fault.number for fault in faults if fault.kind is FaultKind.INCARNATION_RESTART}
        restarting = restarts - self._restarted
        self._restarted |= restarts
        if not (self.altered or restarting or events != document.events):
            self._number, self._events = document.incarnation, events
            return None
        if restarting:
            self._number = FIRST_INCARNATION
        elif self._events is None:
            self._number = document.incarnation
        elif events != self._events:
            self._number += 1
        self.altered, self._events = True, events
        return replace(document, incarnation=self._number, events=events)
