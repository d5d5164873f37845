"""Whether the machines of a rollout keep running: forewarn lists their hosts for some time after the work.

A driver reports work as done when the machine runs. The machine may stop a minute later, and may never have
polled. forewarn therefore lists the hosts of recent waves repeatedly, and applies the results as an import
does. A machine that is off delays the next wave, and pauses the rollout if it stays off.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from forewarn.control.use_case import Reading, UseCase
from forewarn.core.basic_types import FOREWARN, HostName, MachineId, MachineState
from forewarn.core.fleet import outside_changes
from forewarn.core.fleet.fleet_changes import ObservedMachine
from forewarn.core.model.found_fleet import FoundFleet
from forewarn.core.model.host import Host
from forewarn.core.model.rollout import Rollout, RolloutState
from forewarn.core.rollouts import machine_health
from forewarn.store.batch import Transaction
from forewarn.store.snapshots import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class HostListing:
    """Hosts for one driver to list, and the known state of their machines."""

    driver: str
    hosts: tuple[Host, ...]
    machines: tuple[ObservedMachine, ...]

    def seen(self, found: FoundFleet) -> list[ObservedMachine]:
        """Return the machines whose state or host differs in a listing.

        A machine that is missing in the listing may be on another host, which was not listed.
        """
        listed = {each.vm_id.lower(): each for each in found.machines if not each.moving}
        changed = []
        for each in self.machines:
            there = listed.get(each.before.id.lower())
            is_on = each.before.state is not MachineState.STOPPED
            if there and (there.running != is_on or (is_on and there.host != each.before.host)):
                changed.append(replace(each, host=there.host, running=there.running))
        return changed


class HostListings(Reading):
    """Determines which hosts to list."""

    def load(self) -> list[HostListing]:
        """Return the listings to make; none if no rollout waits for machines."""
        with self._store.read() as snapshot:
            treated = [
                each for rollout in snapshot.rollouts.open() for each in self._treated(snapshot, rollout)
            ]
            return list(self._looks(snapshot, sorted(set(treated)))) if treated else []

    def _treated(self, snapshot: Snapshot, rollout: Rollout) -> list[MachineId]:
        """Return the machines whose work is done, and that are still being watched."""
        if rollout.state is not RolloutState.RUNNING:
            return []
        waves = machine_health.watched_waves(rollout, now=self._clock.now())
        orders = snapshot.rollouts.orders_by_id(order for wave in waves for order in wave.orders)
        return [step.machine for step in machine_health.finished_steps(rollout, orders.values())]

    def _looks(self, snapshot: Snapshot, machines: Sequence[MachineId]) -> Iterator[HostListing]:
        """Group machines by the drivers of their hosts. For a stopped machine, the last host counts."""
        drivers = snapshot.rules.host_drivers()
        draft = self._draft(snapshot.rules.around(machines=machines))
        by_driver: dict[str, dict[HostName, list[ObservedMachine]]] = {}
        for id_ in machines:
            if (machine := draft.machines.get(id_)) is None:
                continue
            host = machine.host or machine.last_host
            if host is None or drivers.of(host) not in self._drivers_known.listing:
                continue
            seen = ObservedMachine(before=machine, open_steps=outside_changes.open_steps(draft, id_))
            by_driver.setdefault(drivers.of(host), {}).setdefault(host, []).append(seen)
        for driver, there in by_driver.items():
            hosts = (snapshot.fleet.host(name) for name in there)
            yield HostListing(
                driver=driver,
                hosts=tuple(host for host in hosts if host is not None),
                machines=tuple(seen for its in there.values() for seen in its),
            )


class MachineSightings(UseCase):
    """Saves the results of listings."""

    def save(self, tx: Transaction, seen: Sequence[ObservedMachine]) -> None:
        """Follow changes of machines outside forewarn."""
        around = tx.rules.around(machines=[each.before.id for each in seen])
        with self._saving(tx, around) as draft:
            for _ in outside_changes.apply_reports(draft, seen, by=FOREWARN):
                pass
