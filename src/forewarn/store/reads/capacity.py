"""How full hosts are, how many healthy machines groups need, and whether hosts can be emptied."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Integer, Select, bindparam, func, literal_column, select, tuple_, union_all

from forewarn.core.basic_types import (
    GroupKind,
    GroupName,
    HostName,
    HostState,
    MachineId,
    MachineName,
    MachineState,
    Mobility,
)
from forewarn.core.model.constraints import Budget
from forewarn.core.model.event import Resource
from forewarn.core.model.group import Group
from forewarn.core.model.host import RACK, Host, HostLoad, HostResource, Room
from forewarn.core.model.machine import Machine
from forewarn.core.rollouts.emptying import EvacuationInput, LeavingMachine
from forewarn.store import tables
from forewarn.store.key_lists import key_list, one_of
from forewarn.store.reads.reader import Reader, among, chunks
from forewarn.store.rows.mapping import Row, moment_or_none
from forewarn.store.rows.stored import STORED

_H, _M, _E, _O = tables.hosts.c, tables.machines.c, tables.events.c, tables.orders.c
# Each machine takes one host, not its own; beyond as many as that there is something to choose from. Looking
# at all hosts would find one without the group more often, and cost more the larger the fleet.
TO_CHOOSE_FROM = 32

# One host after the other: to EXISTS, PostgreSQL may answer by reading the hosts of all orders first.
_ORDERED = select(literal_column("1")).where(_H.name == tables.HOST_OF_OPEN_ORDER).limit(1).scalar_subquery()
_ROOMS = select(
    _H.name,
    _H.carried,
    _ORDERED.is_not(None),
    _H.driver,
    _H.labels,
    _H.resources,
    _H.unreachable_since,
).where(_H.bare_metal.is_(False))
_EMPTIEST = (
    _ROOMS.where(_H.state == HostState.OK.value)
    .order_by(_H.carried, _H.name)
    .limit(bindparam("most", type_=Integer))
)
# Along the same index; only where some of the emptiest cannot be reached.
_EMPTIEST_REACHED = _EMPTIEST.where(_H.unreachable_since.is_(None))
_OF_DOMAIN = (
    select(func.count())
    .where(
        _M.place == _H.name,
        _M.group_name == bindparam("group"),
        _M.update_domain == bindparam("domain"),
    )
    .scalar_subquery()
)
# Along the same index. What it passes over are hosts that are crowded, and a group has no more of these than
# it has machines: in a larger fleet it takes no longer.
_UNCROWDED = _EMPTIEST_REACHED.where(bindparam("spare", type_=Integer) > _OF_DOMAIN)
_IN_RACK = _EMPTIEST_REACHED.where(_H.rack == bindparam("rack"))
# By their names: along the index of states, which an unchanged column would tempt SQLite to, it would look at
# all sound hosts.
_NAMED = among(_ROOMS, _H.name).where(func.coalesce(_H.state, "") == HostState.OK.value)
# A group has no more of these than it has machines; of very many not all are looked at. SQLite looks up no
# pairs in an index, so it is given the groups too. Along the index of places, which the column alone would
# tempt it to, it would look at all machines.
_PLACE = func.coalesce(_M.place, "")
_PLACES = (
    among(select(_PLACE), _M.group_name)
    .where(tuple_(_M.group_name, _M.update_domain).in_(bindparam("domains", expanding=True)), _PLACE != "")
    .group_by(_PLACE)
    .order_by(_PLACE)
    .limit(bindparam("most", type_=Integer))
)
# What takes something of a host: all that is there, and all that is on its way.
_TAKEN = union_all(
    select(_M.host, _M.resources).where(one_of(_M.host, key_list("hosts"))),
    select(_M.bound_for, _M.resources).where(
        one_of(_M.place, key_list("hosts")), _M.bound_for.is_not(None), _M.bound_for != _M.host
    ),
)
_MEMBERS = (
    among(select(_M.place, _M.group_name, _M.update_domain, func.count()), _M.group_name)
    .where(one_of(_M.place, key_list("hosts")))
    .group_by(_M.place, _M.group_name, _M.update_domain)
)

_CARRIED = select(_M.host, func.count()).where(one_of(_M.host, key_list("hosts"))).group_by(_M.host)

_RESOURCE = STORED.reader(HostResource)


class RoomReads(Reader):
    """The room there is for machines that move."""

    def for_machines(
        self,
        machines: Collection[Machine],
        groups: Iterable[Group],
        budgets: Mapping[GroupName, Budget],
        *,
        sources: Collection[Host],
        homes: Collection[HostName] = (),
        at_most: int | None = None,
    ) -> dict[HostName, Room]:
        """Look at the emptiest sound hosts, at homes, and at those that are in waves with the sources.

        All these machines may move, each to another host than its source, so many of them at a look; None:
        all. Where too few of the hosts can take more of a group, others that can are looked at too.
        """
        hosts = len(sources)
        most = (len(machines) if at_most is None else at_most) + hosts + TO_CHOOSE_FROM
        groups = tuple(groups)
        # A machine that stands alone is kept apart from no other.
        listed = [group.name for group in groups if group.kind is not GroupKind.STANDALONE]
        found = self._rooms(_EMPTIEST, {"most": most}, listed)
        if len(found) < most:
            return self._with_resources(found, machines)  # there are no others
        if any(room.unreachable_since is not None for room in found.values()):
            found |= self._rooms(_EMPTIEST_REACHED, {"most": most}, listed)
        found |= self._named((name for name in sorted(homes) if name not in found), listed)
        for rack in sorted({host.labels[RACK] for host in sources if RACK in host.labels}):
            found |= self._rooms(_IN_RACK, {"most": most, "rack": rack}, listed)
        several = {group.name for group in groups if group.update_domains > 1}
        domains = {(each.group, each.update_domain) for each in machines if each.group in several}
        for some in chunks(sorted(domains)):
            keys = sorted({group for group, _ in some})
            places = [row[0] for row in self._all(_PLACES, {"most": most, "domains": some, "keys": keys})]
            found |= self._named((name for name in places if name not in found), listed)
        limited = {group: budget.at_best for group, budget in budgets.items() if budget.at_best > 0}
        together = Counter((each.group, each.update_domain) for each in machines if each.group in limited)
        for (group, domain), movers in together.items():
            spare = limited[group]
            uncrowded = sum(room.members.get((group, domain), 0) < spare for room in found.values())
            if uncrowded < movers + hosts:
                wanted = {"most": most, "group": group, "domain": domain, "spare": spare}
                found |= self._rooms(_UNCROWDED, wanted, listed)
        return self._with_resources(found, machines)

    def loads(self, hosts: Collection[Host]) -> dict[HostName, HostLoad]:
        """Count what each of these hosts carries, and what is free there."""
        found = {host.name: HostLoad() for host in hosts}
        for names in chunks(found):
            counted = self._all(_CARRIED, {"hosts": names})
            found |= {HostName(name): HostLoad(carried=carried) for name, carried in counted}
        free = {host.name: _capacities(host.resources) for host in hosts if host.resources}
        self._take(free)
        return found | {name: replace(found[name], free=left) for name, left in free.items()}

    def _with_resources(
        self, rooms: dict[HostName, Room], machines: Iterable[Machine]
    ) -> dict[HostName, Room]:
        """Take from what hosts have what machines take there, if any that may move takes something."""
        declared = [name for name, room in rooms.items() if room.free]
        if not declared or not any(machine.resources for machine in machines):
            return rooms
        free = {name: dict(rooms[name].free) for name in declared}
        self._take(free)
        return rooms | {name: replace(rooms[name], free=left) for name, left in free.items()}

    def _take(self, free: Mapping[HostName, dict[str, float]]) -> None:
        """Subtract what the machines of each host take there."""
        for names in chunks(free):
            for host, resources in self._all(_TAKEN, {"hosts": names}):
                left = free[host]
                for resource in left.keys() & resources.keys():
                    left[resource] -= resources[resource]

    def _named(self, names: Iterable[HostName], groups: Collection[GroupName]) -> dict[HostName, Room]:
        found: dict[HostName, Room] = {}
        for some in chunks(names):
            found |= self._rooms(_NAMED, {"keys": some}, groups)
        return found

    def _rooms(
        self, query: Select[Any], wanted: Mapping[str, Any], groups: Collection[GroupName]
    ) -> dict[HostName, Room]:
        """Read hosts, and count there what belongs to these groups."""
        hosts = self._all(query, wanted)
        members: dict[HostName, dict[tuple[GroupName, int], int]] = {}
        for names in chunks(name for name, *_ in hosts):
            for some in chunks(groups):
                rows = self._all(_MEMBERS, {"hosts": names, "keys": some})
                for host, group, domain, count in rows:
                    members.setdefault(host, {})[group, domain] = count
        return {
            HostName(name): Room(
                carried=carried,
                members=members.get(name, {}),
                busy=bool(busy),
                driver=driver,
                labels=labels,
                free={key: _RESOURCE(each).capacity for key, each in resources.items()},
                unreachable_since=moment_or_none(away),
            )
            for name, carried, busy, driver, labels, resources, away in hosts
        }


def _capacities(resources: Mapping[str, HostResource]) -> dict[str, float]:
    return {name: resource.capacity for name, resource in resources.items()}


GROUP_SIZES = among(select(_M.group_name, func.count()), _M.group_name).group_by(_M.group_name)
_ANNOUNCED = among(select(_E.group_name, _E.resources), tables.GROUP_OF_LISTED_EVENT).where(
    tables.COUNTED_TYPE, _E.armed_at.is_not(None)
)
_DOWN = among(select(_M.group_name, _M.id, _M.name), _M.group_name).where(
    _M.state != MachineState.RUNNING.value
)


class BudgetReads(Reader):
    """The budgets of groups."""

    def load(self, groups: Iterable[Group]) -> dict[GroupName, Budget]:
        """Count for the groups that ask for healthy machines: only they cost a query."""
        needs = {group.name: group.policy.budget for group in groups if group.policy.budget > 0}
        if not needs:
            return {}
        sizes = {row[0]: row[1] for row in self._among(GROUP_SIZES, needs)}
        down: dict[GroupName, dict[MachineId, MachineName]] = defaultdict(dict)
        for group, id_, name in self._among(_DOWN, needs):
            down[group][id_] = name
        announced: dict[GroupName, dict[MachineId, MachineName]] = defaultdict(dict)
        for group, resources in self._among(_ANNOUNCED, needs):
            announced[group].update(
                (named.machine, named.name) for named in STORED.read(tuple[Resource, ...], resources)
            )
        return {
            group: Budget(
                needs=need, members=sizes.get(group, 0), down=down[group], announced=announced[group]
            )
            for group, need in needs.items()
        }


_ON_HOSTS = among(
    select(_M.id, _M.name, _M.host, _M.project, _M.mobility, _M.labels, _M.resources), _M.host
).where(_M.state != MachineState.STOPPED.value)
_OPEN_ORDERS = select(_O.machine, _O.id, _O.action, _O.state).where(
    tables.OPEN_ORDER, _O.machine.is_not(None)
)
_SOUND = select(_H.name, _H.labels, _H.resources, _H.unreachable_since).where(
    _H.state == HostState.OK.value, _H.bare_metal.is_(False)
)
_TAKEN_BY = select(_M.host, _M.bound_for, _M.resources).where(_M.host.is_not(None))


class EmptyingReads(Reader):
    """What decides whether hosts can be emptied."""

    def around(self, hosts: Sequence[HostName]) -> EvacuationInput:
        """Load the machines on these hosts, and the room on all sound ones."""
        ordered = {machine: _in_words(*order) for machine, *order in self._all(_OPEN_ORDERS)}
        machines = [_leaver(row, ordered) for row in self._among(_ON_HOSTS, hosts)]
        return EvacuationInput(machines=machines, rooms=self._rooms(machines))

    def _rooms(self, machines: Iterable[LeavingMachine]) -> dict[HostName, Room]:
        found = self._all(_SOUND)
        free = {
            name: {key: _RESOURCE(each).capacity for key, each in resources.items()}
            for name, _, resources, _ in found
        }
        # What is taken there need only be known if one of them takes something.
        if any(free.values()) and any(machine.resources for machine in machines):
            for host, bound_for, resources in self._all(_TAKEN_BY):
                for place in {host, bound_for or host} & free.keys():
                    left = free[place]
                    for name in left.keys() & resources.keys():
                        left[name] -= resources[name]
        return {
            name: Room(
                labels=labels,
                free=free[name],
                unreachable_since=moment_or_none(away),
            )
            for name, labels, _, away in found
        }


def _leaver(row: Row, ordered: dict[MachineId, str]) -> LeavingMachine:
    id_, name, host, project, mobility, labels, resources = row
    return LeavingMachine(
        name=name,
        host=host,
        project=project,
        mobility=Mobility(mobility),
        labels=labels,
        resources=resources,
        ordered=ordered.get(id_, ""),
    )


def _in_words(id_: str, action: str, state: str) -> str:
    return f"has order {id_} ({action}), which is {state}"
