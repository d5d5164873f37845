"""Rehearsals: the faults that guests see, the saved state, and the machines that a scenario may use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from forewarn.core.basic_types import EventStatus, ProjectName
from forewarn.core.errors import Conflict
from forewarn.core.model.event import Event
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.project import Project
from forewarn.core.text_formats import truncated_list

# Azure's documentation: the first call of a machine may take this long.
SLOW = timedelta(minutes=2)
# A guest sees the event, but has less time than the minimum of its type.
SHORT_NOTICE = timedelta(seconds=30)


class FaultKind(StrEnum):
    """The kind of a faulty answer."""

    SLOW = "slow"
    HANG = "hang"
    TOO_MANY = "429"
    ERROR = "500"
    UNAVAILABLE = "503"
    EMPTY = "empty"
    TEXT = "text"
    VANISHED = "vanished"
    BORN_STARTED = "born-started"
    SHORT_NOTICE = "short-notice"
    INCARNATION_RESTART = "incarnation-restart"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault of the metadata endpoint; its times are in service time."""

    kind: FaultKind
    machines: tuple[str, ...] = ()  # names; empty: all
    since: datetime | None = None  # None: from the beginning
    until: datetime | None = None  # None: to the end
    calls: int | None = None  # the most calls of each machine that it affects
    delay: timedelta = SLOW  # of a slow answer
    notice: timedelta = SHORT_NOTICE  # the rest of the notice when the event is first shown
    number: int = 0  # identifies a fault of a rehearsal; it stays if the fault's times change

    def __str__(self) -> str:
        whose = f" for {', '.join(self.machines)}" if self.machines else ""
        return f"fault {self.kind}{whose}"

    def concerns(self, machine: str) -> bool:
        """Whether the fault affects a machine."""
        return not self.machines or machine in self.machines

    def on(self, now: datetime) -> bool:
        """Whether the fault is active."""
        return (self.since is None or self.since <= now) and (self.until is None or now < self.until)

    def hides(self, event: Event, now: datetime) -> bool:
        """Whether the fault hides an event from guests."""
        scheduled = event.status is EventStatus.SCHEDULED
        match self.kind:
            case FaultKind.VANISHED:
                return True
            case FaultKind.BORN_STARTED:
                return scheduled
            case FaultKind.SHORT_NOTICE:
                return scheduled and event.not_before - now > self.notice
            case _:
                return False


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRehearsal:
    """A saved rehearsal, active or ended."""

    project: ProjectName
    id: str
    scenario: str
    machines: Mapping[str, str]  # names by id, in the order of the request
    faults: tuple[Fault, ...] = ()
    by: str
    begun_at: datetime
    renewed_at: datetime  # real time of the last renewal
    ended_by: str = ""  # who ended it; the player then does not start it again


# How many machines an error message names.
NAMED = 5


def check_machine(machine: Machine, projects: Mapping[ProjectName, Project]) -> None:
    """Refuse a machine whose project does not allow rehearsals."""
    if not projects[machine.project].rehearsal:
        raise Conflict(
            f'machine "{machine.name}" is of project {machine.project}, which is not for rehearsals: '
            f"{how_to_allow_rehearsals(machine.project)}"
        )


def check_host(host: Host, carried: Iterable[Machine], projects: Mapping[ProjectName, Project]) -> None:
    """Refuse a host without machines, or with machines of projects that do not allow rehearsals."""
    machines = sorted(carried, key=lambda machine: (machine.project, machine.name))
    others = [machine for machine in machines if not projects[machine.project].rehearsal]
    if others:
        named = truncated_list([f"{machine.name} ({machine.project})" for machine in others], NAMED)
        raise Conflict(
            f'host "{host.name}" carries machines of projects that are not for rehearsals: {named}'
        )
    if not machines:
        raise Conflict(f'host "{host.name}" carries no machine of a project for rehearsals')


def how_to_allow_rehearsals(project: str) -> str:
    """Write how to allow rehearsals in a project."""
    return f"declare `rehearsal = true` in [projects.{project}] of the fleet file, and apply it"
