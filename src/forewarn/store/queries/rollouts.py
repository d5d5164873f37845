"""Rollouts, and the part of the fleet that decisions on them need."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from sqlalchemy import and_, exists, func, or_, select

from forewarn.core.admission.work_durations import MEMORY
from forewarn.core.basic_types import (
    STANDALONE,
    GroupName,
    HostName,
    HostState,
    MachineId,
    MachineName,
    MachineState,
    Mobility,
    OrderId,
)
from forewarn.core.model.event import Event
from forewarn.core.model.footprint import DomainShare, Footprint
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.order import Order
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.slice import HostSurvey
from forewarn.core.rollouts.evacuation import EvacuationInput
from forewarn.store import tables
from forewarn.store.key_lists import for_keys
from forewarn.store.reads.capacity import GROUP_SIZES, emptying_input, load_budgets
from forewarn.store.reads.open_transaction import Queries
from forewarn.store.reads.slice_reads import DOMAIN_COUNTS, DomainCounts, load_settings
from forewarn.store.reads.statements import SELECT_GROUPS
from forewarn.store.rows.mapping import micros
from forewarn.store.rows.stored import EVENTS, HOSTS, ORDERS, ROLLOUTS

_R, _M, _E, _O = tables.rollouts.c, tables.machines.c, tables.events.c, tables.orders.c
_NOT_STOPPED = _M.state != MachineState.STOPPED.value

_ROLLOUTS = ROLLOUTS.select()
_OPEN = _ROLLOUTS.where(tables.OPEN_ROLLOUT)
_BY_CREATION = (_R.number, _R.id)
_ORDERS_ON = for_keys(ORDERS.select(), tables.HOST_OF_OPEN_ORDER).where(_O.work.is_not(None))
_ORDERS = for_keys(ORDERS.select(), _O.id)
_EVENTS_OF_ORDERS = for_keys(EVENTS.select(), _E.order_id)
_HOSTS = for_keys(HOSTS.select(), tables.hosts.c.name)
_MEMORY = _M.resources[MEMORY].as_float()
_SHARE = (_M.host, _M.group_name, _M.update_domain, _M.project, _M.mobility)
_SHARES = (
    for_keys(
        select(*_SHARE, func.count(), func.count(_MEMORY), func.sum(_MEMORY), func.max(_MEMORY)), _M.host
    )
    .where(_NOT_STOPPED)
    .group_by(*_SHARE)
)
_GROUPS = for_keys(SELECT_GROUPS, tables.groups.c.name)
_HEARD = for_keys(select(tables.groups.c.name), tables.groups.c.name).where(tables.groups.c.heard)
_H = tables.hosts.c
# An order reopens the hosts that it cordoned once it is done with them.
_TAKING = and_(or_(_H.state == HostState.OK.value, _H.cordoned_for.is_not(None)), _H.bare_metal.is_(False))
_TAKING_HOSTS = select(_H.name).where(_TAKING)
_CARRIED = (
    for_keys(select(_M.host, _M.group_name, _M.update_domain, func.count()), _M.group_name)
    .where(_NOT_STOPPED)
    .group_by(_M.host, _M.group_name, _M.update_domain)
)
_RACKS = select(_H.rack, func.count()).where(_H.rack.is_not(None), _TAKING).group_by(_H.rack)
_SEEN = exists().where(tables.machine_activity.c.machine_id == _M.id)
_NEVER_SEEN = for_keys(select(_M.id, _M.name), _M.host).where(_NOT_STOPPED, ~_SEEN)


class RolloutQueries(Queries):
    """Queries for rollouts and for the part of the fleet that they cover."""

    def find(self, rollout: str) -> Rollout | None:
        """Find a rollout, open or over; the case of the id does not matter."""
        return self._tx.find(ROLLOUTS.read, _ROLLOUTS.where(_R.id == rollout.upper()))

    def page(self, *, after: str | None, limit: int) -> tuple[Sequence[Rollout], str | None]:
        """List rollouts, newest first."""
        return self._tx.page(ROLLOUTS.read, _ROLLOUTS, _BY_CREATION, after=after, limit=limit, newest=True)

    def page_of_open(self, *, after: str | None, limit: int) -> tuple[Sequence[Rollout], str | None]:
        """List open rollouts, newest first, page by page."""
        return self._tx.page(ROLLOUTS.read, _OPEN, _BY_CREATION, after=after, limit=limit, newest=True)

    def open(self) -> Sequence[Rollout]:
        """List open rollouts, oldest first."""
        return self._tx.read_all(ROLLOUTS.read, _OPEN.order_by(*_BY_CREATION))

    def due(self, now: datetime, *, limit: int) -> Sequence[str]:
        """List the open rollouts that are due, longest due first."""
        query = select(_R.id).where(tables.OPEN_ROLLOUT, _R.due_at <= micros(now))
        return self._tx.connection.scalars(query.order_by(_R.due_at, _R.number).limit(limit)).all()

    def orders_by_id(self, orders: Iterable[OrderId]) -> Mapping[OrderId, Order]:
        """Load orders, open or over."""
        return {order.id: order for order in self._tx.load(ORDERS.read, _ORDERS, orders)}

    def events_of_orders(self, orders: Sequence[OrderId]) -> Sequence[Event]:
        """List all events of some orders, ended ones too, by creation."""
        found = self._tx.load(EVENTS.read, _EVENTS_OF_ORDERS, {order.upper() for order in orders})
        return sorted(found, key=lambda event: (event.number, event.id))

    def machines_never_seen(self, hosts: Sequence[HostName]) -> Mapping[MachineId, MachineName]:
        """Find the machines on these hosts that have never polled, as far as that is saved."""
        return {row[0]: row[1] for row in self._tx.rows_for(_NEVER_SEEN, hosts)}

    def surroundings(self, hosts: Sequence[HostName]) -> EvacuationInput:
        """Load the machines on these hosts, and the free capacity of all sound hosts."""
        return emptying_input(self._tx, hosts)

    def survey(
        self, hosts: Sequence[HostName], *, known: Mapping[HostName, Footprint] | None = None
    ) -> HostSurvey:
        """Load the input of a decision about work on these hosts; `known` footprints are not counted."""
        known = known or {}
        footprints = self.footprints([host for host in hosts if host not in known])
        footprints |= {host: known[host] for host in hosts if host in known and known[host].counts}
        disturbed = dict.fromkeys(group for footprint in footprints.values() for group in footprint.counts)
        listed = [name for name in disturbed if not name.startswith(STANDALONE)]
        groups = self._tx.load(self._tx.read_group, _GROUPS, listed)
        sizes = {row[0]: row[1] for row in self._tx.rows_for(GROUP_SIZES, listed)}
        orders = self._tx.load(ORDERS.read, _ORDERS_ON, hosts)
        settings = load_settings(self._tx)
        return HostSurvey(
            hosts={host.name: host for host in self._tx.load(HOSTS.read, _HOSTS, hosts)},
            footprints=footprints,
            orders={order.host: order for order in orders if order.host},
            armed=DomainCounts(self._tx.rows_for(DOMAIN_COUNTS, disturbed)).armed,
            budgets=load_budgets(self._tx, groups),
            notices={group.name: group.policy.notice for group in groups if group.policy.notice is not None},
            heard=frozenset(row[0] for row in self._tx.rows_for(_HEARD, disturbed)),
            policies={group.name: group.policy for group in groups if group.policy != GroupPolicy()},
            sizes={group.name: sizes.get(group.name, 0) for group in groups},
            racks={row[0]: row[1] for row in self._tx.rows(_RACKS)},
            holds=tuple(settings.holds.values()),
            projects=settings.projects,
            slew=self._tx.meta.slew,
            pace=self._tx.meta.pace,
        )

    def other_hosts_with(
        self, groups: Collection[GroupName], *, besides: Collection[HostName]
    ) -> Mapping[HostName, Footprint]:
        """Count these groups on the other hosts that accept machines."""
        others = {row[0] for row in self._tx.rows(_TAKING_HOSTS)}.difference(besides)
        counts: dict[HostName, dict[GroupName, dict[int, int]]] = defaultdict(lambda: defaultdict(dict))
        for host, group, domain, count in self._tx.rows_for(_CARRIED, groups) if others else ():
            if host in others:
                counts[host][group][domain] = count
        return {host: Footprint(counts=its) for host, its in counts.items()}

    def footprints(self, hosts: Sequence[HostName]) -> dict[HostName, Footprint]:
        """Count the machines of each host."""
        carried: dict[HostName, list[DomainShare]] = defaultdict(list)
        for host, group, domain, project, mobility, count, sized, memory, largest in self._tx.rows_for(
            _SHARES, hosts
        ):
            carried[host].append(
                DomainShare(
                    group=group,
                    update_domain=domain,
                    project=project,
                    mobility=Mobility(mobility),
                    machines=count,
                    unsized=count - sized,
                    memory=memory or 0.0,
                    largest=largest or 0.0,
                )
            )
        return {host: Footprint.of(shares) for host, shares in carried.items()}
