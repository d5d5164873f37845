"""How hosts are cut into waves.

The hosts of a wave carry no two update domains of one group, and leave every group its healthy machines.
"""

from collections.abc import Iterable, Mapping, Sequence

from forewarn.core.model.rollout import Wave
from forewarn.core.model.survey import NOBODY, Footprint, Footprints
from forewarn.core.words import GroupName, HostName


def cut(
    hosts: Iterable[HostName],
    footprints: Footprints,
    *,
    at_once: int,
    spare: Mapping[GroupName, int],
) -> tuple[Wave, ...]:
    """Put each host, in order, into the first wave that it fits; `spare` says what groups can do without."""
    crews: list[Crew] = []
    roomy: list[Crew] = []
    for host in hosts:
        print_ = footprints.get(host, NOBODY)
        crew = next((each for each in roomy if each.fits(print_)), None)
        if crew is None:
            crew = Crew(spare)
            crews.append(crew)
            roomy.append(crew)
        crew.take(host, print_)
        if len(crew.hosts) >= at_once:
            roomy.remove(crew)
    return tuple(Wave(hosts=tuple(crew.hosts)) for crew in crews)


def pick(
    hosts: Iterable[HostName],
    footprints: Footprints,
    *,
    at_once: int,
    spare: Mapping[GroupName, int],
) -> tuple[HostName, ...]:
    """Choose the hosts of one wave, in order."""
    crew = Crew(spare)
    for host in hosts:
        if len(crew.hosts) >= at_once:
            break
        print_ = footprints.get(host, NOBODY)
        if crew.fits(print_):
            crew.take(host, print_)
    return tuple(crew.hosts)


def holds_good(
    planned: Sequence[Wave],
    hosts: Iterable[HostName],
    footprints: Footprints,
    *,
    at_once: int,
    spare: Mapping[GroupName, int],
) -> bool:
    """Say whether planned waves are still right for these hosts: machines move."""
    if sorted(host for wave in planned for host in wave.hosts) != sorted(hosts):
        return False
    return all(pick(wave.hosts, footprints, at_once=at_once, spare=spare) == wave.hosts for wave in planned)


class Crew:
    """The hosts of a wave that is being put together."""

    def __init__(self, spare: Mapping[GroupName, int]) -> None:
        self.hosts: list[HostName] = []
        self._spare = spare
        self._domains: dict[GroupName, frozenset[int]] = {}
        self._taken: dict[GroupName, int] = {}

    def fits(self, footprint: Footprint) -> bool:
        """Say whether a host can join; the first one can always, for nothing smaller can be done."""
        if not self.hosts:
            return True
        for group, counts in footprint.domains.items():
            there = self._domains.get(group)
            if there is not None and (len(counts) > 1 or there != counts.keys()):
                return False
            if group in self._spare and self._taken.get(group, 0) + largest(counts) > self._spare[group]:
                return False
        return True

    def take(self, host: HostName, footprint: Footprint) -> None:
        """Let a host join."""
        self.hosts.append(host)
        for group, counts in footprint.domains.items():
            self._domains[group] = frozenset(counts)
            if group in self._spare:
                self._taken[group] = self._taken.get(group, 0) + largest(counts)


def largest(counts: Mapping[int, int]) -> int:
    """Say how many machines of a group are disturbed together: its domains go one after another."""
    return max(counts.values(), default=0)
