"""How a rehearsal is shown: drawn while it runs, or printed in lines, and a report at the end."""

import json
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forewarn.cli import formatting, terminal
from forewarn.client.replies import RequestRefused
from forewarn.core.time_formats import format_span_briefly

if TYPE_CHECKING:
    from rich.console import RenderableType

    from forewarn.core.rehearsal_ledger import GuestAccount
    from forewarn.rehearsal.rehearse import RehearsalSetup
    from forewarn.rehearsal.rehearse_agent import AgentReport
    from forewarn.rehearsal.report import GuestEvent, GuestReport, ProbeReport, RehearsalReport

# The latest of what happened, below the table of machines.
LINES = 12
REDRAWN = 8  # times a second

Row = tuple["GuestReport", "GuestEvent | None"]  # a guest, and an event of its machine


def _of_event(show: "Callable[[GuestEvent], float | None]", *, head: str = "") -> Callable[[Row], str | None]:
    """Show a number of seconds of a row's event, if it has one."""

    def written(row: Row) -> str | None:
        seconds = None if row[1] is None else show(row[1])
        return None if seconds is None else f"{head}{format_span_briefly(seconds)}"

    return written


GUESTS = terminal.ItemTable[Row](
    columns={
        "machine": lambda row: row[0].machine,
        "polls": lambda row: row[0].polls,
        "spoiled": lambda row: row[0].spoiled,
        "event": lambda row: row[1] and row[1].type,
        "announced after": _of_event(lambda event: event.announced_seconds),
        "seen after": _of_event(lambda event: event.after_announcement(event.seen_seconds)),
        "approved": _of_event(lambda event: event.after_announcement(event.approved_seconds), head="after "),
        "notice": _of_event(lambda event: event.notice_seconds),
        "used": _of_event(lambda event: event.used_seconds),
    },
    spare=("spoiled", "announced after"),
    empty="No guest polled.",
)


PLAYERS = terminal.ItemTable["GuestAccount"](
    columns={
        "machine": lambda account: account.machine,
        "polls": lambda account: account.polls,
        "spoiled": lambda account: account.spoiled,
        "sees now": lambda account: len(account.listed),
        "approved": lambda account: len(account.approved),
    },
    spare=("spoiled",),
)


class RehearsalPrinter:
    """Prints what happens, in lines."""

    def __init__(self, *, beside: bool, url_file: Path | None) -> None:
        """Take whether to print to stderr, because a program reads the output."""
        self._stream = sys.stderr if beside else sys.stdout
        self._url_file = url_file

    def opened(
        self, opening: "RehearsalSetup", accounts: "Mapping[str, GuestAccount]", elapsed: Callable[[], timedelta]
    ) -> None:
        """Print where the guests should poll."""
        if self._url_file is not None:
            _write(self._url_file, opening.endpoints)
        for line in prologue(opening):
            self._say(line)

    def noted(self, at: timedelta, who: str, what: str) -> None:
        """Print what has happened."""
        self._say(line_of(at, who, what))

    def _say(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


class RehearsalScreen(RehearsalPrinter):
    """Draws the machines as they stand, and the latest of what happened."""

    def __init__(self, name: str, *, url_file: Path | None) -> None:
        super().__init__(beside=False, url_file=url_file)
        self._name = name
        self._accounts: Mapping[str, GuestAccount] = {}
        self._elapsed: Callable[[], timedelta] = timedelta
        self._lines: deque[str] = deque(maxlen=LINES)

    def opened(
        self, opening: "RehearsalSetup", accounts: "Mapping[str, GuestAccount]", elapsed: Callable[[], timedelta]
    ) -> None:
        """Print where the guests should poll, and begin to draw."""
        super().opened(opening, accounts, elapsed)
        self._accounts, self._elapsed = accounts, elapsed

    def noted(self, at: timedelta, who: str, what: str) -> None:
        """Add a line to the drawing."""
        self._lines.append(line_of(at, who, what))

    def drawn(self) -> "RenderableType":
        """Draw the present state."""
        from rich.text import Text

        from forewarn.cli.tables import clip

        passed = format_span_briefly(self._elapsed().total_seconds())
        lines = [Text(f"{self._name}, {passed}", style="bold"), *PLAYERS.lines(list(self._accounts.values()))]
        happened = [clip(Text(line), terminal.width()) for line in list(self._lines)]
        return Text("\n").join([*lines, Text(), *happened])


@contextmanager
def watching(name: str, *, beside: bool, url_file: Path | None) -> Iterator[RehearsalPrinter]:
    """Show a rehearsal while it runs."""
    if beside or not terminal.is_terminal():
        yield RehearsalPrinter(beside=beside, url_file=url_file)
        return
    from rich.live import Live

    screen = RehearsalScreen(name, url_file=url_file)
    with Live(get_renderable=screen.drawn, refresh_per_second=REDRAWN):
        yield screen


def _write(path: Path, endpoints: Mapping[str, str]) -> None:
    """Write the endpoints whole: a program may be waiting for the file to appear."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(json.dumps(endpoints, indent=2) + "\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise RequestRefused(f"{path} cannot be written: {error.strerror}") from None


def prologue(opening: "RehearsalSetup") -> list[str]:
    """Write what is rehearsed, where the guests should poll, and how long it may take."""
    scenario, concerned = opening.scenario, opening.scenario.expect.machines
    where = f" in project {opening.project}" if opening.project else ""
    width = max(len(name) for name in opening.places)
    awaited = formatting.listing(list(concerned))
    has = "has" if len(concerned) == 1 else "have"
    well = {0: "", 1: " and the probe holds"}.get(len(scenario.probes), " and all probes hold")
    began = "now" if scenario.start == "now" else f"when {awaited} {has} polled{well}"
    return [
        f"Rehearsing {scenario.name}{where} (clock {opening.clock}). {scenario.about}",
        *(f"  {name:{width}}  {place}" for name, place in opening.places.items()),
        f"Guests poll there. The scenario begins {began}.",
        *_takes(opening),
    ]


def _takes(opening: "RehearsalSetup") -> list[str]:
    if opening.unanswered is None:
        return []
    takes = format_span_briefly(opening.unanswered.total_seconds())
    return [f"If nobody approves, it takes about {takes} from then on."]


def line_of(at: timedelta, who: str, what: str) -> str:
    """Write a line about something that happened."""
    return f"{format_span_briefly(at.total_seconds()):>10}  {who:10}  {what}"


def show_report(report: "RehearsalReport") -> None:
    """Show what each guest did, and whether that was what was expected."""
    terminal.echo()
    GUESTS.print(row for guest in report.guests for row in _rows(guest))
    terminal.echo()
    for probe in report.probes:
        terminal.echo(f"  probe {probe.name}: {_probe(probe)}")
    for failure in report.failures:
        terminal.echo(f"  {failure}")
    lasted = format_span_briefly(report.lasted_seconds)
    terminal.echo(f"{report.scenario}: {'as expected' if report.held else 'not as expected'}, after {lasted}")


def _probe(probe: "ProbeReport") -> str:
    if not probe.looks:
        return "never looked at"
    wanted = (
        "to hold throughout"
        if probe.back_within_seconds is None
        else f"to be back within {format_span_briefly(probe.back_within_seconds)}"
    )
    if not probe.outages:
        return f"held throughout ({wanted}; {probe.looks} looks)"
    times = "once" if probe.outages == 1 else f"{probe.outages} times"
    longest = format_span_briefly(probe.longest_outage_seconds)
    end = "" if probe.holds else ", and does not hold in the end"
    return f"failed {times}, for {longest} at most{end} ({wanted}; {probe.looks} looks): {probe.why}"


def _rows(guest: "GuestReport") -> list[Row]:
    return [(guest, event) for event in guest.events if event.named] or [(guest, None)]


def stories(
    scenario: str, *, config: Path, speed: float | None, killed: bool, verbose: bool
) -> "AgentReport":
    """Rehearse; shows on stderr how far it is."""
    try:
        from forewarn.rehearsal.rehearse_agent import rehearse_agent
        from forewarn.rehearsal.scenario_file import find, with_speed
    except ModuleNotFoundError as error:
        raise RequestRefused(
            f"a rehearsal runs a private service, and the server is not installed ({error.name} is missing)\n"
            "Install it with `pip install 'forewarn[server]'`, here or on a laptop with the same config."
        ) from None

    def note(at: timedelta, who: str, what: str) -> None:
        if verbose or not what.startswith("|"):
            print(line_of(at, who, what), file=sys.stderr, flush=True)

    found = with_speed(find(scenario), speed)
    return rehearse_agent(found, config=config.absolute(), killed=killed, note=note)


def show(report: "AgentReport") -> None:
    """Show what happened when."""
    terminal.echo()
    if report.killing and not report.killed:
        terminal.echo("The agent was not killed: no handler had begun, so that nothing was half-way.")
    whose = "With the agent killed half-way" if report.killed else "What happened"
    terminal.echo(f"{whose}, in the service's time since the scenario began:")
    for story in report.stories:
        terminal.echo(f"{story.machine}, {story.type}")
        for moment in story.moments:
            terminal.echo(f"{format_span_briefly(moment.at):>10}  {moment.what}")
    for line in (*report.failures, *report.remarks):
        terminal.fold(line, indent="  ", hanging="    ")
    terminal.echo("Not as it should be." if report.failures else "As it should be.")


def as_json(report: "AgentReport") -> dict[str, Any]:
    """Write what happened for a program."""
    return {**asdict(report), "as_expected": not report.failures}
