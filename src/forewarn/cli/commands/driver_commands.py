"""`forewarn driver`: show the drivers that carry out work, and try one."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forewarn.cli import terminal
from forewarn.cli.command_group import PATH, argument, option
from forewarn.cli.commands.fleet_commands import read_file
from forewarn.cli.commands.serve_commands import installed
from forewarn.cli.session import Noun, Session
from forewarn.wire.answers.fleet_answers import DriverAnswer, FleetAnswer

if TYPE_CHECKING:
    from forewarn.server.driver_trial import TrialCallAnswer

app = Noun()

LIST = terminal.ItemTable[DriverAnswer](
    columns={
        "DRIVER": lambda driver: driver.name,
        "KIND": lambda driver: driver.kind or "",
        "HOSTS": lambda driver: driver.hosts,
        "USABLE": lambda driver: _usable(driver),
    }
)


def _usable(driver: DriverAnswer) -> str:
    if driver.installed:
        return "yes"
    waits = "its work waits" if driver.hosts or driver.why is None else ""
    return f"no: {'; '.join(filter(None, (driver.why, waits)))}"


@app.verb()
def list_(session: Session) -> None:
    """List the drivers that hosts and orders can name."""
    session.print_reply(session.client.page(DriverAnswer), lambda page: LIST.print(page.items))


@app.verb(
    argument("name", "DRIVER", "The name of the driver."),
    option("--machine", "MACHINE", "The machine to ask about.", required=True),
    option("--config", "FILE", "The settings file of the server, in TOML.", type=PATH),
    option("--fleet", "FILE", "A fleet file. Default: the fleet of the server.", type=PATH),
    option(
        "--begin",
        "WORK",
        "Really do this: freeze, reboot, redeploy, evict, terminate or start. Ctrl-C cancels it.",
    ),
    option("--to", "HOST", "The target of the machine."),
)
def try_(
    session: Session,
    name: str,
    machine: str,
    config: Path | None,
    fleet: Path | None,
    begin: str | None,
    to: str | None,
) -> None:
    """Call a driver from here as the server would, with `check` or, given --begin, with `begin`."""
    from forewarn.wire.fleet import read_fleet

    trials = installed("forewarn.server.driver_trial")
    settings = installed("forewarn.server.serve").settings_of({"config": config and str(config)})
    declared = read_file(fleet) if fleet else session.client.get("/v1/fleet", FleetAnswer).value.fleet
    step = trials.TrialStep(driver=name, machine=machine, work=trials.work_of(begin), target=to)
    trial = trials.DriverTrial(settings, read_fleet(declared), step)
    said, good = _carried_out(session, trial) if begin else _checked(trial)
    if session.json:
        terminal.print_json({"answers": [asdict(each) for each in said], "good": good})
    elif not begin:
        _show(said[0])
        terminal.echo(
            "As expected: the driver knows no such step."
            if good
            else "Expected not-begun, because this step was never begun."
        )
    if not good:
        raise click.exceptions.Exit(1)


def _checked(trial: Any) -> tuple[list["TrialCallAnswer"], bool]:
    said, good = trial.check()
    return [said], good


def _carried_out(session: Session, trial: Any) -> tuple[list["TrialCallAnswer"], bool]:
    """Show each answer as it comes; Ctrl-C cancels the step."""
    said: list[TrialCallAnswer] = []
    good = False
    try:
        for answer, done in trial.carry_out():
            good = done
            said.append(answer)
            if not session.json:
                _show(answer)
    except KeyboardInterrupt:
        said.append(trial.cancel())
        if not session.json:
            _show(said[-1])
    return said, good


def _show(answer: "TrialCallAnswer") -> None:
    detail = f": {answer.says}" if answer.says else ""
    terminal.echo(f"{answer.call:<7}{answer.state}{detail}  ({answer.seconds:g} s)")
