"""Counting the fleet: what the database can count it does, and no machine is read."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from sqlalchemy import and_, func, not_, select

from forewarn.core.model.fleet_counts import DomainSummary, FleetSummary, GroupSummary
from forewarn.core.words import STANDALONE, EventStatus, GroupKind, GroupName, MachineId, ProjectName
from forewarn.store import tables
from forewarn.store.reads.state_counts import StateCounts

_M, _G, _E = tables.machines.c, tables.groups.c, tables.events.c
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
