"""How hosts are cut into waves.

The hosts of a wave carry no two update domains of one group, and leave every group its healthy machines.
Where machines move, half of a rack, and of hosts that are alike, is left to take them.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from heapq import heapify, heappop, heappush
from itertools import zip_longest

from forewarn.core.basic_types import GroupName, HostName
from forewarn.core.model.footprint import Footprint
from forewarn.core.model.rollout import Rollout, Wave
from forewarn.core.model.slice import HostSurvey
from forewarn.core.rollouts.emptying import EvacuationLimit, evacuation_limits

# Looking for fewer waves takes several times as long; a tenth less of them would not be worth that.
_GOOD_ENOUGH = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveLimits:
    """What a wave may hold: so many hosts, and no more of each group and rack than it can do without."""

    survey: HostSurvey
    at_once: int
    spare: Mapping[GroupName, int]
    # Of hosts that are emptied.
    emptying: Mapping[HostName, tuple[EvacuationLimit, ...]] = field(default_factory=dict)

    def cut(self, hosts: Iterable[HostName]) -> tuple[Wave, ...]:
        """Cut hosts into waves: as they come, unless the hardest first make fewer of them."""
        hosts = tuple(hosts)
        waves = self.as_they_come(hosts)
        fewest = max(_fewest(map(self.survey.footprint, hosts)), -(-len(hosts) // self.at_once))
        if len(waves) > fewest * _GOOD_ENOUGH:
            waves = min(waves, self.hardest_first(hosts), key=len)
        if self.emptying:
            waves = min(self._refilled(hosts), waves, key=len)
        return tuple(Wave(hosts=tuple(wave.hosts)) for wave in waves)

    def _refilled(self, hosts: Sequence[HostName]) -> "list[WaveBuilder]":
        """Cut hosts as if all could be emptied at once, and those waves again; first the first half of each.

        So the hosts that were just emptied are not the only ones to take the other halves.
        """
        parts = [self.as_they_come(wave.hosts) for wave in replace(self, emptying={}).cut(hosts)]
        return [part for turn in zip_longest(*parts) for part in turn if part is not None]

    def hardest_first(self, hosts: Sequence[HostName]) -> "list[WaveBuilder]":
        """Put the host that fits the fewest waves into the first of them, and so on (DSATUR)."""
        conflicts = _conflicts([self.survey.footprint(host) for host in hosts])
        waves: list[WaveBuilder] = []
        kept_out: list[int] = []  # from each wave, as a set of bits
        closed = [0] * len(hosts)  # how many waves each host is kept out of
        left = (1 << len(hosts)) - 1
        queue = [(0, -conflicts[index].bit_count(), index) for index in range(len(hosts))]
        heapify(queue)
        while queue:
            known, _, index = heappop(queue)
            if not left >> index & 1 or -known != closed[index]:
                continue  # it was put in since, or is there again with more waves closed to it
            left &= ~(1 << index)
            place = self._first_open(index, hosts[index], waves, kept_out)
            if place == len(waves):
                waves.append(WaveBuilder(self))
                kept_out.append(0)
            waves[place].take(hosts[index])
            for other in _bits(conflicts[index] & ~kept_out[place] & left):
                closed[other] += 1
                heappush(queue, (-closed[other], -conflicts[other].bit_count(), other))
            kept_out[place] |= conflicts[index]
        turn = {host: index for index, host in enumerate(hosts)}
        for wave in waves:
            ordered = tuple(sorted(wave.hosts, key=turn.__getitem__))
            # One that takes more of a group than can be spared must stay the first.
            wave.hosts = list(ordered if self.pick(ordered) == ordered else wave.hosts)
        return sorted(waves, key=lambda wave: turn[wave.hosts[0]])

    def _first_open(
        self, index: int, host: HostName, waves: "Sequence[WaveBuilder]", kept_out: Sequence[int]
    ) -> int:
        """Return the first wave that a host fits; one more than there are, if it fits none."""
        for place, wave in enumerate(waves):
            if not kept_out[place] >> index & 1 and len(wave.hosts) < self.at_once and wave.fits(host):
                return place
        return len(waves)

    def as_they_come(self, hosts: Iterable[HostName]) -> "list[WaveBuilder]":
        """Put each host, in order, into the first wave that it fits."""
        waves: list[WaveBuilder] = []
        roomy: list[WaveBuilder] = []
        for host in hosts:
            wave = next((each for each in roomy if each.fits(host)), None)
            if wave is None:
                wave = WaveBuilder(self)
                waves.append(wave)
                roomy.append(wave)
            wave.take(host)
            if len(wave.hosts) >= self.at_once:
                roomy.remove(wave)
        return waves

    def pick(self, hosts: Iterable[HostName]) -> tuple[HostName, ...]:
        """Choose the hosts of one wave, in order."""
        wave = WaveBuilder(self)
        for host in hosts:
            if len(wave.hosts) >= self.at_once:
                break
            if wave.fits(host):
                wave.take(host)
        return tuple(wave.hosts)

    def why_no_more(self, taken: Iterable[HostName], others: Iterable[HostName]) -> Sequence[str]:
        """Return why a wave takes none of other hosts beside its own; "" of one that it could take."""
        wave = WaveBuilder(self)
        for host in taken:
            wave.take(host)
        return list(dict.fromkeys(wave.obstacle(host) for host in others))

    def allow(self, planned: Sequence[Wave], hosts: Iterable[HostName]) -> bool:
        """Whether planned waves are still right for these hosts: machines move."""
        if sorted(host for wave in planned for host in wave.hosts) != sorted(hosts):
            return False
        return all(self.pick(wave.hosts) == wave.hosts for wave in planned)


def cut(
    rollout: Rollout, survey: HostSurvey, hosts: Sequence[HostName], coming: WaveLimits | None = None
) -> tuple[Wave, ...]:
    """Cut hosts into waves that are yet to come: canaries first, and apart."""
    first, coming = turn_of(rollout, hosts), coming or limits(rollout, survey)
    early = frozenset(first)
    return (*coming.cut(first), *coming.cut(host for host in hosts if host not in early))


def without_evacuation_limits(rollout: Rollout, survey: HostSurvey) -> tuple[Wave, ...]:
    """Return the waves that are yet to come as they would be if all hosts could be emptied at once."""
    coming = limits(rollout, survey)
    if not coming.emptying:
        return rollout.planned
    return cut(rollout, survey, rollout.left, replace(coming, emptying={}))


def choose(
    rollout: Rollout, planned: Sequence[Wave], free: Collection[HostName], limits: WaveLimits
) -> tuple[HostName, ...]:
    """Choose the hosts of the next wave: the first one planned, or those of it that are free, and others.

    What the plan has put together comes first, so that few waves remain few where a host has to wait.
    """
    first = planned[0].hosts
    if all(host in free for host in first):
        return limits.pick(first)
    in_order = turn_of(rollout, [host for wave in planned for host in wave.hosts])
    return limits.pick(host for host in in_order if host in free)


def without(planned: Iterable[Wave], taken: Iterable[HostName]) -> tuple[Wave, ...]:
    """Return planned waves without hosts that have come before their turn."""
    gone = frozenset(taken)
    left = (tuple(host for host in wave.hosts if host not in gone) for wave in planned)
    return tuple(Wave(hosts=hosts) for hosts in left if hosts)


def turn_of(rollout: Rollout, left: Sequence[HostName]) -> Sequence[HostName]:
    """Return those of the hosts that are left whose turn it is: no others before the last canary."""
    canaries = frozenset(rollout.canaries)
    return [host for host in left if host in canaries] or left


def rest_after(rollout: Rollout, hosts: Sequence[HostName], left: Sequence[HostName]) -> timedelta:
    """Return how long nothing is announced after a wave: the gap, and longer after the last canaries."""
    canaries = frozenset(rollout.canaries)
    last = not canaries.isdisjoint(hosts) and canaries.isdisjoint(left)
    return max(rollout.gap, rollout.terms.soak) if last else rollout.gap


def limits(rollout: Rollout, survey: HostSurvey) -> WaveLimits:
    """Return the limits of waves that are yet to come, when all machines are well."""
    spare = {group: budget.at_best for group, budget in survey.budgets.items()}
    spare |= {group: min(most, spare.get(group, most)) for group, most in survey.at_most.items()}
    return _limits(rollout, survey, spare)


def limits_now(rollout: Rollout, survey: HostSurvey) -> WaveLimits:
    """Return the limits of a wave that is announced now."""
    spare = {group: budget.spare for group, budget in survey.budgets.items()}
    left = {group: most - survey.frozen(group) for group, most in survey.at_most.items()}
    spare |= {group: min(most, spare.get(group, most)) for group, most in left.items()}
    return _limits(rollout, survey, spare)


def _limits(rollout: Rollout, survey: HostSurvey, spare: Mapping[GroupName, int]) -> WaveLimits:
    return WaveLimits(
        survey=survey, at_once=rollout.hosts_at_once, spare=spare, emptying=evacuation_limits(rollout, survey)
    )


def _fewest(footprints: Iterable[Footprint]) -> int:
    """Return how many waves there are at least.

    No two domains of a group are in one wave, nor is anything of it beside a host with several.
    """
    domains: dict[GroupName, set[int]] = {}
    divided: Counter[GroupName] = Counter()
    for footprint in footprints:
        for group, counts in footprint.counts.items():
            domains.setdefault(group, set())
            if len(counts) > 1:
                divided[group] += 1
            else:
                domains[group].update(counts)
    return max((len(its) + divided[group] for group, its in domains.items()), default=0)


def _conflicts(footprints: Sequence[Footprint]) -> list[int]:
    """Return which hosts cannot be in one wave, for the domains that they carry: a set of bits for each."""
    carrying: dict[GroupName, int] = {}
    of_domain: dict[tuple[GroupName, int], int] = {}
    for index, footprint in enumerate(footprints):
        for group, counts in footprint.counts.items():
            carrying[group] = carrying.get(group, 0) | 1 << index
            if len(counts) == 1:
                (domain,) = counts
                of_domain[group, domain] = of_domain.get((group, domain), 0) | 1 << index
    return [_others(index, footprint, carrying, of_domain) for index, footprint in enumerate(footprints)]


def _others(
    index: int,
    footprint: Footprint,
    carrying: Mapping[GroupName, int],
    of_domain: Mapping[tuple[GroupName, int], int],
) -> int:
    mine, others = 1 << index, 0
    for group, counts in footprint.counts.items():
        if carrying[group] == mine:
            continue
        same = of_domain[group, next(iter(counts))] if len(counts) == 1 else mine
        others |= carrying[group] & ~same
    return others & ~mine


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


class WaveBuilder:
    """The hosts of a wave that is being put together."""

    def __init__(self, limits: WaveLimits) -> None:
        self.hosts: list[HostName] = []
        self._limits = limits
        self._domains: dict[GroupName, frozenset[int]] = {}
        self._spare = dict(limits.spare)
        self._emptied: Counter[EvacuationLimit] = Counter()

    def fits(self, host: HostName) -> bool:
        """Whether a host can join."""
        return not self.obstacle(host)

    def obstacle(self, host: HostName) -> str:
        """Return why a host cannot join; the first one can always, for nothing smaller can be done."""
        if not self.hosts:
            return ""
        footprint = self._limits.survey.footprint(host)
        for group, counts in footprint.counts.items():
            there = self._domains.get(group)
            if there is not None and (len(counts) > 1 or there != counts.keys()):
                return f"two update domains of group {group} are not disturbed together"
            if group in self._spare and footprint.together(group) > self._spare[group]:
                return f"group {group} can spare {self._limits.spare[group]} at once"
        full = (limit for limit in self._limits.emptying.get(host, ()) if self._emptied[limit] >= limit.most)
        return next((limit.why for limit in full), "")

    def take(self, host: HostName) -> None:
        """Let a host join."""
        self.hosts.append(host)
        footprint = self._limits.survey.footprint(host)
        for group, counts in footprint.counts.items():
            self._domains[group] = frozenset(counts)
            if group in self._spare:
                self._spare[group] -= footprint.together(group)
        self._emptied.update(self._limits.emptying.get(host, ()))
