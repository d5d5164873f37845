"""Footprints: whom some work disturbs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from forewarn.core.words import GroupName, ProjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Whom work disturbs: how many machines of each group and update domain."""

    counts: Mapping[GroupName, Mapping[int, int]] = field(default_factory=dict)
    projects: frozenset[ProjectName] = frozenset()
    # How many of them do not count as healthy before it, where that is known: they cost a budget nothing.
    unwell: Mapping[GroupName, int] = field(default_factory=dict)

    @property
    def stages(self) -> int:
        """How many stages an order on the host has."""
        return max((len(counts) for counts in self.counts.values()), default=0)

    def first_domain(self, group: GroupName) -> int:
        """Return the update domain of a group that is disturbed first: the lowest."""
        return min(self.counts[group])

    def together(self, group: GroupName) -> int:
        """Return how many machines of a group are disturbed together: its domains go one after another."""
        return max(self.counts[group].values())
