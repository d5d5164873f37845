"""Whether the machines of a rollout run: forewarn asks their hypervisors while they have time to become well.

When a driver reports a machine's work as done, the machine runs. It may stop a minute later, and may never
have polled. So forewarn lists the hosts of recent waves again and again, and follows the answers as an import
does: a machine that is off delays the next wave, and pauses the rollout if it stays off.
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
    """Hosts that one driver is to list, and their machines as they were before."""

    driver: str
    hosts: tuple[Host, ...]
    machines: tuple[ObservedMachine, ...]

    def seen(self, found: FoundFleet) -> list[ObservedMachine]:
        """Return the machines that the driver has found in another state, or on another host.

        A machine that the driver does not list may be on a host that was not asked.
        """
        listed = {each.vm_id.lower(): each for each in found.machines if not each.moving}
        pairs = ((each, listed.get(each.before.id.lower())) for each in self.machines)
        seen = (
            replace(each, host=there.host, running=there.running)
            for each, there in pairs
            if there is not None
        )
        return [each for each in seen if _differs(each)]


def _differs(seen: ObservedMachine) -> bool:
    before = seen.before
    is_on = before.state is not MachineState.STOPPED
    return seen.running != is_on or (is_on and seen.host != before.host)


class HostListings(Reading):
    """Says which hosts to list."""

    def load(self) -> list[HostListing]:
        """Return which drivers to ask about which machines; none if no rollout waits for machines."""
        with self._store.read() as snapshot:
            treated = [
                each for rollout in snapshot.rollouts.open() for each in self._treated(snapshot, rollout)
            ]
            return list(self._looks(snapshot, sorted(set(treated)))) if treated else []

    def _treated(self, snapshot: Snapshot, rollout: Rollout) -> list[MachineId]:
        """Return the machines whose work is done and that may still take their time to become well."""
        if rollout.state is not RolloutState.RUNNING:
            return []
        waves = machine_health.recent(rollout, now=self._clock.now())
        orders = snapshot.rollouts.orders_by_id(order for wave in waves for order in wave.orders)
        return [step.machine for step in machine_health.treated(rollout, orders.values())]

    def _looks(self, snapshot: Snapshot, machines: Sequence[MachineId]) -> Iterator[HostListing]:
        """Group machines by the drivers of their hosts; one that is off is looked for where it was last."""
        drivers = snapshot.rules.host_drivers()
        draft = self._draft(snapshot.rules.around(machines=machines))
        by_driver: dict[str, dict[HostName, list[ObservedMachine]]] = {}
        for id_ in machines:
            if (machine := draft.machines.get(id_)) is None:
                continue
            host = machine.host or machine.last_host
            if host is None or drivers.of(host) not in self._drivers_known.listing:
                continue
            seen = ObservedMachine(before=machine, hands=outside_changes.hands(draft, id_))
            by_driver.setdefault(drivers.of(host), {}).setdefault(host, []).append(seen)
        for driver, there in by_driver.items():
            hosts = (snapshot.fleet.host(name) for name in there)
            yield HostListing(
                driver=driver,
                hosts=tuple(host for host in hosts if host is not None),
                machines=tuple(seen for its in there.values() for seen in its),
            )


class MachineSightings(UseCase):
    """Saves what drivers have found of machines."""

    def save(self, tx: Transaction, seen: Sequence[ObservedMachine]) -> None:
        """Follow what was done to machines outside forewarn."""
        around = tx.rules.around(machines=[each.before.id for each in seen])
        with self._saving(tx, around) as draft:
            for _ in outside_changes.follow(draft, seen, by=FOREWARN):
                pass
