"""`forewarn rehearse`: a scenario in a private service, for guests that want to practise."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forewarn.cli import console
from forewarn.cli.client import Refused
from forewarn.cli.session import Session, with_session

if TYPE_CHECKING:
    from forewarn.rehearsal.scenario import Scenario

ELSEWHERE = (
    "a rehearsal runs in a private service of its own, not on a running server\n"
    "Leave --server and --project out."
)

Name = Annotated[
    str | None,
    typer.Argument(metavar="SCENARIO", help="A file, or a name that --list shows.", show_default=False),
]
Command = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- COMMAND...]",
        help="Run as the guest of each machine concerned; {endpoint} and {machine} are filled in.",
        show_default=False,
    ),
]
Listing = Annotated[bool, typer.Option("--list", help="Show the scenarios that come with forewarn.")]
Speed = Annotated[
    float | None,
    typer.Option(
        metavar="N",
        min=0.001,
        help="Let time run N times as fast, whatever the scenario says; 1 is real time.",
        show_default=False,
    ),
]
UrlFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Write the endpoints to a file, as JSON, once they answer.",
        show_default=False,
    ),
]


@with_session
def rehearse(
    session: Session,
    scenario: Name = None,
    command: Command = None,
    list_: Listing = False,
    speed: Speed = None,
    client_url_file: UrlFile = None,
) -> None:
    """Rehearse what a fleet may do to its guests, and report what they made of it."""
    if session.server or session.project:
        raise Refused(ELSEWHERE)
    if list_:
        _list(session)
        return
    if scenario is None:
        raise typer.BadParameter("expected a file, or a name that --list shows", param_hint="SCENARIO")
    _rehearse(session, _scenario(scenario, command or [], speed), client_url_file)


def _list(session: Session) -> None:
    from forewarn.rehearsal.shipped import all_shipped

    found = [{"name": each.name, "about": each.about, "clock": each.clock} for each in all_shipped()]
    layout = console.Layout(columns=("name", "clock", "about"), wraps=("about",))
    rows = [(each["name"], each["clock"], each["about"]) for each in found]
    session.answer({"scenarios": found}, lambda: console.table(layout, rows, empty="No scenarios."))


def _scenario(name: str, command: list[str], speed: float | None) -> "Scenario":
    from forewarn.core.errors import ForewarnError, NotFound
    from forewarn.rehearsal.reading import with_command, with_speed
    from forewarn.rehearsal.shipped import find

    try:
        found = find(name)
        if speed is not None:
            found = with_speed(found, "system" if speed == 1 else f"x{speed:g}")
    except ForewarnError as error:
        console.complain(str(error))
        raise typer.Exit(1 if isinstance(error, NotFound) else 2) from None
    return with_command(found, command) if command else found


def _rehearse(session: Session, scenario: "Scenario", url_file: str | None) -> None:
    from forewarn.cli.rehearsal_view import show_report, watching
    from forewarn.core.errors import ForewarnError

    try:
        from forewarn.rehearsal.program import rehearse as run
        from forewarn.rehearsal.report import as_json
    except ModuleNotFoundError as error:
        console.complain(
            f"the server is not installed ({error.name} is missing)\n"
            "Install it with `pip install 'forewarn[server]'`."
        )
        raise typer.Exit(1) from None
    try:
        with watching(
            scenario, beside=session.json, url_file=Path(url_file) if url_file else None
        ) as watcher:
            report = run(scenario, watcher)
    except ForewarnError as error:
        console.complain(str(error))
        raise typer.Exit(1) from None
    session.answer(as_json(report), lambda: show_report(report))
    if not report.held:
        raise typer.Exit(1)
