"""`forewarn rehearse`: play a scenario to guests, in a private service or on a running server."""

from collections.abc import Sequence
from datetime import timedelta
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from forewarn.cli import terminal
from forewarn.cli.command_group import CommandAfterDashes, WrongUsage, argument, flag, option
from forewarn.cli.commands.serve_commands import installed
from forewarn.cli.options import duration
from forewarn.cli.session import Session, command
from forewarn.client.replies import ADVICE, RequestRefused, ServerUnreachable

if TYPE_CHECKING:
    from forewarn.rehearsal.rehearse import RehearsalRequest
    from forewarn.rehearsal.report import RehearsalReport
    from forewarn.rehearsal.scenario import Scenario

WORDS = argument(
    "words",
    "SCENARIO... [-- COMMAND...]",
    "Files, or names from --list, played in turn. The command runs as the guest of each machine "
    "concerned, with {endpoint} and {machine} replaced.",
    nargs=-1,
)
LISTING = flag("--list list_", "Show the scenarios that come with forewarn.")
SPEED = option(
    "--speed",
    "N",
    "Run time N times as fast, instead of the speed in the scenario.",
    type=click.FloatRange(min=0.001),
)
WAIT = duration("--wait", "The real time in which every guest must poll for the first time.", default="5m")
PLAYERS = option(
    "--machine",
    "ROLE=NAME",
    "On a running server: the machine that plays a machine of the scenario. Repeatable.",
    multiple=True,
)
URL_FILE = option("--client-url-file", "FILE", "Write the endpoints to a JSON file once they answer.")
JUNIT = option("--junit", "FILE", "Write the reports to a JUnit XML file.")


@command(WORDS, LISTING, SPEED, WAIT, PLAYERS, URL_FILE, JUNIT, cls=CommandAfterDashes)
def rehearse(
    session: Session,
    words: Sequence[str],
    command: Sequence[str],
    list_: bool,
    speed: float | None,
    wait: float,
    machine: Sequence[str],
    client_url_file: str | None,
    junit: str | None,
) -> None:
    """Play a scenario to guests, and report how they reacted.

    By default the guests poll a private service. With --server or --project they poll a running server, in a
    project that has `rehearsal = true`.
    """
    if list_:
        _list(session)
        return
    if not words:
        raise WrongUsage("SCENARIO", "expected a file, or a name from --list")
    running = bool(session.server or session.project)
    _check_usage(running=running, command=command, machine=machine, url_file=client_url_file)
    make = installed("forewarn.rehearsal.rehearse").RehearsalRequest
    requests: list[RehearsalRequest] = [
        make(
            scenario=_scenario(scenario, command, speed),
            wait=timedelta(seconds=wait),
            project=session.project,
            substitutes=_players(machine),
            paced=speed is not None,
        )
        for scenario in words
    ]
    _rehearse_all(
        session,
        requests,
        running=running,
        url_file=Path(client_url_file) if client_url_file else None,
        junit_file=Path(junit) if junit else None,
    )


def _list(session: Session) -> None:
    from forewarn.rehearsal.scenario_file import all_shipped

    found = [{"name": each.name, "about": each.about, "clock": each.clock} for each in all_shipped()]
    columns = {name: itemgetter(name) for name in ("name", "clock", "about")}
    table = terminal.ItemTable[dict[str, str]](columns=columns, wraps=("about",), empty="No scenarios.")
    session.print_answer({"scenarios": found}, lambda: table.print(found))


def _check_usage(
    *, running: bool, command: Sequence[str], machine: Sequence[str], url_file: str | None
) -> None:
    if running and command:
        raise WrongUsage("COMMAND", "a running server has guests of its own")
    if running and url_file:
        raise WrongUsage("--client-url-file", "guests of a running server poll the server itself")
    if machine and not running:
        raise WrongUsage("--machine", "a private service has its own machines; use --project for others")


def _players(given: Sequence[str]) -> dict[str, str]:
    players = {}
    for each in given:
        role, _, name = each.partition("=")
        if not role or not name:
            raise WrongUsage("--machine", f"expected ROLE=NAME, such as web-0=front-3, got {each!r}")
        players[role] = name
    return players


def _scenario(name: str, command: Sequence[str], speed: float | None) -> "Scenario":
    from forewarn.core.errors import Invalid, NotFound
    from forewarn.core.text_formats import hint
    from forewarn.rehearsal.scenario_file import all_shipped, find, with_command, with_speed

    try:
        found = with_speed(find(name), speed)
    except NotFound as error:
        meant = hint(name, [each.name for each in all_shipped()]) or "; a command goes after --"
        raise Invalid(f"{error}{meant}") from None
    return with_command(found, command) if command else found


def _rehearse_all(
    session: Session,
    requests: "list[RehearsalRequest]",
    *,
    running: bool,
    url_file: Path | None,
    junit_file: Path | None,
) -> None:
    """Rehearse each scenario; an interrupt ends them all, with the reports so far."""
    from forewarn.cli.views.rehearsal_view import show_report
    from forewarn.rehearsal.report import as_json

    reports: list[RehearsalReport] = []
    for request in requests:
        report = _rehearse(session, request, running=running, url_file=url_file)
        reports.append(report)
        if not session.json:
            show_report(report)
        if report.interrupted:
            break
    if junit_file is not None:
        from forewarn.rehearsal.report import junit

        _write(junit_file, junit(reports))
    held = all(report.held for report in reports)
    if session.json:
        written = [as_json(report) for report in reports]
        # A single report keeps the form that it had before the command took several scenarios.
        terminal.print_json(written[0] if len(requests) == 1 else {"held": held, "rehearsals": written})
    if not held:
        raise click.exceptions.Exit(1)


def _rehearse(
    session: Session, request: "RehearsalRequest", *, running: bool, url_file: Path | None
) -> "RehearsalReport":
    from forewarn.cli.views.rehearsal_view import watching
    from forewarn.core.errors import ForewarnError, Unavailable
    from forewarn.rehearsal import rehearse

    try:
        with watching(request.scenario.name, to_stderr=session.json, url_file=url_file) as watcher:
            if running:
                return rehearse.rehearse_on(session.client.as_async_client(), request, watcher)
            return rehearse.rehearse(request, watcher)
    except Unavailable as error:
        raise ServerUnreachable(f"{error}\n{ADVICE}") from None
    except ForewarnError as error:
        raise RequestRefused(str(error)) from None


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RequestRefused(f"{path} cannot be written: {error.strerror}") from None
