"""On whose machines a scenario may be played: those of projects that are marked for it."""

from collections.abc import Iterable, Mapping

from forewarn.core.errors import Conflict
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.project import Project
from forewarn.core.words import ProjectName

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
