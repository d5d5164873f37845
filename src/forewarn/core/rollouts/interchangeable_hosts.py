"""Find interchangeable hosts: their machines could swap places without a conflict of update domains.

Such hosts form one wave of work that moves nothing, and they remain so while their machines only move among
them. A rollout that moves machines saves these sets of hosts when it begins. It evacuates no more than half
of each set at once, and prefers the other hosts of the set as targets (homes).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from forewarn.core.basic_types import GroupName, HostName
from forewarn.core.model.footprint import Footprint
from forewarn.core.model.rollout import InterchangeableHosts, Rollout
from forewarn.core.model.slice import HostSurvey
from forewarn.core.rollouts.waves import WaveBuilder, WaveLimits

# The number of homes of each host: enough to choose from, and orders stay small in large fleets.
MOST_HOMES = 32


def find(survey: HostSurvey, others: Mapping[HostName, Footprint]) -> tuple[InterchangeableHosts, ...]:
    """Return the sets of interchangeable hosts in a survey, extended by similar hosts of the fleet.

    Hosts that accept no machines are excluded, and so are hosts without any group in several update domains.
    """
    taking = {name: survey.footprint(name) for name, host in survey.hosts.items() if host.takes_machines}
    groups = _groups_with_domains((*taking.values(), *others.values()))
    mine = {name: _only(footprint, groups) for name, footprint in taking.items()}
    beside = {name: _only(footprint, groups) for name, footprint in others.items()}
    # A host with several domains of a group matches no other host.
    mine, beside = (
        {name: each for name, each in some.items() if each.counts and not each.divided}
        for some in (mine, beside)
    )
    limited = HostSurvey(footprints={**mine, **beside})
    limits = WaveLimits(survey=limited, at_once=max(len(limited.footprints), 1), spare={})
    kinds = [_Kind.of(wave.hosts, limits) for wave in limits.cut(mine)]
    for name in sorted(beside):
        kind = next((each for each in kinds if each.matches(name, beside[name])), None)
        if kind is not None:
            kind.wave.take(name)
    return tuple(tuple(kind.wave.hosts) for kind in kinds if len(kind.wave.hosts) > 1)


def _groups_with_domains(footprints: Iterable[Footprint]) -> frozenset[GroupName]:
    """Return the groups with machines in several update domains. Only they keep hosts apart."""
    domains: dict[GroupName, set[int]] = {}
    for footprint in footprints:
        for group, counts in footprint.counts.items():
            domains.setdefault(group, set()).update(counts)
    return frozenset(group for group, its in domains.items() if len(its) > 1)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A set of interchangeable hosts that can grow."""

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

    def matches(self, name: HostName, footprint: Footprint) -> bool:
        """Return whether a host shares an update domain with this set and conflicts with none."""
        room = len(self.wave.hosts) < self.most
        return room and not self.domains.isdisjoint(_domains(footprint)) and self.wave.fits(name)


def _domains(footprint: Footprint) -> Iterator[tuple[GroupName, int]]:
    return ((group, domain) for group, counts in footprint.counts.items() for domain in counts)


def _only(footprint: Footprint, groups: frozenset[GroupName]) -> Footprint:
    counts = {group: counts for group, counts in footprint.counts.items() if group in groups}
    return footprint if len(counts) == len(footprint.counts) else replace(footprint, counts=counts)


def homes(rollout: Rollout, emptied: Sequence[HostName]) -> dict[HostName, tuple[HostName, ...]]:
    """Return the preferred targets for the machines of hosts that are evacuated together.

    Each host starts at another place in the list, so that targets fill evenly. Hosts that the rollout has
    finished come first, since machines do not have to leave them again.
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
            found[source] = (*_rotated(over, share), *_rotated(to_come, share))[:MOST_HOMES]
    return found


def _rotated(hosts: Sequence[HostName], share: float) -> Sequence[HostName]:
    first = int(len(hosts) * share)
    return (*hosts[first:], *hosts[:first])
