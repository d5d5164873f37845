"""How commands show a rehearsal: live or in lines while it runs, with a report at the end."""

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

# The latest lines, below the table of machines.
LINES = 12
REDRAWN = 8  # times a second

Row = tuple["GuestReport", "GuestEvent | None"]


def _of_event(show: "Callable[[GuestEvent], float | None]", *, head: str = "") -> Callable[[Row], str | None]:
    """Return a column that shows a number of seconds of the event."""

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
    """Print the progress in lines."""

    def __init__(self, *, to_stderr: bool, url_file: Path | None) -> None:
        self._stream = sys.stderr if to_stderr else sys.stdout
        self._url_file = url_file

    def opened(
        self,
        opening: "RehearsalSetup",
        accounts: "Mapping[str, GuestAccount]",
        elapsed: Callable[[], timedelta],
    ) -> None:
        """Print the endpoints that the guests should poll."""
        if self._url_file is not None:
            _write(self._url_file, opening.endpoints)
        for line in prologue(opening):
            self._print(line)

    def noted(self, at: timedelta, who: str, what: str) -> None:
        """Print an occurrence."""
        self._print(line_of(at, who, what))

    def _print(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


class RehearsalScreen(RehearsalPrinter):
    """Draw the machines and the latest lines."""

    def __init__(self, name: str, *, url_file: Path | None) -> None:
        super().__init__(to_stderr=False, url_file=url_file)
        self._name = name
        self._accounts: Mapping[str, GuestAccount] = {}
        self._elapsed: Callable[[], timedelta] = timedelta
        self._lines: deque[str] = deque(maxlen=LINES)

    def opened(
        self,
        opening: "RehearsalSetup",
        accounts: "Mapping[str, GuestAccount]",
        elapsed: Callable[[], timedelta],
    ) -> None:
        """Print the endpoints, and begin to draw."""
        super().opened(opening, accounts, elapsed)
        self._accounts, self._elapsed = accounts, elapsed

    def noted(self, at: timedelta, who: str, what: str) -> None:
        """Add a line."""
        self._lines.append(line_of(at, who, what))

    def drawn(self) -> "RenderableType":
        """Draw the current state."""
        from rich.text import Text

        from forewarn.cli.tables import clip

        passed = format_span_briefly(self._elapsed().total_seconds())
        lines = [Text(f"{self._name}, {passed}", style="bold"), *PLAYERS.lines(list(self._accounts.values()))]
        happened = [clip(Text(line), terminal.width()) for line in list(self._lines)]
        return Text("\n").join([*lines, Text(), *happened])


@contextmanager
def watching(name: str, *, to_stderr: bool, url_file: Path | None) -> Iterator[RehearsalPrinter]:
    """Show a rehearsal while it runs."""
    if to_stderr or not terminal.is_terminal():
        yield RehearsalPrinter(to_stderr=to_stderr, url_file=url_file)
        return
    from rich.live import Live

    screen = RehearsalScreen(name, url_file=url_file)
    with Live(get_renderable=screen.drawn, refresh_per_second=REDRAWN):
        yield screen


def _write(path: Path, endpoints: Mapping[str, str]) -> None:
    """Write the endpoints at once, because a program may wait for the file to appear."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(json.dumps(endpoints, indent=2) + "\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise RequestRefused(f"{path} cannot be written: {error.strerror}") from None


def prologue(opening: "RehearsalSetup") -> list[str]:
    """Return lines with the scenario, the endpoints and the expected duration."""
    scenario, concerned = opening.scenario, opening.scenario.expect.machines
    where = f" in project {opening.project}" if opening.project else ""
    width = max(len(name) for name in opening.places)
    guests = formatting.listing(list(concerned))
    has = "has" if len(concerned) == 1 else "have"
    probes = {0: "", 1: " and the probe succeeds"}.get(len(scenario.probes), " and all probes succeed")
    begins = "now" if scenario.start == "now" else f"when {guests} {has} polled{probes}"
    return [
        f"Rehearsing {scenario.name}{where} (clock {opening.clock}). {scenario.about}",
        *(f"  {name:{width}}  {place}" for name, place in opening.places.items()),
        f"Guests poll these endpoints. The scenario begins {begins}.",
        *_takes(opening),
    ]


def _takes(opening: "RehearsalSetup") -> list[str]:
    if opening.unanswered is None:
        return []
    takes = format_span_briefly(opening.unanswered.total_seconds())
    return [f"Without approvals it then takes about {takes}."]


def line_of(at: timedelta, who: str, what: str) -> str:
    """Return a line about an occurrence."""
    return f"{format_span_briefly(at.total_seconds()):>10}  {who:10}  {what}"


def show_report(report: "RehearsalReport") -> None:
    """Show what each guest did, and whether that was expected."""
    terminal.echo()
    GUESTS.print(
        (guest, event)
        for guest in report.guests
        for event in (*(event for event in guest.events if event.named),) or (None,)
    )
    terminal.echo()
    for probe in report.probes:
        terminal.echo(f"  probe {probe.name}: {_probe(probe)}")
    for failure in report.failures:
        terminal.echo(f"  {failure}")
    lasted = format_span_briefly(report.lasted_seconds)
    terminal.echo(f"{report.scenario}: {'as expected' if report.held else 'not as expected'}, after {lasted}")


def _probe(probe: "ProbeReport") -> str:
    if not probe.looks:
        return "never tried"
    wanted = (
        "expected to succeed throughout"
        if probe.back_within_seconds is None
        else f"expected to be back within {format_span_briefly(probe.back_within_seconds)}"
    )
    if not probe.outages:
        return f"succeeded throughout ({wanted}; {probe.looks} tries)"
    times = "once" if probe.outages == 1 else f"{probe.outages} times"
    longest = format_span_briefly(probe.longest_outage_seconds)
    end = "" if probe.holds else ", and still fails at the end"
    return f"failed {times}, for {longest} at most{end} ({wanted}; {probe.looks} tries): {probe.why}"


def run_agent_rehearsal(
    scenario: str, *, config: Path, speed: float | None, killed: bool, verbose: bool
) -> "AgentReport":
    """Run a rehearsal of the agent, with its progress on stderr."""
    try:
        from forewarn.rehearsal.rehearse_agent import rehearse_agent
        from forewarn.rehearsal.scenario_file import find, with_speed
    except ModuleNotFoundError as error:
        raise RequestRefused(
            f"a rehearsal needs the server, which is not installed ({error.name} is missing)\n"
            "Install it with `pip install 'forewarn[server]'`, here or on a laptop with the same config."
        ) from None

    def note(at: timedelta, who: str, what: str) -> None:
        if verbose or not what.startswith("|"):
            print(line_of(at, who, what), file=sys.stderr, flush=True)

    found = with_speed(find(scenario), speed)
    return rehearse_agent(found, config=config.absolute(), killed=killed, note=note)


def show(report: "AgentReport") -> None:
    """Show the timeline of a rehearsal."""
    terminal.echo()
    if report.killing and not report.killed:
        terminal.echo("The agent was not killed, because no handler had started.")
    title = "Timeline with a killed agent" if report.killed else "Timeline"
    terminal.echo(f"{title}, in service time since the scenario began:")
    for story in report.stories:
        terminal.echo(f"{story.machine}, {story.type}")
        for moment in story.moments:
            terminal.echo(f"{format_span_briefly(moment.at):>10}  {moment.what}")
    for line in (*report.failures, *report.remarks):
        terminal.echo_wrapped(line, indent="  ", hanging="    ")
    terminal.echo("Not as expected." if report.failures else "As expected.")


def as_json(report: "AgentReport") -> dict[str, Any]:
    """Return the report as JSON."""
    return {**asdict(report), "as_expected": not report.failures}
