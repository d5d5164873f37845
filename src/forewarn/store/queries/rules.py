"""What decisions are made on: a part of the fleet, or all of it, and who is concerned."""

from collections.abc import Mapping, Sequence

from sqlalchemy import select

from forewarn.core.model.declaration import HostDrivers
from forewarn.core.model.event import Event
from forewarn.core.model.host import Host, HostLoad
from forewarn.core.model.machine import Machine
from forewarn.core.model.slice import Slice
from forewarn.core.words import (
    EventId,
    GroupName,
    HostName,
    MachineId,
)
from forewarn.store import tables
from forewarn.store.reads.reader import MACHINES_WITH_HOSTS, SELECT_GROUPS, among
from forewarn.store.reads.slice_reads import ALL_DOMAIN_COUNTS, DomainCounts, ScopedRuleQueries
from forewarn.store.rows.stored import EVENTS, HOSTS, MACHINES, ORDERS, PROJECTS

_M, _O, _E, _H = tables.machines.c, tables.orders.c, tables.events.c, tables.hosts.c
_EVENTS = among(EVENTS.select(), _E.id)


class RuleQueries(ScopedRuleQueries):
    """What can be loaded for the whole fleet alone, besides what is around something."""

    def everything(self) -> Slice:
        """Load the whole fleet, every open order and every listed event."""
        orders = ORDERS.select().where(tables.OPEN_ORDER).order_by(tables.orders.c.number)
        by_name = MACHINES.select().order_by(tables.machines.c.project, tables.machines.c.key)
        listed = EVENTS.select().where(tables.LISTED_EVENT).order_by(_E.number, _E.id)
        hosts = self._list(HOSTS.read, HOSTS.select().order_by(tables.hosts.c.name))
        groups = self._list(self._transaction.read_group, SELECT_GROUPS.order_by(tables.groups.c.name))
        projects = self._list(PROJECTS.read, PROJECTS.select().order_by(tables.projects.c.name))
        machines = self._list(MACHINES.read, by_name)
        events = self._list(EVENTS.read, listed)
        budgets, counts = self._budgets.load(groups), DomainCounts(self._all(ALL_DOMAIN_COUNTS))
        return Slice(
            number=self._meta.number,
            defaults=self._meta.defaults,
            projects={project.name: project for project in projects},
            hosts={host.name: host for host in hosts},
            groups={group.name: group for group in groups},
            machines={machine.id: machine for machine in machines},
            orders={order.id: order for order in self._list(ORDERS.read, orders)},
            events={event.id: event for event in events},
            listed=counts.listed,
            armed=counts.armed,
            room=self._rooms.for_machines(machines, groups, budgets, sources=hosts),
            budgets=budgets,
            grace=self._meta.grace,
            slew=self._meta.slew,
            absences=self._meta.absences,
            pace=self._meta.pace,
            holds=self._settings.holds(),
        )

    def machine_by_id(self, machine: MachineId) -> Machine | None:
        """Find a machine by its id."""
        return self._find(self._transaction.read_machine, MACHINES_WITH_HOSTS.where(_M.id == machine.lower()))

    def events_of_group(self, group: GroupName, among: Sequence[EventId]) -> Sequence[Event]:
        """Find which of these ids are or ever were events of the group; ids in any case."""
        ids = {event.upper() for event in among}
        found = self._load(EVENTS.read, _EVENTS.where(_E.group_name == group), ids)
        return sorted(found, key=lambda event: (event.number, event.id))

    def host_drivers(self) -> HostDrivers:
        """Return who does the work on which host."""
        declared = select(_H.name, _H.driver).where(tables.OWN_DRIVER)
        own = {HostName(name): driver for name, driver in self._all(declared)}
        return HostDrivers(defaults=self._meta.defaults, own=own)

    def host_loads(self, hosts: Sequence[Host]) -> Mapping[HostName, HostLoad]:
        """Count what each of these hosts carries, whatever its project, and what is free there."""
        return self._rooms.loads(hosts)
