"""Split hosts into waves.

The hosts of a wave carry no two update domains of one group, and leave every group its healthy machines. If
machines move, half of each rack and of each set of interchangeable hosts is left as their target.
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
from forewarn.core.rollouts.evacuation import EvacuationLimit, evacuation_limits

# The search for fewer waves takes several times as long, and is not worth it for one wave in ten.
_GOOD_ENOUGH = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveLimits:
    """The limits of a wave: its number of hosts, and the machines and racks that it may disturb."""

    survey: HostSurvey
    at_once: int
    spare: Mapping[GroupName, int]
    # The limits of hosts that are evacuated.
    evacuation: Mapping[HostName, tuple[EvacuationLimit, ...]] = field(default_factory=dict)

    def cut(self, hosts: Iterable[HostName]) -> tuple[Wave, ...]:
        """Split hosts into waves in the given order, or the most constrained first if that needs fewer."""
        hosts = tuple(hosts)
        waves = self.in_order(hosts)
        fewest = max(_fewest(map(self.survey.footprint, hosts)), -(-len(hosts) // self.at_once))
        if len(waves) > fewest * _GOOD_ENOUGH:
            waves = min(waves, self.most_constrained_first(hosts), key=len)
        if self.evacuation:
            waves = min(self._halved(hosts), waves, key=len)
        return tuple(Wave(hosts=tuple(wave.hosts)) for wave in waves)

    def _halved(self, hosts: Sequence[HostName]) -> "list[WaveBuilder]":
        """Split hosts without evacuation limits, then split each of these waves with them.

        All first halves come before the second halves. Otherwise the machines of a second half could only go
        to the first half, which was just evacuated.
        """
        parts = [self.in_order(wave.hosts) for wave in replace(self, evacuation={}).cut(hosts)]
        return [part for turn in zip_longest(*parts) for part in turn if part is not None]

    def most_constrained_first(self, hosts: Sequence[HostName]) -> "list[WaveBuilder]":
        """Repeatedly place the host that fits the fewest waves into the first of them (DSATUR)."""
        conflicts = _conflicts([self.survey.footprint(host) for host in hosts])
        waves: list[WaveBuilder] = []
        kept_out: list[int] = []  # the hosts that conflict with each wave, as a bit set
        closed = [0] * len(hosts)  # how many waves each host conflicts with
        left = (1 << len(hosts)) - 1
        queue = [(0, -conflicts[index].bit_count(), index) for index in range(len(hosts))]
        heapify(queue)
        while queue:
            known, _, index = heappop(queue)
            if not left >> index & 1 or -known != closed[index]:
                continue  # it was placed already, or is queued again with more conflicts
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
            # A host that disturbs more of a group than it can spare fits only as the first of a wave.
            wave.hosts = list(ordered if self.pick(ordered) == ordered else wave.hosts)
        return sorted(waves, key=lambda wave: turn[wave.hosts[0]])

    def _first_open(
        self, index: int, host: HostName, waves: "Sequence[WaveBuilder]", kept_out: Sequence[int]
    ) -> int:
        """Return the index of the first wave that a host fits, or the number of waves."""
        for place, wave in enumerate(waves):
            if not kept_out[place] >> index & 1 and len(wave.hosts) < self.at_once and wave.fits(host):
                return place
        return len(waves)

    def in_order(self, hosts: Iterable[HostName]) -> "list[WaveBuilder]":
        """Place each host, in the given order, into the first wave that it fits."""
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
        """Choose the hosts of one wave, in the given order."""
        wave = WaveBuilder(self)
        for host in hosts:
            if len(wave.hosts) >= self.at_once:
                break
            if wave.fits(host):
                wave.take(host)
        return tuple(wave.hosts)

    def why_no_more(self, taken: Iterable[HostName], others: Iterable[HostName]) -> Sequence[str]:
        """Return why a wave takes none of the other hosts; "" stands for a host that it could take."""
        wave = WaveBuilder(self)
        for host in taken:
            wave.take(host)
        return list(dict.fromkeys(wave.obstacle(host) for host in others))

    def allow(self, planned: Sequence[Wave], hosts: Iterable[HostName]) -> bool:
        """Return whether planned waves are still valid for these hosts. Machines may have moved."""
        if sorted(host for wave in planned for host in wave.hosts) != sorted(hosts):
            return False
        return all(self.pick(wave.hosts) == wave.hosts for wave in planned)


def cut(
    rollout: Rollout, survey: HostSurvey, hosts: Sequence[HostName], coming: WaveLimits | None = None
) -> tuple[Wave, ...]:
    """Split hosts into planned waves, with the canaries in waves of their own, first."""
    first, coming = turn_of(rollout, hosts), coming or limits(rollout, survey)
    early = frozenset(first)
    return (*coming.cut(first), *coming.cut(host for host in hosts if host not in early))


def without_evacuation_limits(rollout: Rollout, survey: HostSurvey) -> tuple[Wave, ...]:
    """Return the planned waves as they would be without evacuation limits."""
    coming = limits(rollout, survey)
    if not coming.evacuation:
        return rollout.planned
    return cut(rollout, survey, rollout.left, replace(coming, evacuation={}))


def choose(
    rollout: Rollout, planned: Sequence[Wave], free: Collection[HostName], limits: WaveLimits
) -> tuple[HostName, ...]:
    """Choose the hosts of the next wave: the first planned wave, or its free hosts and others that fit.

    Hosts of the first wave are preferred, so that a waiting host does not cause many more waves.
    """
    first = planned[0].hosts
    if all(host in free for host in first):
        return limits.pick(first)
    in_order = turn_of(rollout, [host for wave in planned for host in wave.hosts])
    return limits.pick(host for host in in_order if host in free)


def without(planned: Iterable[Wave], taken: Iterable[HostName]) -> tuple[Wave, ...]:
    """Return planned waves without hosts that were chosen early."""
    gone = frozenset(taken)
    left = (tuple(host for host in wave.hosts if host not in gone) for wave in planned)
    return tuple(Wave(hosts=hosts) for hosts in left if hosts)


def turn_of(rollout: Rollout, left: Sequence[HostName]) -> Sequence[HostName]:
    """Return the remaining hosts that may be next: the canaries, or all hosts after the last canary."""
    canaries = frozenset(rollout.canaries)
    return [host for host in left if host in canaries] or left


def rest_after(rollout: Rollout, hosts: Sequence[HostName], left: Sequence[HostName]) -> timedelta:
    """Return the rest after a wave: the gap, or the soak time after the last canaries."""
    canaries = frozenset(rollout.canaries)
    last = not canaries.isdisjoint(hosts) and canaries.isdisjoint(left)
    return max(rollout.gap, rollout.terms.soak) if last else rollout.gap


def limits(rollout: Rollout, survey: HostSurvey) -> WaveLimits:
    """Return the limits of planned waves, as if all machines were healthy."""
    spare = {group: budget.at_best for group, budget in survey.budgets.items()}
    spare |= {group: min(most, spare.get(group, most)) for group, most in survey.at_most.items()}
    return _limits(rollout, survey, spare)


def limits_now(rollout: Rollout, survey: HostSurvey) -> WaveLimits:
    """Return the limits of a wave that is announced now, with the machines that are healthy now."""
    spare = {group: budget.spare for group, budget in survey.budgets.items()}
    left = {group: most - survey.frozen(group) for group, most in survey.at_most.items()}
    spare |= {group: min(most, spare.get(group, most)) for group, most in left.items()}
    return _limits(rollout, survey, spare)


def _limits(rollout: Rollout, survey: HostSurvey, spare: Mapping[GroupName, int]) -> WaveLimits:
    return WaveLimits(
        survey=survey,
        at_once=rollout.hosts_at_once,
        spare=spare,
        evacuation=evacuation_limits(rollout, survey),
    )


def _fewest(footprints: Iterable[Footprint]) -> int:
    """Return a lower bound for the number of waves.

    A wave holds one domain of a group, or one host with several of its domains.
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
    """Return for each host a bit set of the hosts that its update domains exclude from its wave."""
    carrying: dict[GroupName, int] = {}
    of_domain: dict[tuple[GroupName, int], int] = {}
    for index, footprint in enumerate(footprints):
        for group, counts in footprint.counts.items():
            carrying[group] = carrying.get(group, 0) | 1 << index
            if len(counts) == 1:
                (domain,) = counts
                of_domain[group, domain] = of_domain.get((group, domain), 0) | 1 << index
    found = []
    for index, footprint in enumerate(footprints):
        mine, others = 1 << index, 0
        for group, counts in footprint.counts.items():
            if carrying[group] == mine:  # as for all standalone machines
                continue
            same = of_domain[group, next(iter(counts))] if len(counts) == 1 else mine
            others |= carrying[group] & ~same
        found.append(others & ~mine)
    return found


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


class WaveBuilder:
    """A wave under construction."""

    def __init__(self, limits: WaveLimits) -> None:
        self.hosts: list[HostName] = []
        self._limits = limits
        self._domains: dict[GroupName, frozenset[int]] = {}
        self._spare = dict(limits.spare)
        self._emptied: Counter[EvacuationLimit] = Counter()

    def fits(self, host: HostName) -> bool:
        """Return whether a host can join."""
        return not self.obstacle(host)

    def obstacle(self, host: HostName) -> str:
        """Return why a host cannot join, or "". The first host can always join: a wave has at least one."""
        if not self.hosts:
            return ""
        footprint = self._limits.survey.footprint(host)
        for group, counts in footprint.counts.items():
            there = self._domains.get(group)
            if there is not None and (len(counts) > 1 or there != counts.keys()):
                return f"two update domains of group {group} are not disturbed together"
            if group in self._spare and footprint.together(group) > self._spare[group]:
                return f"group {group} can spare {self._limits.spare[group]} at once"
        full = (
            limit for limit in self._limits.evacuation.get(host, ()) if self._emptied[limit] >= limit.most
        )
        return next((limit.why for limit in full), "")

    def take(self, host: HostName) -> None:
        """Add a host."""
        self.hosts.append(host)
        footprint = self._limits.survey.footprint(host)
        for group, counts in footprint.counts.items():
            self._domains[group] = frozenset(counts)
            if group in self._spare:
                self._spare[group] -= footprint.together(group)
        self._emptied.update(self._limits.evacuation.get(host, ()))
