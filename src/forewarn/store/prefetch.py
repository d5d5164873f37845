"""Rows that a batch loads for all its jobs at once, because it knows what the jobs will ask for."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from forewarn.core.basic_types import OrderState, ProjectName, Source
from forewarn.core.model.changes import Changes
from forewarn.core.model.order import Order
from forewarn.store.rows.mapping import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefetch:
    """The expected queries of a call; the call may make more, or others."""

    machine: str  # its name
    project: ProjectName | None = None  # the project that the caller is limited to; None: all
    answer: tuple[str, str] | None = None  # caller and key of an earlier answer


NOT_STARTED = (OrderState.QUEUED, OrderState.ANNOUNCED)
Rows = list[Row]


@dataclass(slots=True)
class PrefetchedRows:
    """All rows of each key that it has."""

    answers: dict[tuple[str, str], Rows] = field(default_factory=dict)
    # Machines with their hosts, by the caller's project and the key of the machine's name.
    machines: dict[tuple[ProjectName | None, str], Rows] = field(default_factory=dict)
    scheduled: dict[str, int] = field(default_factory=dict)  # orders of users, by project
    orders: dict[tuple[str, str], Rows] = field(default_factory=dict)  # by ("machines" or "hosts", its key)
    events: dict[str, Rows] = field(default_factory=dict)  # by order
    groups: dict[str, Rows] = field(default_factory=dict)
    notices: dict[str, Rows] = field(default_factory=dict)  # by event

    def invalidate(self, changes: Changes) -> None:
        """Forget the rows that were changed, or all rows if the changes may affect more."""
        if any(getattr(changes, name) for name in _AFFECT_OTHERS):
            for each in fields(self):
                getattr(self, each.name).clear()
            return
        for order in changes.orders:
            before = changes.orders_before.get(order.id)
            self._forget_order(order)
            self._count(order, +1)
            if before is not None:
                self._forget_order(before)
                self._count(before, -1)
        for event in changes.events:
            self.events.pop(event.order.upper(), None)
            self.groups.pop(event.group, None)
            self.notices.pop(event.id.upper(), None)
        for group in changes.groups:
            self.groups.pop(group.name, None)

    def forget_notices(self, events: Iterable[str]) -> None:
        """Forget the notices of events."""
        for event in events:
            self.notices.pop(event.upper(), None)

    def _forget_order(self, order: Order) -> None:
        self.events.pop(order.id.upper(), None)
        named = {order.machine, *(step.machine for stage in order.stages for step in stage.steps)}
        for machine in named - {None}:
            self.orders.pop(("machines", str(machine).lower()), None)
        if order.host is not None:
            self.orders.pop(("hosts", order.host), None)

    def _count(self, order: Order, one: int) -> None:
        if order.project not in self.scheduled:
            return
        if order.open and order.state in NOT_STARTED and order.source is Source.USER:
            self.scheduled[order.project] += one


_AFFECT_OTHERS = (
    *("defaults", "projects", "hosts", "machines", "holds", "rollouts"),
    *("removed_holds", "removed_projects", "removed_hosts", "removed_groups", "removed_machines"),
    *("relieved_groups", "hosts_to_recheck", "wake_all", "budgets_tightened", "machine_stopped_outside"),
)
