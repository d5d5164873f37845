"""A change of the whole fleet, and queries that several checks share."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from forewarn.core.basic_types import Action, MachineId, OrderId, StageKind
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order
from forewarn.core.model.record import PromiseCounts, Record
from forewarn.core.model.slice import Slice
from forewarn.core.policy import Policy

MOVING = frozenset({StageKind.EVACUATE, StageKind.RETURN})
PLANNED = (Action.MAINTENANCE, Action.SERVICE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The whole fleet before and after one transaction, and the records of the transaction."""

    before: Slice
    after: Slice
    records: Sequence[Record]
    now: datetime
    policy: Policy
    # The orders that were ever announced to each machine, including those whose events left the fleet.
    announced: Collection[tuple[OrderId, MachineId]] = ()
    # The sum of what was added to the counts of promises; None: not known.
    counted: PromiseCounts | None = None


def newly_armed(change: Change) -> Iterator[Event]:
    """Yield the events that this change armed."""
    for event in change.after.events.values():
        known = change.before.events.get(event.id)
        if event.armed_at is not None and (known is None or known.armed_at is None):
            yield event


def begun(order: Order | None) -> set[tuple[MachineId, datetime | None]]:
    """Return the machines whose steps had begun, and when: a machine may leave a host and come back."""
    return set() if order is None else {(step.machine, step.begun_at) for step in order.steps}
