"""Budgets: how many healthy machines a group needs while some of it are maintained."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from forewarn.core.errors import Invalid
from forewarn.core.model.waiting import Waiting
from forewarn.core.words import GroupName, HostName, MachineId, MachineName

# What a person can do about a host that carries too many machines of a group.
WAYS_OUT = "redeploy some of them to other hosts, add machines to the group, or lower its budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many healthy machines a group needs, and how it is."""

    needs: int
    members: int
    down: Mapping[MachineId, MachineName] = field(default_factory=dict)  # not running
    told: Mapping[MachineId, MachineName] = field(default_factory=dict)  # named in an event, down or not

    @property
    def at_best(self) -> int:
        """How many may be disturbed together when all of it are well."""
        return self.members - self.needs

    @property
    def spare(self) -> int:
        """How many more may be disturbed now."""
        return self.members - len(self._unwell) - self.needs

    def allows(self, disturbed: Collection[MachineId]) -> bool:
        """Say whether enough are left with these disturbed too; some of them may be down already."""
        return self.members - len(self._unwell | set(disturbed)) >= self.needs

    @property
    def _unwell(self) -> set[MachineId]:
        """Those that do not count as healthy: guests leave their group as soon as they are told."""
        return self.down.keys() | self.told.keys()

    def check(self, group: GroupName, host: HostName, together: int) -> None:
        """Refuse work on a host that disturbs more of a group together than it can ever spare."""
        if together > self.at_best:
            raise Invalid(f"group {group}: {self._crowding(host, together)}: this can never be met")

    def lack(self, group: GroupName, host: str, together: int) -> Waiting:
        """Say what is missing for so many to be disturbed together; no waiting helps if they are too many."""
        stuck = together > self.at_best
        reason = f"{self._crowding(host, together)}: {WAYS_OUT}" if stuck else self._lack()
        return Waiting(what=group, reason=reason, group=group, stuck=stuck)

    def _crowding(self, host: str, together: int) -> str:
        needs = f"needs {self.needs} healthy of {self.members}"
        return f"{needs}, but {host} carries {together} of one update domain"

    def _lack(self) -> str:
        running = {id_: name for id_, name in self.told.items() if id_ not in self.down}
        missing = [
            f"{_are(names.values())} {how}"
            for names, how in ((self.down, "down"), (running, "under an event"))
            if names
        ]
        if not missing:
            return f"needs {self.needs} healthy of {self.members}"
        return f"needs {self.needs} healthy, {', '.join(missing)}"


def _are(names: Iterable[MachineName]) -> str:
    *most, last = sorted(names)
    return f"{', '.join(most)} and {last} are" if most else f"{last} is"
