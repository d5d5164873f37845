"""Footprints, which count the machines that work disturbs, and how long moves really take."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from forewarn.core.basic_types import GroupName, Mobility, ProjectName

# What update domains are counted as that do not count.
ANY_DOMAIN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainShare:
    """The machines of one update domain of a group on a host that can leave it in the same way, or cannot."""

    group: GroupName
    update_domain: int
    project: ProjectName
    mobility: Mobility
    machines: int
    unsized: int = 0  # how many of them declare no memory
    memory: float = 0.0  # of all others, in GiB
    largest: float = 0.0  # of the one with the most


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Whom work disturbs: how many machines of each group and update domain."""

    counts: Mapping[GroupName, Mapping[int, int]] = field(default_factory=dict)
    projects: frozenset[ProjectName] = frozenset()
    # How many of them do not count as healthy before it, where that is known: they cost a budget nothing.
    unwell: Mapping[GroupName, int] = field(default_factory=dict)
    # The same machines by how they can leave, where the host itself is worked on.
    shares: tuple[DomainShare, ...] = ()
    at_once: bool = False  # all update domains of a group are disturbed together, which breaks rule 4
    # The groups of which update domains do not count: how many may be disturbed together at most; None: all.
    free: Mapping[GroupName, int | None] = field(default_factory=dict)

    def with_free(self, most: Mapping[GroupName, int | None]) -> "Footprint":
        """Return the same, counting groups as one domain that let so many be disturbed together."""
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
        """Return some of the same machines, by how they can leave."""
        return Footprint.of(shares).with_free(self.free)

    @classmethod
    def of(cls, shares: Iterable[DomainShare]) -> Self:
        """Return whom work disturbs that is done to these machines."""
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
        """The groups of which several update domains are there, and which."""
        return {group: tuple(sorted(counts)) for group, counts in self.counts.items() if len(counts) > 1}

    def first_domains(self, group: GroupName) -> frozenset[int]:
        """Return the update domains of a group that are disturbed first: the lowest, or all at once."""
        return frozenset(self.counts[group]) if self.at_once else frozenset({min(self.counts[group])})

    def together(self, group: GroupName) -> int:
        """Return how many machines of a group are disturbed together: its domains go one after another."""
        counts = self.counts[group].values()
        return sum(counts) if self.at_once else max(counts)


# So many seconds of moves are taken to be as expected before there are any: a few say little.
UNPROVEN = 600.0
# Of more than so many seconds of moves, the older count half: networks are changed, and so are machines.
REMEMBERED = 86_400.0
# However slow or fast the moves were, what is expected stays within reason.
LEAST, MOST = 0.25, 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePace:
    """Seconds that moves were expected to take by what is known of their machines, and that they took."""

    expected: float = 0.0
    taken: float = 0.0

    @property
    def factor(self) -> float:
        """How many times as long as by machine alone a move takes in this fleet."""
        return min(max((self.taken + UNPROVEN) / (self.expected + UNPROVEN), LEAST), MOST)

    def plus(self, other: "MovePace") -> "MovePace":
        """Return the sum, in which the newest counts most."""
        expected, taken = self.expected + other.expected, self.taken + other.taken
        kept = 0.5 if expected > REMEMBERED else 1.0
        return MovePace(expected=expected * kept, taken=taken * kept)


NO_MOVES = MovePace()
