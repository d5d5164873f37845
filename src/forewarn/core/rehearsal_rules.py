"""Rehearsals: the faults that guests meet, what a server saves, and whose machines a scenario may use."""

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

# As long as Azure's documentation lets the first call of a machine take.
SLOW = timedelta(minutes=2)
# Enough to see the event, and too little for a guest that counts on its type's minimum.
SHORT_NOTICE = timedelta(seconds=30)


class FaultKind(StrEnum):
    """What is wrong with an answer."""

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
    """The metadata plane misbehaves; when, is counted in service time."""

    kind: FaultKind
    machines: tuple[str, ...] = ()  # by name; none: all
    since: datetime | None = None  # None: from the beginning
    until: datetime | None = None  # None: to the end
    calls: int | None = None  # of each machine that it spoils at most
    delay: timedelta = SLOW  # of a slow answer
    notice: timedelta = SHORT_NOTICE  # that is left when a short notice is first shown
    number: int = 0  # tells faults of a rehearsal apart, and stays when a fault gets other times

    def __str__(self) -> str:
        whose = f" for {', '.join(self.machines)}" if self.machines else ""
        return f"fault {self.kind}{whose}"

    def concerns(self, machine: str) -> bool:
        """Return whether a machine's guest meets the fault."""
        return not self.machines or machine in self.machines

    def on(self, now: datetime) -> bool:
        """Return whether the fault is on at a moment."""
        return (self.since is None or self.since <= now) and (self.until is None or now < self.until)

    def hides(self, event: Event, now: datetime) -> bool:
        """Return whether the fault hides an event from guests."""
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
class KeptRehearsal:
    """A rehearsal that goes on, or that somebody has ended for good."""

    project: ProjectName
    id: str
    scenario: str
    machines: Mapping[str, str]  # their names by their ids, in the order in which they were named
    faults: tuple[Fault, ...] = ()
    by: str
    begun_at: datetime
    renewed_at: datetime  # real time: when it was last asked for
    ended_by: str = ""  # who has ended it, so that whoever plays it does not begin it again


# As many machines as are named in a refusal.
NAMED = 5


def check_machine(machine: Machine, projects: Mapping[ProjectName, Project]) -> None:
    """Refuse to play on a machine whose project is not for rehearsals."""
    if not projects[machine.project].rehearsal:
        raise Conflict(
            f'machine "{machine.name}" is of project {machine.project}, which is not for rehearsals: '
            f"{how_to_mark(machine.project)}"
        )


def check_host(host: Host, carried: Iterable[Machine], projects: Mapping[ProjectName, Project]) -> None:
    """Refuse to play on a host that carries other projects' machines, or none at all."""
    machines = sorted(carried, key=lambda machine: (machine.project, machine.name))
    others = [machine for machine in machines if not projects[machine.project].rehearsal]
    if others:
        named = ", ".join(f"{machine.name} ({machine.project})" for machine in others[:NAMED])
        more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
        raise Conflict(
            f'host "{host.name}" carries machines of projects that are not for rehearsals: {named}{more}'
        )
    if not machines:
        raise Conflict(f'host "{host.name}" carries no machine of a project for rehearsals')


def how_to_mark(project: str) -> str:
    """Write how a project is marked for rehearsals."""
    return f"declare `rehearsal = true` in [projects.{project}] of the fleet file, and apply it"
