"""What the engine keeps of open rollouts in memory, so that a large one is not read again at each look.

`RolloutCache` keeps what decides about them, `NoticeSums` the notice that the machines of a wave got.
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


# Orders whose notice is summed up before others get their turn.
SUMMED_AT_ONCE = 200


@dataclass(slots=True)
class _Part:
    """How far the orders of a wave are summed up."""

    orders: Sequence[OrderId]
    done: int = 0
    sums: list[NoticeSummary] = field(default_factory=list)


class NoticeSums:
    """Sums of waves that are over and not saved yet; after a start they are begun anew."""

    def __init__(self) -> None:
        self._parts: dict[str, _Part] = {}  # by rollout, which has one wave under way

    def add(self, snapshot: Snapshot, rollout: Rollout) -> bool:
        """Sum up the next orders of a large wave that is over; return whether there were any."""
        for wave in rollout.waves:
            if _lacks(wave, (WaveState.DONE,)) and len(wave.orders) > SUMMED_AT_ONCE:
                part = self._part(rollout, wave)
                some = wave.orders[part.done : part.done + SUMMED_AT_ONCE]
                if some:
                    part.sums.append(_summary(snapshot, some))
                    part.done += len(some)
                    return True
        return False

    def complete(self, snapshot: Snapshot, rollout: Rollout) -> Rollout:
        """Return a rollout whose waves that are over have their sums; what is missing is summed up now."""
        part = self._parts.pop(rollout.id, _Part(()))
        return _summed(snapshot, rollout, (WaveState.DONE,), part)

    def _part(self, rollout: Rollout, wave: Wave) -> _Part:
        part = self._parts.get(rollout.id)
        if part is None or part.orders != wave.orders:
            part = self._parts[rollout.id] = _Part(wave.orders)
        return part


def with_notice(snapshot: Snapshot, rollout: Rollout) -> Rollout:
    """Sum up what notice the machines of all waves got so far; what is over was summed once, and is kept."""
    return _summed(snapshot, rollout, tuple(WaveState), _Part(()))


def _summed(snapshot: Snapshot, rollout: Rollout, of: Collection[WaveState], known: _Part) -> Rollout:
    def summed(wave: Wave) -> Wave:
        if not _lacks(wave, of):
            return wave
        done = known if known.orders == wave.orders else _Part(wave.orders)
        rest = wave.orders[done.done :]
        sums = [*done.sums, _summary(snapshot, rest)] if rest or not done.sums else done.sums
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
