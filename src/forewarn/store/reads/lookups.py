"""Finding single things of a scope."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import and_, bindparam, func, or_, select

from forewarn.core.errors import Conflict, NotFound
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.words import (
    EventId,
    GroupName,
    HostName,
    MachineId,
    OrderId,
    OrderState,
    ProjectName,
    Source,
)
from forewarn.store import tables
from forewarn.store.reads.reader import EVENT_PROJECT, MACHINES_WITH_HOSTS, SELECT_GROUPS, Reader, among
from forewarn.store.rows.stored import EVENTS, HOSTS, ORDERS, name_key
from forewarn.store.rows.times import moment

_M, _G, _O, _E = tables.machines.c, tables.groups.c, tables.orders.c, tables.events.c
_A = tables.machine_activity.c
_LAST_SEEN = among(select(_M.id, _A.last_seen).join(tables.machine_activity, _A.machine_id == _M.id), _M.id)
_NOT_STARTED = (OrderState.QUEUED, OrderState.ANNOUNCED)
# Asked with most orders, and so put together once.
_MACHINE = MACHINES_WITH_HOSTS.where(_M.key == bindparam("name_key")).order_by(_M.project)
_SCHEDULED = select(func.count()).where(
    tables.OPEN_ORDER,
    _O.state.in_([state.value for state in _NOT_STARTED]),
    _O.source == Source.USER.value,
    _O.project == bindparam("of"),
)


class Lookups(Reader):
    """What can be asked about one thing."""

    def machine(self, name: str, *, project: ProjectName | None = None) -> Machine:
        """Find a machine by its name, any case; NotFound, or Conflict if several projects have it."""
        query = _MACHINE if project is None else _MACHINE.where(_M.project == project)
        rows = self._all(self._mine(query, _M.project), {"name_key": name_key(name)})
        found = [self._take_found(row) for row in rows]
        if not found:
            raise NotFound(f'machine "{name}" does not exist')
        if len(found) > 1:
            projects = ", ".join(machine.project for machine in found)
            raise Conflict(f'machine "{name}" is in several projects ({projects}): say which')
        return found[0]

    def group(self, name: GroupName) -> Group | None:
        """Find a group, a standalone machine's own included."""
        return self._find(self._group, self._mine(SELECT_GROUPS.where(_G.name == name), _G.project))

    def host(self, name: HostName) -> Host | None:
        """Find a host; for a project, if it carries a machine of it."""
        return self._find(HOSTS.read, self._my_hosts().where(tables.hosts.c.name == name))

    def order(self, order: OrderId) -> Order | None:
        """Find an order, open or over; ids in any case."""
        query = ORDERS.select().where(_O.id == order.upper())
        if self._project is not None:
            told = self._mine(select(_E.order_id).where(_E.order_id == order.upper()), EVENT_PROJECT)
            of_host = and_(_O.project.is_(None), _O.id.in_(told))
            query = query.where(or_(_O.project == self._project, of_host))
        return self._find(ORDERS.read, query)

    def event(self, event: EventId) -> Event | None:
        """Find an event, listed or over; ids in any case."""
        query = EVENTS.select().where(_E.id == event.upper())
        return self._find(EVENTS.read, self._mine(query, EVENT_PROJECT))

    def events_of_order(self, order: OrderId) -> Sequence[Event]:
        """List all events of an order, over ones too, by creation."""
        query = EVENTS.select().where(_E.order_id == order.upper())
        if self._project is not None:
            # By the order's project first: the record that tells an ended event's own may have been removed.
            project = select(_O.project).where(_O.id == _E.order_id).scalar_subquery()
            mine = self._mine(select(_E.id).where(_E.order_id == order.upper()), EVENT_PROJECT)
            query = query.where(or_(project == self._project, and_(project.is_(None), _E.id.in_(mine))))
        return self._list(EVENTS.read, query.order_by(_E.number, _E.id))

    def scheduled_user_orders(self, project: ProjectName) -> int:
        """Count a project's user-initiated orders that are not started yet."""
        return int(self._connection.execute(_SCHEDULED, {"of": project}).scalar_one())

    def last_seen(self, machines: Sequence[MachineId]) -> Mapping[MachineId, datetime]:
        """Return when each of these machines was last seen, as far as that is saved."""
        ids = {machine.lower() for machine in machines}
        query = self._mine(_LAST_SEEN, _M.project)
        return {machine: moment(seen) for machine, seen in self._among(query, ids)}
