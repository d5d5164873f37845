"""`forewarn project`: show the tenants, and what they have declared."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import TypeVar

import click

from forewarn.cli import formatting, terminal
from forewarn.cli.command_group import flag, option
from forewarn.cli.options import ONLY_NEW, delete_from_fleet, name_argument, path_of, put_in_fleet
from forewarn.cli.session import Noun, Session
from forewarn.client.replies import given
from forewarn.core.time_formats import format_span_briefly
from forewarn.wire.answers.fleet_answers import ProjectAnswer
from forewarn.wire.answers.rehearsal_answers import (
    EndedRehearsalAnswer,
    FaultAnswer,
    RehearsalAnswer,
    RehearsingGuestAnswer,
)

app = Noun()

T = TypeVar("T")

_WINDOW_WORDS = (2, 3)

PROJECT = name_argument("PROJECT")

LIST = terminal.ItemTable[ProjectAnswer](
    columns={
        "PROJECT": lambda project: project.name,
        "REHEARSAL": lambda project: project.rehearsal,
        "TIME ZONE": lambda project: project.time_zone,
        "WINDOWS": lambda project: _windows(project),
        "BLACKOUT": lambda project: _day_ranges(project.blackout),
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


@app.verb(
    PROJECT,
    option("--time-zone", "ZONE", "Of its windows, as Europe/Berlin."),
    option(
        "--window",
        "[DAYS] START LENGTH",
        "When maintenance may happen, as 'sat,sun 22:00 4h'; may be repeated, and replaces all.",
        multiple=True,
    ),
    option(
        "--blackout", "DAY", "A day without it, or 2026-12-24/2027-01-01; may be repeated.", multiple=True
    ),
    flag("--no-windows", "Clear them: maintenance may happen at any time."),
    flag("--no-blackout", "Clear the days without it."),
    flag("--rehearsal/--no-rehearsal", "Whether scenarios may be played on it.", default=None),
    flag("--sees-hosts/--no-sees-hosts", "Whether its people see hosts and operators.", default=None),
    ONLY_NEW,
)
def put(
    session: Session,
    name: str,
    time_zone: str | None,
    window: tuple[str, ...],
    blackout: tuple[str, ...],
    no_windows: bool,
    no_blackout: bool,
    rehearsal: bool | None,
    sees_hosts: bool | None,
    new: bool,
) -> None:
    """Add a project, or change what is given of one."""
    body = given(
        {
            "time_zone": time_zone,
            "windows": _listed([_window(each) for each in window], none=no_windows, option="--no-windows"),
            "blackout": _listed([*blackout], none=no_blackout, option="--no-blackout"),
            "rehearsal": rehearsal,
            "sees_hosts": sees_hosts,
        }
    )
    reply = put_in_fleet(session, "project", name, ProjectAnswer, body, new=new)
    session.print_reply(reply, _show_project)


@app.verb(PROJECT)
def delete(session: Session, name: str) -> None:
    """Take a project without groups and machines out of the fleet, with its tokens and webhooks."""
    delete_from_fleet(session, "project", name, ProjectAnswer)


def _listed(values: list[T], *, none: bool, option: str) -> list[T] | None:
    """Return what is sent for a list: nothing if it stays as it is."""
    if none and values:
        raise click.BadParameter("it clears what --window and --blackout name: give one", param_hint=option)
    return [] if none else values or None


def _window(typed: str) -> dict[str, object]:
    words = typed.split()
    if len(words) not in _WINDOW_WORDS:
        expected = "expected [DAYS] START LENGTH, as 'sat,sun 22:00 4h'"
        raise click.BadParameter(f"{expected}, got {typed!r}", param_hint="--window")
    *days, start, length = words
    return given({"days": days[0].split(",") if days else None, "start": start, "length": length})


def _show_project(project: ProjectAnswer) -> None:
    terminal.details_of(project, windows=_windows(project), blackout=_day_ranges(project.blackout))


def _day_ranges(days: Sequence[date]) -> list[str]:
    """Write sorted days as `--blackout` takes them: those in a row as the first and the last."""
    rows: list[list[date]] = []
    for day in days:
        if rows and day - rows[-1][-1] == timedelta(days=1):
            rows[-1].append(day)
        else:
            rows.append([day])
    return [f"{row[0]}/{row[-1]}" if len(row) > 1 else str(row[0]) for row in rows]


@app.verb()
def list_(session: Session) -> None:
    """List projects."""
    session.print_reply(session.client.all(ProjectAnswer), lambda page: LIST.print(page.items))


@app.verb(PROJECT)
def show(session: Session, name: str) -> None:
    """Show a project."""
    reply = session.client.get(path_of("project", name), ProjectAnswer)
    session.print_reply(reply, _show_project)


@app.verb(PROJECT, flag("--end", "End it: guests are answered as ever again."))
def rehearsal(session: Session, name: str, end: bool) -> None:
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
