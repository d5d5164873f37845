"""Counts: by state, by update domain, and for metrics."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Text, and_, case, cast, func, not_, select

from forewarn.core.basic_types import (
    STANDALONE,
    EventStatus,
    GroupKind,
    GroupName,
    HostState,
    Kind,
    MachineId,
    MachineState,
    OrderState,
    ProjectName,
)
from forewarn.core.model.fleet_counts import DomainSummary, FleetSummary, GroupSummary
from forewarn.store import tables
from forewarn.store.reads.open_transaction import OpenTransaction, Queries
from forewarn.store.reads.statements import EVENT_PROJECT
from forewarn.store.rows.mapping import moment_or_none

_M, _O, _E, _H = tables.machines.c, tables.orders.c, tables.events.c, tables.hosts.c
_G = tables.groups.c
_OPEN = (OrderState.QUEUED, OrderState.ANNOUNCED, OrderState.STARTED, OrderState.FAILED)
_ROLLOUT_STATE = case((tables.rollouts.c.aborting, "aborting"), else_=tables.rollouts.c.state)

HOLD_REACHES = ("fleet", "project", "host")

ROLLOUT_STATES = ("running", "paused", "aborting")


def _count_states(tx: OpenTransaction) -> dict[str, dict[str, int]]:
    """Count machines, hosts, open orders, listed events and open rollouts by state.

    A project has no rollouts.
    """
    counts = {
        "machines": _count_by(tx, _M.state, MachineState, *tx.scope_conditions(_M.project)),
        "hosts": _count_by(tx, _H.state, HostState, *tx.host_conditions()),
        "orders": _count_by(tx, _O.state, _OPEN, tables.OPEN_ORDER, *tx.scope_conditions(_O.project)),
        "events": _count_by(
            tx, _E.status, EventStatus, tables.LISTED_EVENT, *tx.scope_conditions(EVENT_PROJECT)
        ),
    }
    if tx.project is None:
        counts["rollouts"] = _count_by(tx, _ROLLOUT_STATE, ROLLOUT_STATES, tables.OPEN_ROLLOUT)
    return counts


def _count_by(
    tx: OpenTransaction, column: ColumnElement[Any], states: Iterable[str], *where: ColumnElement[bool]
) -> dict[str, int]:
    counted = tx.rows(select(column, func.count()).where(*where).group_by(column))
    # Unused states are 0: otherwise a metric would keep its last value.
    return {str(state): 0 for state in states} | {row[0]: row[1] for row in counted}


# The groups of standalone machines. No other name has a slash, and "0" follows "/".
_ALONE = and_(_M.group_name >= STANDALONE, _M.group_name < STANDALONE.replace("/", "0"))
_DOMAINS = (_M.group_name, _M.update_domain, _M.state)
_ALONE_DOMAINS = (_M.project, _M.update_domain, _M.state)
_IN_GROUPS = select(*_DOMAINS, func.count()).where(not_(_ALONE)).group_by(*_DOMAINS)
_STANDALONE = select(*_ALONE_DOMAINS, func.count()).where(_ALONE).group_by(*_ALONE_DOMAINS)
_GROUPS = select(_G.name, _G.project, _G.kind, _G.update_domains).where(tables.LISTED_GROUP)
_EVENTS = (
    select(_E.group_name, _G.project, _E.domain, _E.status, _E.resources)
    .join(tables.groups, _G.name == _E.group_name)
    .where(tables.LISTED_EVENT)
)

# By update domain: how many machines are in each state.
Domains = Mapping[int, Mapping[str, int]]
# A group, or all standalone machines of a project.
Owner = GroupName | tuple[ProjectName]
# The machines that events name, by update domain and by the status of the event.
Named = Mapping[tuple[Owner, int], Mapping[str, set[MachineId]]]

_NONE_NAMED: Mapping[str, set[MachineId]] = {}


def fleet_summary(tx: OpenTransaction) -> FleetSummary:
    """Count the fleet in the scope of a transaction."""
    counts, named = _count_states(tx), _named(tx)
    return FleetSummary(
        machines=sum(counts["machines"].values()),
        states=counts["machines"],
        hosts=counts["hosts"],
        events=counts["events"],
        orders=counts["orders"],
        rollouts=counts.get("rollouts"),
        holds=tx.count(select(tables.holds)) if tx.project is None else None,
        groups=(*_summed_groups(tx, named), *_summed_standalone(tx, named)),
    )


def _summed_groups(tx: OpenTransaction, named: Named) -> Iterable[GroupSummary]:
    counted: dict[GroupName, dict[int, dict[str, int]]] = defaultdict(dict)
    for group, domain, state, count in tx.rows(tx.in_scope(_IN_GROUPS, _M.project)):
        counted[group].setdefault(domain, {})[state] = count
    for name, project, kind, domains in tx.rows(tx.in_scope(_GROUPS, _G.project).order_by(_G.name)):
        # Empty update domains are listed too.
        empty: dict[int, dict[str, int]] = {domain: {} for domain in range(domains)}
        yield _group(empty | counted.get(name, {}), name, project, GroupKind(kind), name, named)


def _summed_standalone(tx: OpenTransaction, named: Named) -> Iterable[GroupSummary]:
    counted: dict[ProjectName, dict[int, dict[str, int]]] = defaultdict(dict)
    for project, domain, state, count in tx.rows(tx.in_scope(_STANDALONE, _M.project)):
        counted[project].setdefault(domain, {})[state] = count
    for project, found in sorted(counted.items()):
        yield _group(found, None, project, GroupKind.STANDALONE, (project,), named)


def _named(tx: OpenTransaction) -> Named:
    found: dict[tuple[Owner, int], dict[str, set[MachineId]]] = defaultdict(dict)
    for group, project, domain, status, resources in tx.rows(tx.in_scope(_EVENTS, _G.project)):
        owner = (project,) if group.startswith(STANDALONE) else group
        named = found[owner, domain].setdefault(status, set())
        named.update(each["machine"] for each in resources)
    return found


def _group(
    domains: Domains,
    name: GroupName | None,
    project: ProjectName,
    kind: GroupKind,
    owner: Owner,
    named: Named,
) -> GroupSummary:
    summed = []
    for domain, states in sorted(domains.items()):
        in_events = named.get((owner, domain), _NONE_NAMED)
        summed.append(
            DomainSummary(
                update_domain=domain,
                machines=sum(states.values()),
                states=states,
                scheduled=len(in_events.get(EventStatus.SCHEDULED.value, ())),
                started=len(in_events.get(EventStatus.STARTED.value, ())),
            )
        )
    machines = sum(each.machines for each in summed)
    return GroupSummary(
        name=name, project=project, kind=kind, machines=machines, update_domains=tuple(summed)
    )


_TALLIED = (Kind.NOTICE_LATE, Kind.NOTICE_NEVER, Kind.PROMISE_BROKEN, Kind.UNANNOUNCED_IMPACT)
# A kind without records is 0: otherwise its metric would appear only later.
_COUNTED = {kind.value: 0 for kind in _TALLIED}
_HOLD_REACH = case(
    (tables.holds.c.host.is_not(None), "host"),
    (tables.holds.c.project.is_not(None), "project"),
    else_="fleet",
)


class MetricQueries(Queries):
    """Queries for metrics."""

    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Count machines, hosts, open orders, listed events and open rollouts by state."""
        return _count_states(self._tx)

    def holds_by_reach(self) -> Mapping[str, int]:
        """Count holds by their scope."""
        return _count_by(self._tx, _HOLD_REACH, HOLD_REACHES)

    def oldest_awaited(self) -> datetime | None:
        """Return the first NotBefore of all events that have not started."""
        awaited = tables.COUNTED_EVENT, _E.status == EventStatus.SCHEDULED.value
        # In the order of an index, so the database reads one row.
        first = select(_E.not_before).where(*awaited).order_by(_E.not_before).limit(1)
        return moment_or_none(self._tx.connection.scalar(first))

    def stuck_orders(self) -> int:
        """Count open orders that wait for a person."""
        # The text of a reason cannot contain this: its quotes are escaped.
        stuck = cast(_O.waiting, Text).contains('"stuck": true', autoescape=True)
        return int(self._tx.rows(select(func.count()).where(tables.OPEN_ORDER, stuck))[0][0])

    def hosts_by_driver(self) -> Mapping[str, int]:
        """Count hosts by driver."""
        own = select(_H.driver, func.count()).where(tables.OWN_DRIVER).group_by(_H.driver)
        declared: dict[str, int] = dict(map(tuple, self._tx.rows(own)))
        counted: dict[str, int] = {self._tx.meta.defaults.driver_of(None): 0} | declared
        hosts = self._tx.rows(select(func.count()).select_from(tables.hosts))[0][0]
        counted[self._tx.meta.defaults.driver_of(None)] += hosts - sum(declared.values())
        return counted

    def tallies(self) -> Mapping[str, int]:
        """Return how many machines the records of each counted kind have named."""
        query = select(tables.tallies.c.kind, tables.tallies.c.machines)
        return _COUNTED | {row[0]: row[1] for row in self._tx.rows(query)}
