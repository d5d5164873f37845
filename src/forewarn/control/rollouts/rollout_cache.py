"""In-memory data of open rollouts, so that the engine need not read a large one again on each tick.

`RolloutCache` has the input of decisions. `NoticeSums` has the notice that the machines of a wave got.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from forewarn.core.basic_types import HostName, MachineId, MachineState, OrderId
from forewarn.core.guests import notice
from forewarn.core.model.event import NoticeSummary
from forewarn.core.model.footprint import Footprint
from forewarn.core.model.order import Order
from forewarn.core.model.rollout import Rollout, Wave, WaveState
from forewarn.core.model.slice import HostSurvey
from forewarn.core.rollouts.progress import Orders
from forewarn.store.batch import Transaction
from forewarn.store.saved import Saved, SavedChanges
from forewarn.store.snapshots import Snapshot


class RolloutCache:
    """Data of open rollouts. Valid as long as it gets every commit. Owner: the worker."""

    def __init__(self) -> None:
        self._number: int | None = None  # of the newest change; None: none is known
        self._orders: dict[str, dict[OrderId, Order]] = {}  # of waves under way, by rollout
        self._footprints: dict[HostName, Footprint] = {}  # of hosts that may be next
        self._stopped: dict[str, set[MachineId]] = {}  # machines that have stopped, by rollout

    def note(self, saved: Saved) -> None:
        """Note committed changes. After an uncertain commit or a gap, everything is read again."""
        if saved is None:
            self._forget()
        for each in saved or ():
            if each.before != self._number:
                self._forget()
            self._follow(each)

    def of_last_wave(self, tx: Transaction, rollout: Rollout) -> Orders:
        """Return the orders of the last wave; missing ones are read."""
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
        """Return the machines that have stopped since `keep_stopped`. None: unknown, read them."""
        known = self._stopped.get(rollout.id) if self._is_current(tx) else None
        return None if known is None else frozenset(known)

    def keep_stopped(self, tx: Transaction, rollout: Rollout, stopped: Iterable[MachineId]) -> None:
        """Save which machines are stopped now."""
        if self._is_current(tx):
            self._stopped[rollout.id] = set(stopped)

    def survey(self, tx: Transaction, hosts: Sequence[HostName]) -> HostSurvey:
        """Load the input of a decision about hosts; known footprints are not computed again."""
        if not self._is_current(tx):
            return tx.rollouts.survey(hosts)
        survey = tx.rollouts.survey(hosts, known=self._footprints)
        self._footprints.update((host, survey.footprint(host)) for host in hosts)
        return survey

    def _is_current(self, tx: Transaction) -> bool:
        """Return whether the cache has every change that the transaction sees."""
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
                self._footprints.clear()  # to limit their number; another rollout computes its own
        self._number = saved.number

    def _forget(self) -> None:
        self._number = None
        self._orders.clear()
        self._stopped.clear()
        self._footprints.clear()


# Orders to sum up per tick, so that other callers get their turn.
SUMMED_AT_ONCE = 200


@dataclass(slots=True)
class _PartialSum:
    """A partial sum of a wave."""

    orders: Sequence[OrderId]
    done: int = 0
    found: list[NoticeSummary] = field(default_factory=list)


class NoticeSums:
    """Sums of finished waves that are not saved yet. After a start they are computed again."""

    def __init__(self) -> None:
        self._sums_by_rollout: dict[str, _PartialSum] = {}  # by rollout, which has one wave under way

    def add(self, snapshot: Snapshot, rollout: Rollout) -> bool:
        """Sum up the next orders of a large finished wave; return whether there were any."""
        for wave in rollout.waves:
            if _lacks(wave, (WaveState.DONE,)) and len(wave.orders) > SUMMED_AT_ONCE:
                sums = self._sums_by_rollout.get(rollout.id)
                if sums is None or sums.orders != wave.orders:
                    sums = self._sums_by_rollout[rollout.id] = _PartialSum(wave.orders)
                some = wave.orders[sums.done : sums.done + SUMMED_AT_ONCE]
                if some:
                    sums.found.append(_summary(snapshot, some))
                    sums.done += len(some)
                    return True
        return False

    def complete(self, snapshot: Snapshot, rollout: Rollout) -> Rollout:
        """Return a rollout with the sums of all finished waves; missing ones are computed."""
        sums = self._sums_by_rollout.pop(rollout.id, _PartialSum(()))
        return _summed(snapshot, rollout, (WaveState.DONE,), sums)


def with_notice(snapshot: Snapshot, rollout: Rollout) -> Rollout:
    """Sum up the notice of all waves. Finished waves have saved sums."""
    return _summed(snapshot, rollout, tuple(WaveState), _PartialSum(()))


def _summed(snapshot: Snapshot, rollout: Rollout, of: Collection[WaveState], known: _PartialSum) -> Rollout:
    def summed(wave: Wave) -> Wave:
        if not _lacks(wave, of):
            return wave
        done = known if known.orders == wave.orders else _PartialSum(wave.orders)
        rest = wave.orders[done.done :]
        sums = [*done.found, _summary(snapshot, rest)] if rest or not done.found else done.found
        return replace(wave, notice=notice.total(sums))

    return replace(rollout, waves=tuple(map(summed, rollout.waves)))


def _lacks(wave: Wave, of: Collection[WaveState]) -> bool:
    return wave.begun and wave.notice is None and wave.state in of


def _summary(snapshot: Snapshot, orders: Sequence[OrderId]) -> NoticeSummary:
    events = snapshot.rollouts.events_of_orders(orders)
    sent = snapshot.work.notices([event.id for event in events])
    absences = snapshot.work.absences()
    return notice.summary(
        (event, notice.by_machine(event, sent.get(event.id, {}), absences=absences)) for event in events
    )
