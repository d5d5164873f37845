"""How the rehearsal of an agent is shown."""

import sys
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forewarn.cli import terminal
from forewarn.cli.views.rehearsal_view import line_of
from forewarn.client.replies import RequestRefused
from forewarn.core.moments import format_span_briefly

if TYPE_CHECKING:
    from forewarn.rehearsal.rehearse_agent import AgentReport


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
