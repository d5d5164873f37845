"""What rollouts are decided by, in memory as it was saved: a large one does not read it anew at each look."""

from collections.abc import Iterable, Sequence

from forewarn.core.model.footprint import Footprint
from forewarn.core.model.order import Order
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.slice import HostSurvey
from forewarn.core.rollouts.progress import Orders
from forewarn.core.words import HostName, MachineId, MachineState, OrderId
from forewarn.store.batch import Transaction
from forewarn.store.saved import Saved, SavedChanges


class RolloutCache:
    """Knows things of open rollouts for as long as it is told of everything that is saved: by the worker."""

    def __init__(self) -> None:
        self._number: int | None = None  # of the newest change that it knows; None: nobody has told of any
        self._orders: dict[str, dict[OrderId, Order]] = {}  # of waves under way, by their rollouts
        self._footprints: dict[HostName, Footprint] = {}  # of hosts whose turn may come next
        self._stopped: dict[str, set[MachineId]] = {}  # machines that have stopped since, by rollouts

    def note(self, saved: Saved) -> None:
        """Take what was saved; if something else may have been, what was known is read again."""
        if saved is None:
            self._forget()
        for each in saved or ():
            if each.before != self._number:
                self._forget()
            self._follow(each)

    def of_last_wave(self, tx: Transaction, rollout: Rollout) -> Orders:
        """Return the orders of the wave that began last; what is not known is read."""
        wanted = rollout.begun[-1].orders if rollout.begun else ()
        current = self._is_current(tx)
        known = self._orders.get(rollout.id, {}) if current else {}
        missing = [order for order in wanted if order not in known]
        read = tx.rollouts.orders_by_id(missing) if missing else {}
        orders = {order: known[order] if order in known else read[order] for order in wanted}
        if current and rollout.open:
            self._orders[rollout.id] = orders
        return dict(orders)

    def stopped(self, tx: Transaction, rollout: Rollout) -> frozenset[MachineId] | None:
        """Return the machines that have stopped since `keep_stopped`; None: not known, read it."""
        known = self._stopped.get(rollout.id) if self._is_current(tx) else None
        return None if known is None else frozenset(known)

    def keep_stopped(self, tx: Transaction, rollout: Rollout, stopped: Iterable[MachineId]) -> None:
        """Keep which of its machines are stopped; the next are those that stop from now on."""
        if self._is_current(tx):
            self._stopped[rollout.id] = set(stopped)

    def survey(self, tx: Transaction, hosts: Sequence[HostName]) -> HostSurvey:
        """Load what a decision about work on hosts needs; known footprints are not counted again."""
        if not self._is_current(tx):
            return tx.rollouts.survey(hosts)
        survey = tx.rollouts.survey(hosts, known=self._footprints)
        self._footprints.update((host, survey.footprint(host)) for host in hosts)
        return survey

    def _is_current(self, tx: Transaction) -> bool:
        """Return whether all is known: what the transaction itself has saved is not, nor what others have."""
        return self._number == tx.records.newest()

    def _follow(self, saved: SavedChanges) -> None:
        changes = saved.changes
        for order in changes.orders:
            if order.terms.rollout is not None:
                self._orders.setdefault(order.terms.rollout, {})[order.id] = order
        for machine in (*changes.machines, *changes.machines_before.values()):
            if machine.host is not None:
                self._footprints.pop(machine.host, None)
        for stopped in self._stopped.values():
            stopped.difference_update(machine.id for machine in changes.machines)
            stopped.update(each.id for each in changes.machines if each.state is MachineState.STOPPED)
        for rollout in changes.rollouts:
            if not rollout.open:
                self._orders.pop(rollout.id, None)
                self._stopped.pop(rollout.id, None)
                self._footprints.clear()  # not kept for good: another rollout counts those of its hosts anew
        self._number = saved.number

    def _forget(self) -> None:
        self._number = None
        self._orders.clear()
        self._stopped.clear()
        self._footprints.clear()
