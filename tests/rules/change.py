"""A change of the whole fleet, as the checks are given it, and what several of them ask of one."""

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
    """The whole fleet before and after one transaction, and the records it wrote."""

    before: Slice
    after: Slice
    records: Sequence[Record]
    now: datetime
    policy: Policy
    # Of which orders each machine has heard at any time before: that leaves the fleet with the events.
    announced: Collection[tuple[OrderId, MachineId]] = ()
    # What was added to the counts of promises, whoever's and in whatever month; None: nobody has looked.
    counted: PromiseCounts | None = None


def newly_armed(change: Change) -> Iterator[Event]:
    """Find the events that keep others away from now on."""
    for event in change.after.events.values():
        known = change.before.events.get(event.id)
        if event.armed_at is not None and (known is None or known.armed_at is None):
            yield event


def begun(order: Order | None) -> set[tuple[MachineId, datetime | None]]:
    """Return which machines an order had begun with, and when: one may leave a host and come back."""
    return set() if order is None else {(step.machine, step.begun_at) for step in order.steps}
