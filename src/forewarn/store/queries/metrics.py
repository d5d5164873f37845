"""Counting what there is: by state, of update domains, and for metrics."""

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
from forewarn.store.reads.reader import EVENT_PROJECT, Reader
from forewarn.store.rows.mapping import moment_or_none

_M, _O, _E, _H = tables.machines.c, tables.orders.c, tables.events.c, tables.hosts.c
_G = tables.groups.c
_OPEN = (OrderState.QUEUED, OrderState.ANNOUNCED, OrderState.STARTED, OrderState.FAILED)
_ROLLOUT_STATE = case((tables.rollouts.c.aborting, "aborting"), else_=tables.rollouts.c.state)

HOLD_REACHES = ("fleet", "project", "host")

ROLLOUT_STATES = ("running", "paused", "aborting")


class StateCounts(Reader):
    """How many there are in each state."""

    def _machine_states(self) -> dict[str, int]:
        return self._count_by(_M.state, MachineState, *self._only(_M.project))

    def _host_states(self) -> dict[str, int]:
        return self._count_by(_H.state, HostState, *self._only_my_hosts())

    def _order_states(self) -> dict[str, int]:
        return self._count_by(_O.state, _OPEN, tables.OPEN_ORDER, *self._only(_O.project))

    def _event_statuses(self) -> dict[str, int]:
        return self._count_by(_E.status, EventStatus, tables.LISTED_EVENT, *self._only(EVENT_PROJECT))

    def _rollout_states(self) -> dict[str, int]:
        return self._count_by(_ROLLOUT_STATE, ROLLOUT_STATES, tables.OPEN_ROLLOUT)

    def _count_by(
        self, column: ColumnElement[Any], states: Iterable[str], *only: ColumnElement[bool]
    ) -> dict[str, int]:
        counted = self._all(select(column, func.count()).where(*only).group_by(column))
        # A state that nothing is in any more must show as 0, or a metric would stay where it was.
        return {str(state): 0 for state in states} | {row[0]: row[1] for row in counted}


# The names of the groups of standalone machines; no other name has a slash, after which comes 0.
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

# Machines by their states, for each update domain of something.
Domains = Mapping[int, Mapping[str, int]]
# A group, or all standalone machines of a project.
Owner = GroupName | tuple[ProjectName]
# For update domains of which events name machines: which, by the events' status.
Named = Mapping[tuple[Owner, int], Mapping[str, set[MachineId]]]

_NONE_NAMED: Mapping[str, set[MachineId]] = {}
_SCHEDULED, _STARTED = EventStatus.SCHEDULED.value, EventStatus.STARTED.value


class SummaryReads(StateCounts):
    """The fleet of a scope, counted."""

    def summary(self) -> FleetSummary:
        """Count what there is; its cost grows with the machines, but none of them is read."""
        whole = self._project is None
        states = self._machine_states()
        return FleetSummary(
            machines=sum(states.values()),
            states=states,
            hosts=self._host_states(),
            events=self._event_statuses(),
            orders=self._order_states(),
            rollouts=self._rollout_states() if whole else None,
            holds=self._count(select(tables.holds)) if whole else None,
            groups=(*self._summed_groups(named := self._named()), *self._summed_standalone(named)),
        )

    def _summed_groups(self, named: Named) -> Iterable[GroupSummary]:
        counted: dict[GroupName, dict[int, dict[str, int]]] = defaultdict(dict)
        for group, domain, state, count in self._all(self._mine(_IN_GROUPS, _M.project)):
            counted[group].setdefault(domain, {})[state] = count
        for name, project, kind, domains in self._all(self._mine(_GROUPS, _G.project).order_by(_G.name)):
            # Those that no machine is in have their place too.
            empty: dict[int, dict[str, int]] = {domain: {} for domain in range(domains)}
            yield _group(empty | counted.get(name, {}), name, project, GroupKind(kind), name, named)

    def _summed_standalone(self, named: Named) -> Iterable[GroupSummary]:
        counted: dict[ProjectName, dict[int, dict[str, int]]] = defaultdict(dict)
        for project, domain, state, count in self._all(self._mine(_STANDALONE, _M.project)):
            counted[project].setdefault(domain, {})[state] = count
        for project, found in sorted(counted.items()):
            yield _group(found, None, project, GroupKind.STANDALONE, (project,), named)

    def _named(self) -> Named:
        found: dict[tuple[Owner, int], dict[str, set[MachineId]]] = defaultdict(dict)
        for group, project, domain, status, resources in self._all(self._mine(_EVENTS, _G.project)):
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
    summed = tuple(
        _domain(domain, domains[domain], named.get((owner, domain), _NONE_NAMED))
        for domain in sorted(domains)
    )
    machines = sum(each.machines for each in summed)
    return GroupSummary(name=name, project=project, kind=kind, machines=machines, update_domains=summed)


def _domain(domain: int, states: Mapping[str, int], named: Mapping[str, set[MachineId]]) -> DomainSummary:
    return DomainSummary(
        update_domain=domain,
        machines=sum(states.values()),
        states=states,
        scheduled=len(named.get(_SCHEDULED, ())),
        started=len(named.get(_STARTED, ())),
    )


_TALLIED = (Kind.NOTICE_LATE, Kind.NOTICE_NEVER, Kind.PROMISE_BROKEN, Kind.UNANNOUNCED_IMPACT)
# What was never counted is shown as 0, or a metric would begin in the middle.
_COUNTED = {kind.value: 0 for kind in _TALLIED}
_HOLD_REACH = case(
    (tables.holds.c.host.is_not(None), "host"),
    (tables.holds.c.project.is_not(None), "project"),
    else_="fleet",
)


class MetricQueries(StateCounts):
    """How much there is, and in which state."""

    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Count machines, hosts, open orders and listed events by state."""
        return {
            "machines": self._machine_states(),
            "hosts": self._host_states(),
            "orders": self._order_states(),
            "events": self._event_statuses(),
            "rollouts": self._rollout_states(),
        }

    def holds_by_reach(self) -> Mapping[str, int]:
        """Count holds by what they reach."""
        return self._count_by(_HOLD_REACH, HOLD_REACHES)

    def oldest_awaited(self) -> datetime | None:
        """Return the first NotBefore of all events that have not started."""
        awaited = tables.COUNTED_EVENT, _E.status == EventStatus.SCHEDULED.value
        # In the order of its index, of which this reads one row.
        first = select(_E.not_before).where(*awaited).order_by(_E.not_before).limit(1)
        return moment_or_none(self._connection.scalar(first))

    def stuck_orders(self) -> int:
        """Count open orders that wait for a person."""
        # No text of a reason contains this: its own quotes would be escaped.
        stuck = cast(_O.waiting, Text).contains('"stuck": true', autoescape=True)
        return int(self._all(select(func.count()).where(tables.OPEN_ORDER, stuck))[0][0])

    def hosts_by_driver(self) -> Mapping[str, int]:
        """Count hosts by who does the work on them."""
        own = select(_H.driver, func.count()).where(tables.OWN_DRIVER).group_by(_H.driver)
        declared: dict[str, int] = dict(map(tuple, self._all(own)))
        counted: dict[str, int] = {self._meta.defaults.driver_of(None): 0} | declared
        hosts = self._all(select(func.count()).select_from(tables.hosts))[0][0]
        counted[self._meta.defaults.driver_of(None)] += hosts - sum(declared.values())
        return counted

    def tallies(self) -> Mapping[str, int]:
        """Return how many machines the records of a kind have named, for the kinds that are counted."""
        query = select(tables.tallies.c.kind, tables.tallies.c.machines)
        return _COUNTED | {row[0]: row[1] for row in self._all(query)}
