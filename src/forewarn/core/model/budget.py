"""Budgets: how many healthy machines a group needs while some of it are maintained."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from forewarn.core.words import MachineId, MachineName


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many healthy machines a group needs, and how it is."""

    needs: int
    members: int
    down: Mapping[MachineId, MachineName] = field(default_factory=dict)  # not running
    announced: Mapping[MachineId, MachineName] = field(default_factory=dict)  # named in an event, down or not

    @property
    def at_best(self) -> int:
        """How many may be disturbed together when all of it are well."""
        return self.members - self.needs

    @property
    def spare(self) -> int:
        """How many more may be disturbed now."""
        return self.members - len(self.unwell) - self.needs

    @property
    def unwell(self) -> frozenset[MachineId]:
        """Those that do not count as healthy: guests leave their group as soon as an event is announced."""
        return frozenset((*self.down, *self.announced))
