"""What notice the machines of waves got, summed up: of a large wave that is over, some orders at a time."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from forewarn.core.copies import replace
from forewarn.core.guests import notice
from forewarn.core.model.event import NoticeSummary
from forewarn.core.model.rollout import Rollout, Wave, WaveState
from forewarn.core.words import OrderId
from forewarn.store.snapshots import Snapshot

# Orders whose notice is summed up before others get their turn.
AT_ONCE = 200


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
            if _lacks(wave, (WaveState.DONE,)) and len(wave.orders) > AT_ONCE:
                part = self._part(rollout, wave)
                some = wave.orders[part.done : part.done + AT_ONCE]
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
