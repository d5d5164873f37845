"""Reads about the fleet as a whole, for operators."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from forewarn.control import naming
from forewarn.control.host_reachability import Reachability, ReachState
from forewarn.control.use_case import Reading
from forewarn.core.basic_types import GroupKind, HostName, NameKind
from forewarn.core.fleet import machines
from forewarn.core.model import declaration
from forewarn.core.model.constraints import Hold
from forewarn.core.model.declaration import FleetSpec, HostDrivers
from forewarn.core.model.host import Host, HostLoad
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.store.queries.metrics import MetricQueries


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Values for the metrics."""

    present: Mapping[str, Mapping[str, int]]  # by kind and state
    drivers: Mapping[str, int]  # hosts by driver
    holds: Mapping[str, int]  # by scope
    tallies: Mapping[str, int]  # event counters
    reachable: Mapping[str, int]  # 1 or 0 by host, as far as drivers can tell
    overdue: timedelta  # how long the oldest due event has not started
    stuck: int  # open orders that wait for an operator


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDriver:
    """A driver by name."""

    name: str
    kind: str | None  # None: it is not installed
    hosts: int  # how many name it
    installed: bool  # otherwise its steps wait
    why: str | None = None  # why it cannot be used, if known


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedHosts:
    """A page of hosts."""

    hosts: Sequence[Host]
    loads: Mapping[HostName, HostLoad]
    drivers: HostDrivers
    after: str | None  # the cursor of the next page


class FleetViews(Reading):
    """Use cases that read values outside projects."""

    def hosts(self, *, after: str | None, limit: int) -> ListedHosts:
        """List hosts with their loads and drivers."""
        with self._store.read() as snapshot:
            hosts, after = snapshot.fleet.hosts(after=after, limit=limit)
            loads = snapshot.rules.host_loads(hosts)
            return ListedHosts(hosts=hosts, loads=loads, drivers=snapshot.rules.host_drivers(), after=after)

    def host(self, name: str) -> tuple[Host, Sequence[Machine], HostDrivers]:
        """Return a host, its machines, and the drivers of hosts."""
        with self._store.read() as snapshot:
            around = snapshot.rules.around(hosts=[HostName(name)])
            if HostName(name) not in around.hosts:
                raise naming.unknown(NameKind.HOST, name)
            drivers = snapshot.rules.host_drivers()
        carried = [machine for machine in around.machines.values() if machine.host == name]
        by_name = sorted(carried, key=lambda machine: machine.name.casefold())
        return around.hosts[HostName(name)], by_name, drivers

    def reachability(self, host: Host, *, driver: str) -> Reachability:
        """Return the reachability of a host. A host whose driver cannot be used is unreachable."""
        known = self._reached.of(host.name)
        if why := self._drivers_known.unusable_because(driver):
            return replace(known, state=ReachState.UNREACHABLE, since=host.unreachable_since, why=why)
        if host.unreachable_since is not None and known.state is ReachState.UNKNOWN:
            return replace(known, state=ReachState.UNREACHABLE, since=host.unreachable_since)
        return known

    def fleet(self) -> FleetSpec:
        """Return the declaration of the present fleet."""
        with self._store.read() as snapshot:
            whole = snapshot.rules.everything()
        groups = [group for group in whole.groups.values() if group.kind is not GroupKind.STANDALONE]
        return FleetSpec(
            projects=tuple(whole.projects[name] for name in sorted(whole.projects)),
            groups=tuple(
                declaration.group_spec(group) for group in sorted(groups, key=lambda group: group.name)
            ),
            defaults=whole.defaults,
            hosts=tuple(declaration.host_spec(host) for _, host in sorted(whole.hosts.items())),
            machines=tuple(
                machines.spec_of(machine, whole.groups[machine.group])
                for machine in sorted(whole.machines.values(), key=lambda each: (each.project, each.name))
            ),
        )

    def holds(self) -> Sequence[Hold]:
        """List holds, oldest first."""
        with self._store.read() as snapshot:
            return list(snapshot.rules.around().holds.values())

    def still_running(self, hold: Hold) -> Sequence[Order]:
        """List the orders that a hold has stopped, and that still have running steps."""
        if not hold.abort:
            return ()
        with self._store.read() as snapshot:
            return [each for each in snapshot.due.orders_under_way() if each.terms.stopped_by == hold.id]

    def hosts_by_driver(self) -> Mapping[str, int]:
        """Count hosts by driver."""
        with self._store.read() as snapshot:
            return self._by_driver(snapshot.metrics)

    def drivers(self) -> Sequence[KnownDriver]:
        """List all usable drivers, and those that hosts name but that cannot be used."""
        known, hosts = self._drivers_known, self.hosts_by_driver()
        return [
            KnownDriver(
                name=name,
                kind=known.kinds.get(name),
                hosts=hosts.get(name, 0),
                installed=name in known.names,
                why=known.unusable.get(name),
            )
            for name in sorted({*hosts, *known.unusable})
        ]

    def _by_driver(self, metrics: MetricQueries) -> Mapping[str, int]:
        return {**dict.fromkeys(sorted(self._drivers_known.names), 0), **metrics.hosts_by_driver()}

    def counts(self) -> Counts:
        """Return the values for the metrics."""
        with self._store.read() as snapshot:
            first = snapshot.metrics.oldest_awaited()
            late = timedelta() if first is None else self._clock.now() - first
            return Counts(
                present=snapshot.metrics.counts(),
                drivers=self._by_driver(snapshot.metrics),
                holds=snapshot.metrics.holds_by_reach(),
                tallies=snapshot.metrics.tallies(),
                reachable={
                    host: int(known.state is ReachState.REACHABLE)
                    for host, known in sorted(self._reached.all().items())
                },
                overdue=max(late, timedelta()),
                stuck=snapshot.metrics.stuck_orders(),
            )
