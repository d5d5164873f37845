"""A rehearsal: as it is asked for, while it goes on and once it is over; and the endpoint that takes part."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from forewarn.core.model.order import Order
from forewarn.core.rehearsal_ledger import Account
from forewarn.core.rehearsal_rules import Fault, KeptRehearsal
from forewarn.core.words import MachineId, ProjectName


class RehearsalEndpoint(Protocol):
    """The guest endpoint, as far as it takes part in rehearsals: one in a project at a time."""

    def open(self, project: ProjectName, machines: Mapping[MachineId, str]) -> None:
        """Begin a rehearsal with machines, each with an account under its name."""
        ...

    def meet(self, project: ProjectName, faults: Sequence[Fault]) -> None:
        """Let guests meet these faults from now on, and no others."""
        ...

    def accounts(self, project: ProjectName) -> Sequence[Account]:
        """Return what guests have done so far."""
        ...

    def close(self, project: ProjectName) -> None:
        """End a rehearsal: its machines are answered as all others are."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """A scenario that is rehearsed in a project."""

    id: str
    scenario: str
    machines: tuple[str, ...]
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRehearsal:
    """A rehearsal that is going on, and who began it."""

    rehearsal: Rehearsal
    by: str
    begun_at: datetime
    machines: Mapping[MachineId, str]  # by id, their names
    renewed: float = 0.0  # when it was last asked for, in real seconds

    def kept(self, project: ProjectName, *, renewed_at: datetime, ended_by: str = "") -> KeptRehearsal:
        """Return it as it is saved."""
        return KeptRehearsal(
            project=project,
            id=self.rehearsal.id,
            scenario=self.rehearsal.scenario,
            machines={str(machine): name for machine, name in self.machines.items()},
            faults=self.rehearsal.faults,
            by=self.by,
            begun_at=self.begun_at,
            renewed_at=renewed_at,
            ended_by=ended_by,
        )

    def has_ordered(self, order: Order) -> bool:
        """Return whether an order has its scenario and its author; another project's may have the same."""
        return order.terms.rehearsal == self.rehearsal.scenario and order.by == self.by


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRehearsal:
    """A rehearsal that is over, and who or what ended it."""

    project: ProjectName
    was: OpenRehearsal
    by: str
    why: str = ""
    by_tenant: bool = False  # whether the project's own people did, who have no say about others' machines
    for_good: bool = False  # whether people ended it: it is not begun again

    @property
    def which(self) -> tuple[ProjectName, str]:
        """What names it."""
        return self.project, self.was.rehearsal.id

    @property
    def reason(self) -> str:
        """What its record says."""
        scenario = self.was.rehearsal.scenario
        return f"{scenario}: {self.why}" if self.why else scenario

    def may_have_ordered(self, order: Order) -> bool:
        """Return whether an order is of its scenario, its author and its time."""
        return self.was.has_ordered(order) and order.created_at >= self.was.begun_at


def going_on(kept: KeptRehearsal, *, renewed: float) -> OpenRehearsal:
    """Return a rehearsal that was kept, without its faults: these are met once they are asked for again."""
    machines = {MachineId(id_): name for id_, name in kept.machines.items()}
    rehearsal = Rehearsal(id=kept.id, scenario=kept.scenario, machines=tuple(machines.values()))
    return OpenRehearsal(
        rehearsal=rehearsal, by=kept.by, begun_at=kept.begun_at, machines=machines, renewed=renewed
    )
