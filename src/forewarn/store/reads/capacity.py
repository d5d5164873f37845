"""Capacity: free room on hosts, budgets of groups, and whether hosts can be emptied."""

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
from forewarn.core.rollouts.evacuation import EvacuationInput, LeavingMachine
from forewarn.store import tables
from forewarn.store.key_lists import chunks, for_keys, key_list, one_of
from forewarn.store.reads.open_transaction import OpenTransaction
from forewarn.store.rows.mapping import Row, moment_or_none
from forewarn.store.rows.stored import STORED

_H, _M, _E, _O = tables.hosts.c, tables.machines.c, tables.events.c, tables.orders.c
# How many hosts to offer beyond one for each machine that moves. Offering all hosts would find a host without
# the machine's group more often, but the cost would grow with the fleet.
EXTRA_HOSTS = 32

# Not EXISTS: for that, PostgreSQL may read the hosts of all orders first.
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
# Uses the same index; runs only if some of the emptiest hosts are unreachable.
_EMPTIEST_REACHABLE = _EMPTIEST.where(_H.unreachable_since.is_(None))
_COUNT_OF_DOMAIN = (
    select(func.count())
    .where(
        _M.place == _H.name,
        _M.group_name == bindparam("group"),
        _M.update_domain == bindparam("domain"),
    )
    .scalar_subquery()
)
# Uses the same index. It skips hosts that carry too many machines of the group. There are at most as many
# such hosts as the group has machines, so the cost does not grow with the fleet.
_UNCROWDED = _EMPTIEST_REACHABLE.where(bindparam("spare", type_=Integer) > _COUNT_OF_DOMAIN)
_IN_RACK = _EMPTIEST_REACHABLE.where(_H.rack == bindparam("rack"))
# `coalesce` keeps SQLite from using the index of states, with which it would read all sound hosts.
_NAMED = for_keys(_ROOMS, _H.name).where(func.coalesce(_H.state, "") == HostState.OK.value)
# Hosts that carry machines of an update domain: at most as many as the group has machines, limited further
# here. SQLite cannot look pairs up in an index, so the query also has the groups. `coalesce` keeps SQLite
# from using the index of places, with which it would read all machines.
_PLACE = func.coalesce(_M.place, "")
_PLACES = (
    for_keys(select(_PLACE), _M.group_name)
    .where(tuple_(_M.group_name, _M.update_domain).in_(bindparam("domains", expanding=True)), _PLACE != "")
    .group_by(_PLACE)
    .order_by(_PLACE)
    .limit(bindparam("most", type_=Integer))
)
# Machines that use resources of a host: those on it, and those that are moving to it.
_RESOURCES_USED = union_all(
    select(_M.host, _M.resources).where(one_of(_M.host, key_list("hosts"))),
    select(_M.bound_for, _M.resources).where(
        one_of(_M.place, key_list("hosts")), _M.bound_for.is_not(None), _M.bound_for != _M.host
    ),
)
_MEMBERS = (
    for_keys(select(_M.place, _M.group_name, _M.update_domain, func.count()), _M.group_name)
    .where(one_of(_M.place, key_list("hosts")))
    .group_by(_M.place, _M.group_name, _M.update_domain)
)

_CARRIED = for_keys(select(_M.host, func.count()), _M.host).group_by(_M.host)

_RESOURCE = STORED.reader(HostResource)


def load_rooms(  # noqa: PLR0913 - the input of one decision
    tx: OpenTransaction,
    machines: Collection[Machine],
    groups: Iterable[Group],
    budgets: Mapping[GroupName, Budget],
    *,
    sources: Collection[Host],
    homes: Collection[HostName] = (),
    at_most: int | None = None,
) -> dict[HostName, Room]:
    """Load the room on hosts that these machines may move to.

    The hosts are the emptiest sound ones, the homes, and hosts of the sources' racks. If too few of them can
    take more machines of a group, other hosts that can are added. At most `at_most` machines move at a time
    (None: all), each to another host than its source.
    """
    hosts = len(sources)
    most = (len(machines) if at_most is None else at_most) + hosts + EXTRA_HOSTS
    groups = tuple(groups)
    # The rules keep standalone machines apart from no other machine.
    listed = [group.name for group in groups if group.kind is not GroupKind.STANDALONE]
    found = _rooms(tx, _EMPTIEST, {"most": most}, listed)
    if len(found) < most:
        return _with_resources(tx, found, machines)  # these are all sound hosts
    if any(room.unreachable_since is not None for room in found.values()):
        found |= _rooms(tx, _EMPTIEST_REACHABLE, {"most": most}, listed)
    found |= _named(tx, (name for name in sorted(homes) if name not in found), listed)
    for rack in sorted({host.labels[RACK] for host in sources if RACK in host.labels}):
        found |= _rooms(tx, _IN_RACK, {"most": most, "rack": rack}, listed)
    several = {group.name for group in groups if group.update_domains > 1}
    domains = {(each.group, each.update_domain) for each in machines if each.group in several}
    for some in chunks(sorted(domains)):
        keys = sorted({group for group, _ in some})
        places = [row[0] for row in tx.rows(_PLACES, {"most": most, "domains": some, "keys": keys})]
        found |= _named(tx, (name for name in places if name not in found), listed)
    limited = {group: budget.at_best for group, budget in budgets.items() if budget.at_best > 0}
    together = Counter((each.group, each.update_domain) for each in machines if each.group in limited)
    for (group, domain), movers in together.items():
        spare = limited[group]
        uncrowded = sum(room.members.get((group, domain), 0) < spare for room in found.values())
        if uncrowded < movers + hosts:
            wanted = {"most": most, "group": group, "domain": domain, "spare": spare}
            found |= _rooms(tx, _UNCROWDED, wanted, listed)
    return _with_resources(tx, found, machines)


def host_loads(tx: OpenTransaction, hosts: Collection[Host]) -> dict[HostName, HostLoad]:
    """Count the machines on each of these hosts, and the free resources."""
    found = {host.name: HostLoad() for host in hosts}
    found |= {HostName(name): HostLoad(carried=carried) for name, carried in tx.rows_for(_CARRIED, found)}
    free = {
        host.name: {name: resource.capacity for name, resource in host.resources.items()}
        for host in hosts
        if host.resources
    }
    _subtract_usage(tx, free)
    return found | {name: replace(found[name], free=left) for name, left in free.items()}


def _with_resources(
    tx: OpenTransaction, rooms: dict[HostName, Room], machines: Iterable[Machine]
) -> dict[HostName, Room]:
    """Subtract used resources from the capacity of hosts, if a machine that may move needs any."""
    declared = [name for name, room in rooms.items() if room.free]
    if not declared or not any(machine.resources for machine in machines):
        return rooms
    free = {name: dict(rooms[name].free) for name in declared}
    _subtract_usage(tx, free)
    return rooms | {name: replace(rooms[name], free=left) for name, left in free.items()}


def _subtract_usage(tx: OpenTransaction, free: Mapping[HostName, dict[str, float]]) -> None:
    for names in chunks(free):
        for host, resources in tx.rows(_RESOURCES_USED, {"hosts": names}):
            _subtract(resources, free[host])


def _subtract(used: Mapping[str, float], left: dict[str, float]) -> None:
    for name in left.keys() & used.keys():
        left[name] -= used[name]


def _named(
    tx: OpenTransaction, names: Iterable[HostName], groups: Collection[GroupName]
) -> dict[HostName, Room]:
    found: dict[HostName, Room] = {}
    for some in chunks(names):
        found |= _rooms(tx, _NAMED, {"keys": some}, groups)
    return found


def _rooms(
    tx: OpenTransaction, query: Select[Any], wanted: Mapping[str, Any], groups: Collection[GroupName]
) -> dict[HostName, Room]:
    """Read hosts, and count their machines of these groups."""
    hosts = tx.rows(query, wanted)
    members: dict[HostName, dict[tuple[GroupName, int], int]] = {}
    for names in chunks(name for name, *_ in hosts):
        for some in chunks(groups):
            for host, group, domain, count in tx.rows(_MEMBERS, {"hosts": names, "keys": some}):
                members.setdefault(host, {})[group, domain] = count
    return {
        HostName(name): Room(
            carried=carried,
            members=members.get(name, {}),
            busy=bool(busy),
            driver=driver,
            labels=labels,
            free=_capacities(resources),
            unreachable_since=moment_or_none(unreachable_since),
        )
        for name, carried, busy, driver, labels, resources, unreachable_since in hosts
    }


def _capacities(resources: Mapping[str, Any]) -> dict[str, float]:
    return {name: _RESOURCE(resource).capacity for name, resource in resources.items()}


GROUP_SIZES = for_keys(select(_M.group_name, func.count()), _M.group_name).group_by(_M.group_name)
_ANNOUNCED = for_keys(select(_E.group_name, _E.resources), tables.GROUP_OF_LISTED_EVENT).where(
    tables.COUNTED_TYPE, _E.armed_at.is_not(None)
)
_DOWN = for_keys(select(_M.group_name, _M.id, _M.name), _M.group_name).where(
    _M.state != MachineState.RUNNING.value
)


def load_budgets(tx: OpenTransaction, groups: Iterable[Group]) -> dict[GroupName, Budget]:
    """Load the budgets of the groups whose policy has one; without any, no query runs."""
    needs = {group.name: group.policy.budget for group in groups if group.policy.budget > 0}
    if not needs:
        return {}
    sizes = {row[0]: row[1] for row in tx.rows_for(GROUP_SIZES, needs)}
    down: dict[GroupName, dict[MachineId, MachineName]] = defaultdict(dict)
    for group, id_, name in tx.rows_for(_DOWN, needs):
        down[group][id_] = name
    announced: dict[GroupName, dict[MachineId, MachineName]] = defaultdict(dict)
    for group, resources in tx.rows_for(_ANNOUNCED, needs):
        announced[group].update(
            (named.machine, named.name) for named in STORED.read(tuple[Resource, ...], resources)
        )
    return {
        group: Budget(needs=need, members=sizes.get(group, 0), down=down[group], announced=announced[group])
        for group, need in needs.items()
    }


_ON_HOSTS = for_keys(
    select(_M.id, _M.name, _M.host, _M.project, _M.mobility, _M.labels, _M.resources), _M.host
).where(_M.state != MachineState.STOPPED.value)
_OPEN_ORDERS = select(_O.machine, _O.id, _O.action, _O.state).where(
    tables.OPEN_ORDER, _O.machine.is_not(None)
)
_SOUND = select(_H.name, _H.labels, _H.resources, _H.unreachable_since).where(
    _H.state == HostState.OK.value, _H.bare_metal.is_(False)
)
_RESOURCES_BY_HOST = select(_M.host, _M.bound_for, _M.resources).where(_M.host.is_not(None))


def emptying_input(tx: OpenTransaction, hosts: Sequence[HostName]) -> EvacuationInput:
    """Load the machines on these hosts, and the room on all sound hosts."""
    ordered = {
        machine: f"has order {id_} ({action}), which is {state}"
        for machine, id_, action, state in tx.rows(_OPEN_ORDERS)
    }
    machines = [_leaver(row, ordered) for row in tx.rows_for(_ON_HOSTS, hosts)]
    found = tx.rows(_SOUND)
    free = {name: _capacities(resources) for name, _, resources, _ in found}
    # Used resources matter only if a machine that leaves needs some.
    if any(free.values()) and any(machine.resources for machine in machines):
        for host, bound_for, resources in tx.rows(_RESOURCES_BY_HOST):
            for place in {host, bound_for or host} & free.keys():
                _subtract(resources, free[place])
    rooms = {
        name: Room(labels=labels, free=free[name], unreachable_since=moment_or_none(unreachable_since))
        for name, labels, _, unreachable_since in found
    }
    return EvacuationInput(machines=machines, rooms=rooms)


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
