"""Which hosts are alike: their machines could exchange places, and no two would exclude each other by it.

Such hosts are one wave of work that moves nothing, and stay one as long as their machines go to each other.
So a rollout that moves machines remembers who was alike when it began, empties no more than half of them at
once, and names the others as homes for what leaves.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from forewarn.core.basic_types import GroupName, HostName
from forewarn.core.model.footprint import Footprint
from forewarn.core.model.rollout import InterchangeableHosts, Rollout
from forewarn.core.model.slice import HostSurvey
from forewarn.core.rollouts.waves import WaveBuilder, WaveLimits

# So many homes are named to each host: enough to choose from, and orders stay small in large fleets.
MOST_HOMES = 32


def parted(footprints: Iterable[Footprint]) -> frozenset[GroupName]:
    """Return the groups that have machines of several update domains: only they keep hosts apart."""
    domains: dict[GroupName, set[int]] = {}
    for footprint in footprints:
        for group, counts in footprint.counts.items():
            domains.setdefault(group, set()).update(counts)
    return frozenset(group for group, its in domains.items() if len(its) > 1)


def find(survey: HostSurvey, others: Mapping[HostName, Footprint]) -> tuple[InterchangeableHosts, ...]:
    """Find which hosts of a survey are alike, and which others of the fleet are like them.

    Hosts that take no machines are left out, and so are those with which nothing is kept apart.
    """
    taking = {name: survey.footprint(name) for name, host in survey.hosts.items() if host.takes_machines}
    groups = parted((*taking.values(), *others.values()))
    mine = {name: _only(footprint, groups) for name, footprint in taking.items()}
    beside = {name: _only(footprint, groups) for name, footprint in others.items()}
    # One that has several domains of a group is like no other: its machines had better go apart.
    mine, beside = (
        {name: each for name, each in some.items() if each.counts and not each.divided}
        for some in (mine, beside)
    )
    ground = HostSurvey(footprints={**mine, **beside})
    limits = WaveLimits(survey=ground, at_once=max(len(ground.footprints), 1), spare={})
    kinds = [_Kind.of(wave.hosts, limits) for wave in limits.cut(mine)]
    for name in sorted(beside):
        kind = next((each for each in kinds if each.welcomes(name, beside[name])), None)
        if kind is not None:
            kind.wave.take(name)
    return tuple(tuple(kind.wave.hosts) for kind in kinds if len(kind.wave.hosts) > 1)


@dataclass(frozen=True, slots=True)
class _Kind:
    """Hosts that are alike, and others as they are found to be like them."""

    wave: WaveBuilder
    domains: frozenset[tuple[GroupName, int]]
    most: int

    @classmethod
    def of(cls, hosts: Sequence[HostName], limits: WaveLimits) -> "_Kind":
        wave = WaveBuilder(limits)
        domains: set[tuple[GroupName, int]] = set()
        for host in hosts:
            wave.take(host)
            domains.update(_domains(limits.survey.footprint(host)))
        return cls(wave, frozenset(domains), most=len(hosts) + max(len(hosts), MOST_HOMES))

    def welcomes(self, name: HostName, footprint: Footprint) -> bool:
        """Return whether a host has something in common with these, and nothing that keeps it apart."""
        room = len(self.wave.hosts) < self.most
        return room and not self.domains.isdisjoint(_domains(footprint)) and self.wave.fits(name)


def _domains(footprint: Footprint) -> Iterator[tuple[GroupName, int]]:
    return ((group, domain) for group, counts in footprint.counts.items() for domain in counts)


def _only(footprint: Footprint, groups: frozenset[GroupName]) -> Footprint:
    counts = {group: counts for group, counts in footprint.counts.items() if group in groups}
    return footprint if len(counts) == len(footprint.counts) else replace(footprint, counts=counts)


def homes(rollout: Rollout, emptied: Sequence[HostName]) -> dict[HostName, tuple[HostName, ...]]:
    """Return where the machines of hosts that are emptied together had better go.

    Each host is named others, so that all are filled evenly; first those that the rollout is done with, for
    from there no machine moves again.
    """
    leaving = frozenset(emptied)
    begun = frozenset(host for wave in rollout.begun for host in wave.hosts)
    found: dict[HostName, tuple[HostName, ...]] = {}
    for alike in rollout.alike:
        sources = [host for host in alike if host in leaving]
        over = [host for host in alike if host not in leaving and host in begun]
        to_come = [host for host in alike if host not in leaving and host not in begun]
        for turn, source in enumerate(sources):
            share = turn / len(sources)
            found[source] = (*_turned(over, share), *_turned(to_come, share))[:MOST_HOMES]
    return found


def _turned(hosts: Sequence[HostName], share: float) -> Sequence[HostName]:
    first = int(len(hosts) * share)
    return (*hosts[first:], *hosts[:first])
