"""`forewarn project`: show and declare projects, and show or end their rehearsals."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, TypeVar

from forewarn.cli import formatting, terminal
from forewarn.cli.command_group import WrongUsage, flag, option
from forewarn.cli.options import ONLY_NEW, delete_from_fleet, name_argument, path_of, put_in_fleet
from forewarn.cli.session import Noun, Session
from forewarn.client.replies import given
from forewarn.core.time_formats import format_span_briefly
from forewarn.wire import projects
from forewarn.wire.answers.fleet_answers import ProjectAnswer
from forewarn.wire.answers.rehearsal_answers import (
    EndedRehearsalAnswer,
    FaultAnswer,
    RehearsalAnswer,
    RehearsingGuestAnswer,
)
from forewarn.wire.invalid_field import InvalidField

app = Noun()

T = TypeVar("T")

_WINDOW_WORDS = (2, 3)

PROJECT = name_argument("PROJECT")

LIST = terminal.ItemTable[ProjectAnswer](
    columns={
        **terminal.columns("PROJECT=name REHEARSAL TIME-ZONE"),
        "WINDOWS": lambda project: _windows(project),
        "BLACKOUT": lambda project: _day_ranges(project.blackout),
    },
    wraps=("WINDOWS", "BLACKOUT"),
    empty="No projects.",
)
GUESTS = terminal.ItemTable[RehearsingGuestAnswer](
    columns={
        **terminal.columns("MACHINE POLLS SPOILED MEETS"),
    },
    empty="No guests.",
)


@app.verb(
    PROJECT,
    option("--time-zone", "ZONE", "The time zone of the windows, such as Europe/Berlin."),
    option(
        "--window windows",
        "[DAYS] START LENGTH",
        "A maintenance window, such as 'sat,sun 22:00 4h'; replaces all windows. Repeatable.",
        multiple=True,
    ),
    option(
        "--blackout",
        "DAY",
        "A day without maintenance, or several, such as 2026-12-24/2027-01-01. Repeatable.",
        multiple=True,
    ),
    flag("--no-windows", "Clear the windows: maintenance may happen at any time."),
    flag("--no-blackout", "Clear the blackout days."),
    flag("--rehearsal/--no-rehearsal", "Allow rehearsals.", default=None),
    flag("--sees-hosts/--no-sees-hosts", "Let its users see hosts and operators.", default=None),
    ONLY_NEW,
)
def put(
    session: Session,
    name: str,
    windows: tuple[str, ...],
    blackout: tuple[str, ...],
    no_windows: bool,
    no_blackout: bool,
    new: bool,
    **typed: Any,
) -> None:
    """Add a project, or change the given fields of one."""
    body = given(
        {
            **typed,
            "windows": _listed([_window(each) for each in windows], clear=no_windows, option="--window"),
            "blackout": _listed([*blackout], clear=no_blackout, option="--blackout"),
        }
    )
    reply = put_in_fleet(session, "project", name, ProjectAnswer, body, new=new)
    session.print_reply(reply, _show_project)


@app.verb(PROJECT)
def delete(session: Session, name: str) -> None:
    """Remove a project without groups and machines, with its tokens and webhooks."""
    delete_from_fleet(session, "project", name, ProjectAnswer)


def _listed(values: list[T], *, clear: bool, option: str) -> list[T] | None:
    """Return the new value of a list; None to leave it unchanged."""
    if clear and values:
        raise WrongUsage(option, "choose this or the flag that clears it")
    return [] if clear else values or None


def _window(typed: str) -> dict[str, object]:
    words = typed.split()
    if len(words) not in _WINDOW_WORDS:
        expected = "expected [DAYS] START LENGTH, such as 'sat,sun 22:00 4h'"
        raise WrongUsage("--window", f"{expected}, got {typed!r}")
    *days, start, length = words
    window = given({"days": days[0].split(",") if days else None, "start": start, "length": length})
    try:
        projects.PROJECT["windows"]([window])
    except InvalidField as wrong:
        raise WrongUsage("--window", f"{typed!r}: {wrong.expected}") from None
    return window


def _show_project(project: ProjectAnswer) -> None:
    terminal.details_of(project, windows=_windows(project), blackout=_day_ranges(project.blackout))


def _day_ranges(days: Sequence[date]) -> list[str]:
    """Write sorted days as `--blackout` takes them, with ranges as FIRST/LAST."""
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


@app.verb(PROJECT, flag("--end", "End the rehearsal; the guests get normal answers again."))
def rehearsal(session: Session, name: str, end: bool) -> None:
    """Show the rehearsal of a project: who runs it, its faults, and what the guests did."""
    if end:
        ended = session.client.call("DELETE", f"{path_of('project', name)}/rehearsal", EndedRehearsalAnswer)
        session.print_reply(ended, _show_ended)
    else:
        session.print_reply(
            session.client.get(f"{path_of('project', name)}/rehearsal", RehearsalAnswer), _show_rehearsal
        )


def _show_ended(ended: EndedRehearsalAnswer) -> None:
    orders = f" Cancelled orders: {formatting.listing(ended.called_off)}." if ended.called_off else ""
    terminal.echo(f"Rehearsal ended; the guests get normal answers again.{orders}")
    _show_rehearsal(ended.rehearsal)


def _show_rehearsal(shown: RehearsalAnswer) -> None:
    terminal.details(
        [
            ("scenario", shown.scenario),
            ("run by", shown.by),
            ("since", shown.begun_at),
            ("faults", [_fault(each) for each in shown.faults]),
        ]
    )
    GUESTS.print(shown.guests)


def _fault(fault: FaultAnswer) -> str:
    machines = f" for {', '.join(fault.machines)}" if fault.machines else ""
    return f"{fault.kind}{machines}{' (on now)' if fault.on else ''}"


def _windows(project: ProjectAnswer) -> list[str]:
    return [
        f"{' '.join(window.days)} {window.start} for {format_span_briefly(window.length)}"
        for window in project.windows
    ]
