"""`forewarn agent`: the program in a machine that runs handlers and approves."""

from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forewarn.cli import terminal
from forewarn.cli.command_group import CommandGroup
from forewarn.cli.session import Session, within_machine
from forewarn.client.replies import RequestRefused

if TYPE_CHECKING:
    from forewarn.agent.setup.agent_config import Config
    from forewarn.rehearsal.rehearse_agent import AgentReport

DEFAULT_CONFIG = Path("/etc/forewarn/agent.toml")
# The exit code for what cannot be reached: here, an agent that does not run.
NOT_THERE = 3

app = CommandGroup(invoke_without_command=True)

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help=f"The config. Else {DEFAULT_CONFIG}.", show_default=False),
]
RECIPES = terminal.ItemTable[dict[str, str]](
    columns={"name": itemgetter("name"), "about": itemgetter("about")}, wraps=("about",), empty="No recipes."
)
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
Log = Annotated[
    str | None, typer.Option(metavar="FORM", help="text or json, over the config.", show_default=False)
]
Endpoint = Annotated[str | None, typer.Option(metavar="URL", help="Over the config.", show_default=False)]
Machine = Annotated[str | None, typer.Option(metavar="NAME", help="Over the config.", show_default=False)]
JournalFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Over the config.", show_default=False)
]
Listen = Annotated[bool, typer.Option(help="Whether to serve metrics and probes.")]
Speed = Annotated[float, typer.Option(hidden=True, min=0.001)]


@app.callback()
def agent(
    ctx: typer.Context,
    config: ConfigFile = None,
    dry_run: DryRun = False,
    log: Log = None,
    endpoint: Endpoint = None,
    machine: Machine = None,
    journal: JournalFile = None,
    listen: Listen = True,
    speed: Speed = 1.0,
) -> None:
    """Run the agent in this machine; or look after it, with one of the commands."""
    if ctx.invoked_subcommand is None:
        run(config, dry_run, log, endpoint, machine, journal, listen, speed)
    else:
        _pass_on(ctx, ctx.invoked_subcommand)


def _pass_on(ctx: typer.Context, command: str) -> None:
    """Let a config that stands before a command count for it; what only runs of the agent know does not."""
    options = {param.name: param.default for param in ctx.command.params}
    given = {name: value for name, value in ctx.params.items() if value != options[name]}
    takes = {param.name for param in ctx.command.get_command(ctx, command).params}  # type: ignore[attr-defined]
    if not given.keys() <= takes:
        raise typer.BadParameter(f"give options after the command: forewarn agent {command} …")
    ctx.default_map = {command: given}


@app.command("run")
def run(
    config: ConfigFile = None,
    dry_run: DryRun = False,
    log: Log = None,
    endpoint: Endpoint = None,
    machine: Machine = None,
    journal: JournalFile = None,
    listen: Listen = True,
    speed: Speed = 1.0,
) -> None:
    """Run the agent."""
    if log not in (None, "text", "json"):
        raise typer.BadParameter("expected text or json", param_hint="--log")
    _run(
        config=config or DEFAULT_CONFIG,
        dry_run=dry_run,
        log=log,
        endpoint=endpoint,
        machine=machine,
        journal=journal,
        listen=listen,
        speed=speed,
    )


def _run(**options: Any) -> None:
    """Become the agent: the same process, without what the command line has loaded."""
    import json
    import sys

    from forewarn.platform import system

    written = json.dumps({name: value for name, value in options.items() if value is not None}, default=str)
    # -P: what lies in the working directory is no part of it.
    words = [sys.executable, "-P", "-m", "forewarn.agent", written]
    system.become(words)
    # Not every system can.
    from forewarn.agent.__main__ import main

    main(written)


@app.command("check")
@within_machine
def check(session: Session, config: ConfigFile = None) -> None:
    """Validate a config, and say what it would do for each type of event."""
    from dataclasses import asdict

    from forewarn.agent.setup.summary import explain, preflight, problems

    path, found = _loaded(config)
    looked = preflight(found.agent)
    wrong, remarks = [*problems(found), *looked.problems], [*found.remarks, *looked.remarks]
    types = [asdict(each) for each in explain(found)]
    session.print_answer(
        {"config": str(path), "types": types, "problems": wrong, "remarks": remarks},
        lambda: _show_check(path, found, wrong, remarks),
    )
    if wrong:
        raise typer.Exit(1)


def _show_check(path: Path, config: "Config", wrong: list[str], remarks: list[str]) -> None:
    from forewarn.agent.setup.summary import (
        explain,
        grouped,
        recovery_times,
        short_notice_warning,
        surroundings,
    )

    for line in (*surroundings(config.agent), recovery_times(config)):
        terminal.fold(line)
    for alike in grouped(explain(config)):
        each = alike[0]
        terminal.echo(f"\n{', '.join(each.type for each in alike)}")
        for side, lines in (
            ("prepare", each.prepare or ("nothing",)),
            ("approve", (each.approve,)),
            ("recover", each.recover or ("nothing",)),
        ):
            for line in lines:
                terminal.fold(line, indent=f"  {side}  ", hanging=" " * 11)
        if late := short_notice_warning(alike):
            terminal.fold(late, indent="  but      ", hanging=" " * 11)
    _show_lines("To be known:", remarks)
    _show_lines("In this machine stands in the way:", wrong)
    terminal.echo(f"\n{path} " + ("would not work here." if wrong else "is sound."))


def _show_lines(head: str, lines: list[str]) -> None:
    if lines:
        terminal.echo(f"\n{head}")
    for line in lines:
        terminal.fold(line, indent="  ", hanging="    ")


@app.command("status")
@within_machine
def status(session: Session, config: ConfigFile = None) -> None:
    """Show what the agent is doing, and for how long."""
    from forewarn.agent.setup.agent_config import load_settings
    from forewarn.cli.guest_side.agent_status import asked, from_journal, show

    settings = load_settings(config or DEFAULT_CONFIG)
    found = asked(settings) or from_journal(settings)
    session.print_answer(found, lambda: show(found))
    if not found["running"]:
        raise typer.Exit(NOT_THERE)


@app.command("init")
@within_machine
def init(
    session: Session,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Where to write it.", show_default=True)
    ] = Path("agent.toml"),
    recipe: Annotated[
        str, typer.Option(metavar="NAME", help="What to start from; --list shows all.")
    ] = "log",
    list_: Annotated[bool, typer.Option("--list", help="Show the recipes.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write a config to start from, and beside it the programs that it runs."""
    from forewarn.agent.setup.recipe import about, names, placed, programs

    if list_:
        found = [{"name": name, "about": about(name)} for name in names()]
        session.print_answer({"recipes": found}, lambda: RECIPES.print(found))
        return
    config, others = placed(recipe, file.resolve().parent), programs(recipe)
    if file.is_dir():
        raise RequestRefused(f"{file} is a folder: name the file to write, as {file / 'agent.toml'}")
    beside = [file.with_name(name) for name in others]
    if not force and (there := next((path for path in (file, *beside) if path.exists()), None)):
        raise RequestRefused(f"{there} cannot be written: File exists; --force writes over it")
    _write(file, config)
    for path, content in zip(beside, others.values(), strict=True):
        _write(path, content, mode=0o755)
    also = f", and the programs it runs: {', '.join(map(str, beside))}" if beside else ""
    session.print_answer(
        {"file": str(file), "recipe": recipe, "programs": [str(path) for path in beside]},
        lambda: terminal.echo(
            f"Written to {file}{also}. Next: `{session.command(f'agent check --config {file}')}`."
        ),
    )


def _write(path: Path, content: str, *, mode: int | None = None) -> None:
    try:
        path.write_text(content, encoding="utf-8")
        if mode is not None:
            path.chmod(mode)
    except FileNotFoundError:
        raise RequestRefused(f"{path} cannot be written: there is no folder {path.parent}") from None
    except OSError as error:
        raise RequestRefused(f"{path} cannot be written: {error.strerror}") from None


@app.command("rehearse")
@within_machine
def rehearse(
    session: Session,
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO", help="As redeploy; `forewarn rehearse --list` shows all.", show_default=False
        ),
    ],
    config: ConfigFile = None,
    speed: Annotated[
        float | None,
        typer.Option(metavar="N", min=0.001, help="How fast time runs; else as the scenario says."),
    ] = None,
    kill: Annotated[bool, typer.Option(help="Do it again, with the agent killed half-way.")] = True,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what the agent says.")] = False,
) -> None:
    """Run this machine's own config through an event, in a private service; handlers really run."""
    from forewarn.cli.guest_side.agent_rehearsal import as_json, show, stories

    path, _ = _loaded(config)
    reports: list[AgentReport] = []
    for killed in (False, True) if kill else (False,):
        report = stories(scenario, config=path, speed=speed, killed=killed, verbose=verbose)
        reports.append(report)
        if not session.json:
            show(report)
    if session.json:
        terminal.print_json({"rehearsals": [as_json(report) for report in reports]})
    if any(report.failures for report in reports):
        raise typer.Exit(1)


def _loaded(path: Path | None) -> "tuple[Path, Config]":
    from forewarn.agent.setup.agent_config import load

    return path or DEFAULT_CONFIG, load(path or DEFAULT_CONFIG)
