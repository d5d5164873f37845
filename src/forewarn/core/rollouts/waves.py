"""How hosts are cut into waves.

The hosts of a wave carry no two update domains of one group, and leave every group its healthy machines.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from forewarn.core.model.footprint import Footprint
from forewarn.core.model.rollout import Rollout, Wave
from forewarn.core.model.survey import HostSurvey
from forewarn.core.words import GroupName, HostName


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveLimits:
    """What a wave may hold: so many hosts, and of each group no more than it can do without."""

    survey: HostSurvey
    at_once: int
    spare: Mapping[GroupName, int]

    def cut(self, hosts: Iterable[HostName]) -> tuple[Wave, ...]:
        """Put each host, in order, into the first wave that it fits."""
        waves: list[WaveBuilder] = []
        roomy: list[WaveBuilder] = []
        for host in hosts:
            footprint = self.survey.footprint(host)
            wave = next((each for each in roomy if each.fits(footprint)), None)
            if wave is None:
                wave = WaveBuilder(self.spare)
                waves.append(wave)
                roomy.append(wave)
            wave.take(host, footprint)
            if len(wave.hosts) >= self.at_once:
                roomy.remove(wave)
        return tuple(Wave(hosts=tuple(wave.hosts)) for wave in waves)

    def pick(self, hosts: Iterable[HostName]) -> tuple[HostName, ...]:
        """Choose the hosts of one wave, in order."""
        wave = WaveBuilder(self.spare)
        for host in hosts:
            if len(wave.hosts) >= self.at_once:
                break
            footprint = self.survey.footprint(host)
            if wave.fits(footprint):
                wave.take(host, footprint)
        return tuple(wave.hosts)

    def why_no_more(self, taken: Iterable[HostName], others: Iterable[HostName]) -> Sequence[str]:
        """Return why a wave takes none of other hosts beside its own; "" of one that it could take."""
        wave = WaveBuilder(self.spare)
        for host in taken:
            wave.take(host, self.survey.footprint(host))
        return list(dict.fromkeys(wave.obstacle(self.survey.footprint(host)) for host in others))

    def allow(self, planned: Sequence[Wave], hosts: Iterable[HostName]) -> bool:
        """Whether planned waves are still right for these hosts: machines move."""
        if sorted(host for wave in planned for host in wave.hosts) != sorted(hosts):
            return False
        return all(self.pick(wave.hosts) == wave.hosts for wave in planned)


def cut(rollout: Rollout, survey: HostSurvey, hosts: Sequence[HostName]) -> tuple[Wave, ...]:
    """Cut hosts into waves that are yet to come: canaries first, and apart."""
    first, coming = turn_of(rollout, hosts), limits(rollout, survey)
    early = frozenset(first)
    return (*coming.cut(first), *coming.cut(host for host in hosts if host not in early))


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
    return WaveLimits(survey=survey, at_once=rollout.hosts_at_once, spare=spare)


def limits_now(rollout: Rollout, survey: HostSurvey) -> WaveLimits:
    """Return the limits of a wave that is announced now."""
    spare = {group: budget.spare for group, budget in survey.budgets.items()}
    return WaveLimits(survey=survey, at_once=rollout.hosts_at_once, spare=spare)


class WaveBuilder:
    """The hosts of a wave that is being put together."""

    def __init__(self, spare: Mapping[GroupName, int]) -> None:
        self.hosts: list[HostName] = []
        self._domains: dict[GroupName, frozenset[int]] = {}
        self._spare = dict(spare)
        self._whole_spare = spare

    def fits(self, footprint: Footprint) -> bool:
        """Whether a host can join."""
        return not self.obstacle(footprint)

    def obstacle(self, footprint: Footprint) -> str:
        """Return why a host cannot join; the first one can always, for nothing smaller can be done."""
        if not self.hosts:
            return ""
        for group, counts in footprint.counts.items():
            there = self._domains.get(group)
            if there is not None and (len(counts) > 1 or there != counts.keys()):
                return f"two update domains of group {group} are not disturbed together"
            if group in self._spare and footprint.together(group) > self._spare[group]:
                return f"group {group} can spare {self._whole_spare[group]} at once"
        return ""

    def take(self, host: HostName, footprint: Footprint) -> None:
        """Let a host join."""
        self.hosts.append(host)
        for group, counts in footprint.counts.items():
            self._domains[group] = frozenset(counts)
            if group in self._spare:
                self._spare[group] -= footprint.together(group)
