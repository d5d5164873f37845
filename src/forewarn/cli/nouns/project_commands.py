"""`forewarn project`: show the tenants, and what they have declared."""

from typing import Annotated

import typer

from forewarn.cli import formatting, terminal
from forewarn.cli.id_lookup import path_of
from forewarn.cli.options.shared_options import name_argument
from forewarn.cli.session import Noun, Session
from forewarn.core.moments import format_span_briefly
from forewarn.wire.answers.fleet_answers import ProjectAnswer
from forewarn.wire.answers.rehearsal_answers import (
    EndedRehearsalAnswer,
    FaultAnswer,
    RehearsalAnswer,
    RehearsingGuestAnswer,
)

app = Noun()

ProjectArgument = Annotated[str, name_argument("PROJECT")]

LIST = terminal.ItemTable[ProjectAnswer](
    columns={
        "PROJECT": lambda project: project.name,
        "REHEARSAL": lambda project: project.rehearsal,
        "TIME ZONE": lambda project: project.time_zone,
        "WINDOWS": lambda project: _windows(project),
        "BLACKOUT": lambda project: project.blackout,
    },
    wraps=("WINDOWS", "BLACKOUT"),
    empty="No projects.",
)
GUESTS = terminal.ItemTable[RehearsingGuestAnswer](
    columns={
        "MACHINE": lambda guest: guest.machine,
        "POLLS": lambda guest: guest.polls,
        "SPOILED": lambda guest: guest.spoiled,
        "MEETS": lambda guest: guest.meets,
    },
    empty="No guests.",
)


@app.command("list")
def list_(session: Session) -> None:
    """List projects."""
    session.print_reply(session.client.all(ProjectAnswer), lambda page: LIST.print(page.items))


@app.command()
def show(session: Session, name: ProjectArgument) -> None:
    """Show a project."""
    reply = session.client.get(path_of("project", name), ProjectAnswer)
    session.print_reply(reply, lambda project: terminal.details_of(project, windows=_windows(project)))


@app.command()
def rehearsal(
    session: Session,
    name: ProjectArgument,
    end: Annotated[bool, typer.Option("--end", help="End it: guests are answered as ever again.")] = False,
) -> None:
    """Show what is rehearsed in a project: who plays it, what guests meet, and what they did."""
    if end:
        ended = session.client.call("DELETE", f"{path_of('project', name)}/rehearsal", EndedRehearsalAnswer)
        session.print_reply(ended, _show_ended)
    else:
        session.print_reply(
            session.client.get(f"{path_of('project', name)}/rehearsal", RehearsalAnswer), _show_rehearsal
        )


def _show_ended(ended: EndedRehearsalAnswer) -> None:
    orders = f" Called off: {formatting.listing(ended.called_off)}." if ended.called_off else ""
    terminal.echo(f"Ended. All guests are answered as ever.{orders}")
    _show_rehearsal(ended.rehearsal)


def _show_rehearsal(shown: RehearsalAnswer) -> None:
    terminal.details(
        [
            ("scenario", shown.scenario),
            ("by", shown.by),
            ("since", shown.begun_at),
            ("faults", [_fault(each) for each in shown.faults]),
        ]
    )
    GUESTS.print(shown.guests)


def _fault(fault: FaultAnswer) -> str:
    whose = f" for {', '.join(fault.machines)}" if fault.machines else ""
    return f"{fault.kind}{whose}{' (on now)' if fault.on else ''}"


def _windows(project: ProjectAnswer) -> list[str]:
    return [
        f"{' '.join(window.days)} {window.start} for {format_span_briefly(window.length)}"
        for window in project.windows
    ]
