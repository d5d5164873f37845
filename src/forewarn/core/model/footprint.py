"""Footprints, which count the machines that work disturbs, and the pace of moves."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from forewarn.core.basic_types import GroupName, Mobility, ProjectName

# The one update domain that replaces all others where update domains do not count.
ANY_DOMAIN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainShare:
    """Machines on a host with the same group, update domain and mobility."""

    group: GroupName
    update_domain: int
    project: ProjectName
    mobility: Mobility
    machines: int
    unsized: int = 0  # machines that declare no memory
    memory: float = 0.0  # of all others, in GiB
    largest: float = 0.0  # the most memory of one machine, in GiB


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """How many machines of each group and update domain some work disturbs."""

    counts: Mapping[GroupName, Mapping[int, int]] = field(default_factory=dict)
    projects: frozenset[ProjectName] = frozenset()
    # How many of them are unhealthy before the work, if known: they do not use up a budget.
    unwell: Mapping[GroupName, int] = field(default_factory=dict)
    # The same machines by mobility, for work on the host itself.
    shares: tuple[DomainShare, ...] = ()
    at_once: bool = False  # all update domains of a group are disturbed together, which breaks rule 4
    # Groups whose update domains do not count: how many machines may be disturbed together; None: all.
    free: Mapping[GroupName, int | None] = field(default_factory=dict)

    def with_free(self, most: Mapping[GroupName, int | None]) -> "Footprint":
        """Merge the update domains of groups that let this many machines be disturbed together."""
        totals = {group: sum(self.counts[group].values()) for group in most if group in self.counts}
        free = {
            group: limit
            for group, total in totals.items()
            if (limit := most[group]) is None or total <= limit
        }
        if not free:
            return self
        one = {group: {ANY_DOMAIN: totals[group]} for group in free}
        return replace(self, counts={**self.counts, **one}, free=free)

    def only(self, shares: Iterable[DomainShare]) -> "Footprint":
        """Return the footprint of some of the same machines."""
        return Footprint.of(shares).with_free(self.free)

    @classmethod
    def of(cls, shares: Iterable[DomainShare]) -> Self:
        """Return the footprint of work on these machines."""
        shares = tuple(shares)
        counts: dict[GroupName, dict[int, int]] = {}
        for share in sorted(shares, key=lambda each: each.group):
            domains = counts.setdefault(share.group, {})
            domains[share.update_domain] = domains.get(share.update_domain, 0) + share.machines
        return cls(counts=counts, projects=frozenset(share.project for share in shares), shares=shares)

    @property
    def stages(self) -> int:
        """How many stages an order on the host has."""
        if self.at_once:
            return min(len(self.counts), 1)
        return max((len(counts) for counts in self.counts.values()), default=0)

    @property
    def divided(self) -> Mapping[GroupName, tuple[int, ...]]:
        """The groups with several update domains here, and those domains."""
        return {group: tuple(sorted(counts)) for group, counts in self.counts.items() if len(counts) > 1}

    def first_domains(self, group: GroupName) -> frozenset[int]:
        """Return the update domains of a group that are disturbed first: the lowest, or all at once."""
        return frozenset(self.counts[group]) if self.at_once else frozenset({min(self.counts[group])})

    def together(self, group: GroupName) -> int:
        """Return the most machines of a group that are disturbed together: domains take turns."""
        counts = self.counts[group].values()
        return sum(counts) if self.at_once else max(counts)


# The weight of the expected duration, in seconds of moves: a few moves prove little.
UNPROVEN = 600.0
# Beyond this many seconds of moves, older ones count half: networks and machines change.
REMEMBERED = 86_400.0
# The limits of the factor, however slow or fast the moves were.
LEAST, MOST = 0.25, 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePace:
    """How long moves were expected to take, and how long they took, in seconds."""

    expected: float = 0.0
    taken: float = 0.0

    @property
    def factor(self) -> float:
        """The ratio of the real duration of moves in this fleet to the expected one."""
        return min(max((self.taken + UNPROVEN) / (self.expected + UNPROVEN), LEAST), MOST)

    def plus(self, other: "MovePace") -> "MovePace":
        """Add counts; the newest moves count most."""
        expected, taken = self.expected + other.expected, self.taken + other.taken
        kept = 0.5 if expected > REMEMBERED else 1.0
        return MovePace(expected=expected * kept, taken=taken * kept)


NO_MOVES = MovePace()
