"""Fit update domains to hosts, so that rollouts need few waves.

The machines of a group on one host get the same update domain.

Each host gets a colour, and a machine's update domain follows from the colour of its host. The hosts of one
colour then form a wave, whatever groups they carry. Colours are chosen so that each group is spread evenly
over the colours, and therefore over its domains.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from forewarn.core.basic_types import GroupName, HostName, MachineId, MachineState
from forewarn.core.model.footprint import Footprint
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine
from forewarn.core.model.rollout import Wave
from forewarn.core.model.slice import HostSurvey
from forewarn.core.rollouts.waves import WaveLimits

# More colours than domains make it easier to separate small groups, but each colour costs a wave. This limits
# the number of colours.
_MORE_COLOURS = 1.5
# The maximum number of passes over all hosts. Most fleets need only a few.
_PASSES = 80
# The cost of one more host in a colour, and of two domains of an unfitted group in a colour. Evenness decides
# only between otherwise equal colours. A conflict outweighs everything else.
_HOST, _CONFLICT = 0.002, 1000.0

Placed: TypeAlias = tuple[HostName, Machine]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedDomains:
    """The proposed update domains, and the number of waves before and after."""

    domains: Mapping[MachineId, int] = field(default_factory=dict)  # only of machines that change
    waves_before: int = 0
    waves_after: int = 0


def fit(
    machines: Collection[Machine], groups: Mapping[GroupName, Group], *, only: GroupName | None = None
) -> FittedDomains:
    """Propose update domains for all groups, or one, that need fewer waves, or fewer stages on hosts.

    If none are found, the proposal is empty.
    """
    placed = [(machine.host, machine) for machine in machines if machine.host is not None]
    several = {name for name, group in groups.items() if group.update_domains > 1}
    fitted = several if only is None else several & {only}
    before = _waves(placed, {})
    hosts = _carried(placed, fitted, several - fitted)
    limits = {name: groups[name].update_domains for name in fitted}
    domains = _domains(placed, _coloured(hosts, limits), limits)
    after = _waves(placed, domains)
    if after >= before:
        return FittedDomains(waves_before=before[0], waves_after=before[0])
    changed = {
        each.id: domains[each.id]
        for _, each in placed
        if domains.get(each.id, each.update_domain) != each.update_domain
    }
    return FittedDomains(domains=changed, waves_before=before[0], waves_after=after[0])


def _waves(placed: Iterable[Placed], domains: Mapping[MachineId, int]) -> tuple[int, int]:
    """Count the waves of a rollout over all hosts without a limit of hosts, and the stages of its orders."""
    counts: dict[HostName, dict[GroupName, Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
    for host, machine in placed:
        if machine.state is not MachineState.STOPPED:
            counts[host][machine.group][domains.get(machine.id, machine.update_domain)] += 1
    return len(_cut(counts)), sum(Footprint(counts=its).stages for its in counts.values())


def _cut(counts: Mapping[HostName, Mapping[GroupName, Mapping[int, int]]]) -> tuple[Wave, ...]:
    survey = HostSurvey(footprints={host: Footprint(counts=its) for host, its in counts.items()})
    return WaveLimits(survey=survey, at_once=max(len(counts), 1), spare={}).cut(sorted(counts))


# Assign colours to hosts


@dataclass(frozen=True, slots=True)
class _Carried:
    """The machines of fitted groups on a host, and the domains of other groups."""

    fitted: Counter[GroupName] = field(default_factory=Counter)
    others: dict[GroupName, set[int]] = field(default_factory=lambda: defaultdict(set))


def _carried(
    placed: Iterable[Placed], fitted: Collection[GroupName], others: Collection[GroupName]
) -> dict[HostName, _Carried]:
    hosts: dict[HostName, _Carried] = defaultdict(_Carried)
    for host, machine in placed:
        if machine.group in fitted:
            hosts[host].fitted[machine.group] += 1
        elif machine.group in others:
            hosts[host].others[machine.group].add(machine.update_domain)
    return hosts


def _coloured(hosts: Mapping[HostName, _Carried], limits: Mapping[GroupName, int]) -> Mapping[HostName, int]:
    """Assign the fewest colours, or nearly so, that give every group all its domains."""
    spread = Counter(group for carried in hosts.values() for group in carried.fitted)
    wanted = {group: min(limits[group], count) for group, count in spread.items()}
    start = _waves_of_others(hosts)
    fewest = max(*wanted.values(), *(colour + 1 for colour in start.values()), 1, 1)
    tried = []
    for colours in range(fewest, int(fewest * _MORE_COLOURS) + 1):
        tried.append(_Colouring(hosts, colours, start).improved(wanted))
        if not tried[-1][0]:
            break
    return min(tried, key=lambda each: each[0])[1]


def _waves_of_others(hosts: Mapping[HostName, _Carried]) -> dict[HostName, int]:
    """Return initial colours: the waves of hosts for the groups that are not fitted."""
    carrying = {
        host: {group: Counter(domains) for group, domains in carried.others.items()}
        for host, carried in hosts.items()
        if carried.others
    }
    return {host: number for number, wave in enumerate(_cut(carrying)) for host in wave.hosts}


class _Colouring:
    """Colours of hosts, which are improved host by host."""

    def __init__(
        self, hosts: Mapping[HostName, _Carried], colours: int, start: Mapping[HostName, int]
    ) -> None:
        self._hosts, self._colours = hosts, range(colours)
        sizes: Counter[GroupName] = Counter()
        for carried in hosts.values():
            sizes.update(carried.fitted)
        self._share = {group: 1 / size for group, size in sizes.items()}
        self._weight = dict(self._share)  # the cost of a machine of the same group in a colour
        self._members: dict[GroupName, list[int]] = {group: [0] * colours for group in sizes}
        self._others: dict[tuple[GroupName, int], Counter[frozenset[int]]] = defaultdict(Counter)
        self._load = [0] * colours
        self._colour: dict[HostName, int] = {}
        # Hosts with many machines of small groups come first: they have the least choice.
        self._order = sorted(
            hosts, key=lambda host: (-sum(self._share[group] for group in hosts[host].fitted), host)
        )
        for host, colour in start.items():
            self._put(host, colour)
        for host in self._order:
            if host not in start:
                self._put(host, self._best(host, None))

    def improved(self, wanted: Mapping[GroupName, int]) -> tuple[int, Mapping[HostName, int]]:
        """Recolour hosts until every group has enough colours; return how many have not, and the colours."""
        best = (len(self._narrow(wanted)), dict(self._colour))
        for _ in range(_PASSES):
            for host in self._order:
                present = self._colour[host]
                self._put(host, present, sign=-1)
                self._put(host, self._best(host, present))
            narrow = self._narrow(wanted)
            best = min(best, (len(narrow), dict(self._colour)), key=lambda each: each[0])
            if not narrow:
                break
            for group in narrow:  # raise the cost of machines with the same colour
                self._weight[group] += self._share[group]
        return best

    def _narrow(self, wanted: Mapping[GroupName, int]) -> list[GroupName]:
        """Return the groups with fewer colours than they could have."""
        return [group for group, count in wanted.items() if sum(map(bool, self._members[group])) < count]

    def _best(self, host: HostName, present: int | None) -> int:
        costs = [self._cost(host, colour) for colour in self._colours]
        return min(self._colours, key=lambda colour: (costs[colour], colour != present, colour))

    def _cost(self, host: HostName, colour: int) -> float:
        carried = self._hosts[host]
        beside = sum(
            self._weight[group] * self._members[group][colour] * count
            for group, count in carried.fitted.items()
        )
        conflicts = sum(
            count
            for group, domains in carried.others.items()
            for there, count in self._others[group, colour].items()
            if len(domains) > 1 or there != domains
        )
        return beside + _CONFLICT * conflicts + _HOST * self._load[colour]

    def _put(self, host: HostName, colour: int, *, sign: int = 1) -> None:
        carried = self._hosts[host]
        self._colour[host] = colour
        self._load[colour] += sign
        for group, count in carried.fitted.items():
            self._members[group][colour] += sign * count
        for group, domains in carried.others.items():
            self._others[group, colour][frozenset(domains)] += sign


# Map colours to domains


def _domains(
    placed: Iterable[Placed], colours: Mapping[HostName, int], limits: Mapping[GroupName, int]
) -> dict[MachineId, int]:
    """Return the domain of every machine of the fitted groups."""
    members: dict[GroupName, list[tuple[Machine, int]]] = defaultdict(list)
    for host, machine in placed:
        if machine.group in limits:
            members[machine.group].append((machine, colours[host]))
    return {
        machine.id: domain
        for group, its in members.items()
        for colour, domain in _domain_of_colour(its, limits[group]).items()
        for machine, other in its
        if other == colour
    }


def _domain_of_colour(members: Sequence[tuple[Machine, int]], domains: int) -> dict[int, int]:
    """Distribute a group's colours evenly over its domains, so that few machines change."""
    sizes = Counter(colour for _, colour in members)
    shares: list[list[int]] = [[] for _ in range(domains)]
    for colour, _ in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        min(shares, key=lambda share: sum(sizes[each] for each in share)).append(colour)
    present = Counter((colour, machine.update_domain) for machine, colour in members)
    stay = sorted(
        (-sum(present[colour, domain] for colour in share), index, domain)
        for index, share in enumerate(shares)
        for domain in range(domains)
    )
    named: dict[int, int] = {}
    for _, index, domain in stay:
        if index not in named and domain not in named.values():
            named[index] = domain
    return {colour: named[index] for index, share in enumerate(shares) for colour in share}
