"""Hosts that take each other's machines, of which no more than half are emptied at once.

Those of a rack do, and those that are alike. Machines that find none of them go elsewhere, mix with
others, and make more waves.
"""

from dataclasses import dataclass

from forewarn.core.catalogue import WORKS
from forewarn.core.model.host import RACK
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.slice import HostSurvey
from forewarn.core.words import HostName

HALF_OF_A_RACK = (
    "no more than half of a rack is emptied at once: its other hosts take the machines, "
    "and later rollouts have no more waves for it"
)
HALF_OF_THOSE_ALIKE = (
    "no more than half of the hosts that carry alike are emptied at once: the others take the machines, "
    "and later rollouts have no more waves for it"
)

# Fewer hosts than that are no home for what the others carry, where it is only known that they stand
# together: such racks are emptied whole.
_FEWEST_IN_A_RACK = 4


@dataclass(frozen=True, slots=True)
class Half:
    """Hosts of which so many may be emptied at once, and why no more."""

    name: str
    most: int
    why: str


def halves(rollout: Rollout, survey: HostSurvey) -> dict[HostName, tuple[Half, ...]]:
    """Return for hosts that are emptied of which sets they are; those of none may be emptied as they come."""
    if not moves_machines(rollout):
        return {}
    found: dict[HostName, tuple[Half, ...]] = {}
    for name, rack in _racks(survey).items():
        found[name] = (Half(f"rack {rack}", _larger(survey.racks[rack]), HALF_OF_A_RACK),)
    for number, alike in enumerate(rollout.alike):
        half = Half(f"alike {number}", _larger(len(alike)), HALF_OF_THOSE_ALIKE)
        for name in alike:
            found[name] = (*found.get(name, ()), half)
    return found


def moves_machines(rollout: Rollout) -> bool:
    """Return whether machines leave the hosts of a rollout."""
    return rollout.empties or WORKS[rollout.work].moves


def _racks(survey: HostSurvey) -> dict[HostName, str]:
    """Return in which racks hosts are that carry members of groups: other machines go with any wave."""
    return {
        name: host.labels[RACK]
        for name, host in survey.hosts.items()
        if survey.racks.get(host.labels.get(RACK, ""), 0) >= _FEWEST_IN_A_RACK
        and any(survey.sizes.get(group, 0) > 1 for group in survey.footprint(name).counts)
    }


def _larger(hosts: int) -> int:
    """Return the larger half of so many hosts, so that two waves do for them."""
    return (hosts + 1) // 2
