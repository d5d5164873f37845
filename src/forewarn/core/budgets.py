"""Budgets: how many healthy machines a group needs while some of it are maintained."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from forewarn.core.errors import Invalid
from forewarn.core.words import GroupName, HostName, MachineId, MachineName


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many healthy machines a group needs, and how it is."""

    needs: int
    members: int
    down: Mapping[MachineId, MachineName] = field(default_factory=dict)  # not running, or named in an event

    @property
    def spare(self) -> int:
        """How many more may be disturbed now."""
        return self.members - len(self.down) - self.needs

    def allows(self, disturbed: Collection[MachineId]) -> bool:
        """Say whether enough are left with these disturbed too; some of them may be down already."""
        return self.members - len(self.down.keys() | set(disturbed)) >= self.needs

    def check(self, group: GroupName, host: HostName, together: int) -> None:
        """Refuse work on a host that disturbs more of a group together than it can ever spare."""
        if self.members - together < self.needs:
            raise Invalid(
                f"group {group}: needs {self.needs} healthy of {self.members}, but {host} carries "
                f"{together} of one update domain: this can never be met"
            )

    def lack(self) -> str:
        """Say in words what is missing."""
        if not self.down:
            return f"needs {self.needs} healthy of {self.members}"
        *most, last = sorted(self.down.values())
        named = f"{', '.join(most)} and {last} are" if most else f"{last} is"
        return f"needs {self.needs} healthy, {named} down"
