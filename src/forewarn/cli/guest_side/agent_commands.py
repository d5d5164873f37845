"""`forewarn agent`: the program in a machine that runs handlers and approves."""

from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from forewarn.cli import terminal
from forewarn.cli.command_group import PATH, argument, flag, option
from forewarn.cli.session import WITHIN_MACHINE, Noun, Session
from forewarn.client.replies import RequestRefused

if TYPE_CHECKING:
    from forewarn.agent.setup.agent_config import Config
    from forewarn.rehearsal.rehearse_agent import AgentReport

DEFAULT_CONFIG = Path("/etc/forewarn/agent.toml")
# The exit code for what cannot be reached: here, an agent that does not run.
NOT_THERE = 3

CONFIG_FILE = option("--config", "FILE", f"The config. Else {DEFAULT_CONFIG}.", type=PATH)
RUN = (
    CONFIG_FILE,
    flag("--dry-run", "Say what would be done, and do nothing."),
    option("--log", "FORM", "text or json, over the config."),
    option("--endpoint", "URL", "Over the config."),
    option("--machine", "NAME", "Over the config."),
    option("--journal", "FILE", "Over the config.", type=PATH),
    flag("--listen/--no-listen", "Whether to serve metrics and probes.", default=True),
    option("--speed", None, "", type=click.FloatRange(min=0.001), default=1.0, hidden=True),
)
RECIPES = terminal.ItemTable[dict[str, str]](
    columns={"name": itemgetter("name"), "about": itemgetter("about")}, wraps=("about",), empty="No recipes."
)


def agent(**typed: Any) -> None:
    """Run the agent in this machine; or look after it, with one of the commands."""
    ctx = click.get_current_context()
    if ctx.invoked_subcommand is None:
        _run(**typed)
    else:
        _pass_on(ctx, ctx.invoked_subcommand)


app = Noun(RUN, shared=WITHIN_MACHINE, callback=agent, invoke_without_command=True, no_args_is_help=False)


def _pass_on(ctx: click.Context, verb: str) -> None:
    """Let a config that stands before a command count for it; what only runs of the agent know does not."""
    typed = {name: value for name, value in ctx.params.items() if _is_typed(ctx, name)}
    takes = {param.name for param in app.commands[verb].params}
    if not typed.keys() <= takes:
        raise click.BadParameter(f"give options after the command: forewarn agent {verb} …")
    ctx.default_map = {verb: typed}


def _is_typed(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE


@app.verb(*RUN, shared=())
def run(_: Session, **typed: Any) -> None:
    """Run the agent."""
    _run(**typed)


def _run(*, config: Path | None, log: str | None, **typed: Any) -> None:
    """Become the agent: the same process, without what the command line has loaded."""
    if log not in (None, "text", "json"):
        raise click.BadParameter("expected text or json", param_hint="--log")
    import json
    import sys

    from forewarn.platform import system

    options = {"config": config or DEFAULT_CONFIG, "log": log, **typed}
    written = json.dumps({name: value for name, value in options.items() if value is not None}, default=str)
    # -P: what lies in the working directory is no part of it.
    words = [sys.executable, "-P", "-m", "forewarn.agent", written]
    system.become(words)
    # Not every system can.
    from forewarn.agent.__main__ import main

    main(written)


@app.verb(CONFIG_FILE)
def check(session: Session, config: Path | None) -> None:
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
        raise click.exceptions.Exit(1)


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


@app.verb(CONFIG_FILE)
def status(session: Session, config: Path | None) -> None:
    """Show what the agent is doing, and for how long."""
    from forewarn.agent.setup.agent_config import load_settings
    from forewarn.cli.guest_side.agent_status import asked, from_journal, show

    settings = load_settings(config or DEFAULT_CONFIG)
    found = asked(settings) or from_journal(settings)
    session.print_answer(found, lambda: show(found))
    if not found["running"]:
        raise click.exceptions.Exit(NOT_THERE)


@app.verb(
    argument("file", "[FILE]", "Where to write it.", type=PATH, default=Path("agent.toml")),
    option("--recipe", "NAME", "What to start from; --list shows all.", default="log"),
    flag("--list list_", "Show the recipes."),
    flag("--force", "Write over a file that is there."),
)
def init(session: Session, file: Path, recipe: str, list_: bool, force: bool) -> None:
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


@app.verb(
    argument("scenario", "SCENARIO", "As redeploy; `forewarn rehearse --list` shows all."),
    CONFIG_FILE,
    option(
        "--speed", "N", "How fast time runs; else as the scenario says.", type=click.FloatRange(min=0.001)
    ),
    flag("--kill/--no-kill", "Do it again, with the agent killed half-way.", default=True),
    flag("--verbose -v", "Show what the agent says."),
)
def rehearse(
    session: Session, scenario: str, config: Path | None, speed: float | None, kill: bool, verbose: bool
) -> None:
    """Run this machine's own config through an event, in a private service; handlers really run."""
    from forewarn.cli.views.rehearsal_view import as_json, show, stories

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
        raise click.exceptions.Exit(1)


def _loaded(path: Path | None) -> "tuple[Path, Config]":
    from forewarn.agent.setup.agent_config import load

    return path or DEFAULT_CONFIG, load(path or DEFAULT_CONFIG)
