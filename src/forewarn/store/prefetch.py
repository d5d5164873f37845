"""What use cases are known to ask for before they are run, and the rows that were loaded for all of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from forewarn.core.basic_types import OrderState, ProjectName, Source
from forewarn.core.model.changes import Changes
from forewarn.core.model.order import Order
from forewarn.store.rows.mapping import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefetch:
    """What a call will ask for; it may ask for more, or for something else."""

    machine: str  # by its name
    project: ProjectName | None = None  # whose machines alone the caller finds; None: all
    answer: tuple[str, str] | None = None  # what it was answered before, by caller and key


NOT_STARTED = (OrderState.QUEUED, OrderState.ANNOUNCED)
Rows = list[Row]


@dataclass(slots=True)
class Loaded:
    """All rows that there are of each key that it has."""

    answers: dict[tuple[str, str], Rows] = field(default_factory=dict)
    # With their hosts, by whose they are looked for among, and the key of their name.
    machines: dict[tuple[ProjectName | None, str], Rows] = field(default_factory=dict)
    scheduled: dict[str, int] = field(default_factory=dict)  # orders of users, by project
    orders: dict[tuple[str, str], Rows] = field(default_factory=dict)  # by the machine or host they concern
    events: dict[str, Rows] = field(default_factory=dict)  # by order
    groups: dict[str, Rows] = field(default_factory=dict)
    notices: dict[str, Rows] = field(default_factory=dict)  # by event

    def follow(self, changes: Changes) -> None:
        """Forget what was changed, or all if that may concern more."""
        if not _is_simple(changes):
            for each in fields(self):
                getattr(self, each.name).clear()
            return
        for order in changes.orders:
            before = changes.orders_before.get(order.id)
            self._forget_order(order)
            if before is not None:
                self._forget_order(before)
            self._count(order, +1)
            self._count(before, -1)
        for event in changes.events:
            self.events.pop(event.order.upper(), None)
            self.groups.pop(event.group, None)
            self.notices.pop(event.id.upper(), None)
        for group in changes.groups:
            self.groups.pop(group.name, None)

    def forget_notices(self, events: Iterable[str]) -> None:
        """Forget what is written of events."""
        for event in events:
            self.notices.pop(event.upper(), None)

    def _forget_order(self, order: Order) -> None:
        self.events.pop(order.id.upper(), None)
        named = {order.machine, *(step.machine for stage in order.stages for step in stage.steps)}
        for machine in named - {None}:
            self.orders.pop(("machines", str(machine).lower()), None)
        if order.host is not None:
            self.orders.pop(("hosts", order.host), None)

    def _count(self, order: Order | None, one: int) -> None:
        if order is None or order.project not in self.scheduled:
            return
        if order.open and order.state in NOT_STARTED and order.source is Source.USER:
            self.scheduled[order.project] += one


# After a change of any of these, what is needed is loaded anew.
_OTHERS = (
    *("defaults", "projects", "hosts", "machines", "holds", "rollouts"),
    *("removed_holds", "removed_projects", "removed_hosts", "removed_groups", "removed_machines"),
    *("relieved_groups", "hosts_to_recheck", "wake_all", "budgets_tightened", "machine_stopped_outside"),
)


def _is_simple(changes: Changes) -> bool:
    return not any(getattr(changes, name) for name in _OTHERS)
