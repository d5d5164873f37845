"""`forewarn agent`: the program in a machine that runs handlers and approves events."""

from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from forewarn.cli import terminal
from forewarn.cli.command_group import PATH, WrongUsage, argument, flag, option
from forewarn.cli.session import WITHIN_MACHINE, Noun, Session
from forewarn.client.replies import RequestRefused

if TYPE_CHECKING:
    from forewarn.agent.setup.agent_config import Config
    from forewarn.rehearsal.rehearse_agent import AgentReport

DEFAULT_CONFIG = Path("/etc/forewarn/agent.toml")
# The exit code 3, unreachable, for an agent that does not run.
NOT_RUNNING = 3

CONFIG_FILE = option("--config", "FILE", f"The config. Default: {DEFAULT_CONFIG}.", type=PATH)
RUN = (
    CONFIG_FILE,
    flag("--dry-run", "Log the actions, and do nothing."),
    option("--log", "FORM", "The log format, text or json. Overrides the config."),
    option("--endpoint", "URL", "The endpoint. Overrides the config."),
    option("--machine", "NAME", "The name of this machine. Overrides the config."),
    option("--journal", "FILE", "The journal. Overrides the config.", type=PATH),
    flag("--listen/--no-listen", "Serve metrics and probes.", default=True),
    option("--speed", None, "", type=click.FloatRange(min=0.001), default=1.0, hidden=True),
)
RECIPES = terminal.ItemTable[dict[str, str]](
    columns={"name": itemgetter("name"), "about": itemgetter("about")}, wraps=("about",), empty="No recipes."
)


def agent(**typed: Any) -> None:
    """Run the agent in this machine, or run one of the commands."""
    ctx = click.get_current_context()
    if ctx.invoked_subcommand is None:
        _run(**typed)
    else:
        _pass_on(ctx, ctx.invoked_subcommand)


app = Noun(RUN, shared=WITHIN_MACHINE, callback=agent, invoke_without_command=True, no_args_is_help=False)


def _pass_on(ctx: click.Context, verb: str) -> None:
    """Pass options that stand before a command on to it, if it takes them."""
    source = ctx.get_parameter_source
    typed = {name: value for name, value in ctx.params.items() if source(name) is ParameterSource.COMMANDLINE}
    takes = {param.name for param in app.commands[verb].params}
    if not typed.keys() <= takes:
        raise click.BadParameter(f"put options after the command: forewarn agent {verb} …")
    ctx.default_map = {verb: typed}


@app.verb(*RUN, shared=())
def run(_: Session, **typed: Any) -> None:
    """Run the agent."""
    _run(**typed)


def _run(*, config: Path | None, log: str | None, **typed: Any) -> None:
    """Replace this process with the agent, without the modules of the command line."""
    if log not in (None, "text", "json"):
        raise WrongUsage("--log", "expected text or json")
    import json
    import sys

    from forewarn.platform import system

    options = {"config": config or DEFAULT_CONFIG, "log": log, **typed}
    written = json.dumps({name: value for name, value in options.items() if value is not None}, default=str)
    # -P: import nothing from the working directory.
    words = [sys.executable, "-P", "-m", "forewarn.agent", written]
    system.become(words)
    # Not every system can replace a process.
    from forewarn.agent.__main__ import main

    main(written)


@app.verb(CONFIG_FILE)
def check(session: Session, config: Path | None) -> None:
    """Validate a config, and show what the agent would do for each type of event."""
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
        terminal.echo_wrapped(line)
    for same in grouped(explain(config)):
        each = same[0]
        terminal.echo(f"\n{', '.join(each.type for each in same)}")
        for side, lines in (
            ("prepare", each.prepare or ("nothing",)),
            ("approve", (each.approve,)),
            ("recover", each.recover or ("nothing",)),
        ):
            for line in lines:
                terminal.echo_wrapped(line, indent=f"  {side}  ", hanging=" " * 11)
        if late := short_notice_warning(same):
            terminal.echo_wrapped(late, indent="  but      ", hanging=" " * 11)
    _show_lines("Remarks:", remarks)
    _show_lines("Problems in this machine:", wrong)
    terminal.echo(f"\n{path} " + ("would not work here." if wrong else "is valid."))


def _show_lines(head: str, lines: list[str]) -> None:
    if lines:
        terminal.echo(f"\n{head}")
    for line in lines:
        terminal.echo_wrapped(line, indent="  ", hanging="    ")


@app.verb(CONFIG_FILE)
def status(session: Session, config: Path | None) -> None:
    """Show what the agent is doing, and for how long."""
    from forewarn.agent.setup.agent_config import load_settings
    from forewarn.cli.guest_side.agent_status import ask, from_journal, show

    settings = load_settings(config or DEFAULT_CONFIG)
    found = ask(settings) or from_journal(settings)
    session.print_answer(found, lambda: show(found))
    if not found["running"]:
        raise click.exceptions.Exit(NOT_RUNNING)


@app.verb(
    argument("file", "[FILE]", "The file to write.", type=PATH, default=Path("agent.toml")),
    option("--recipe", "NAME", "The recipe to start from; --list shows all.", default="log"),
    flag("--list list_", "Show the recipes."),
    flag("--force", "Overwrite existing files."),
)
def init(session: Session, file: Path, recipe: str, list_: bool, force: bool) -> None:
    """Write a config from a recipe, and the programs that it runs."""
    from forewarn.agent.setup.recipe import about, names, placed, programs

    if list_:
        found = [{"name": name, "about": about(name)} for name in names()]
        session.print_answer({"recipes": found}, lambda: RECIPES.print(found))
        return
    config, others = placed(recipe, file.resolve().parent), programs(recipe)
    if file.is_dir():
        raise RequestRefused(f"{file} is a folder; choose a file such as {file / 'agent.toml'}")
    beside = [file.with_name(name) for name in others]
    if not force and (there := next((path for path in (file, *beside) if path.exists()), None)):
        raise RequestRefused(f"{there} exists; --force overwrites it")
    _write(file, config)
    for path, content in zip(beside, others.values(), strict=True):
        _write(path, content, mode=0o755)
    also = f" and its programs {', '.join(map(str, beside))}" if beside else ""
    session.print_answer(
        {"file": str(file), "recipe": recipe, "programs": [str(path) for path in beside]},
        lambda: terminal.echo(
            f"Wrote {file}{also}. Next: `{session.command(f'agent check --config {file}')}`."
        ),
    )


def _write(path: Path, content: str, *, mode: int | None = None) -> None:
    try:
        path.write_text(content, encoding="utf-8")
        if mode is not None:
            path.chmod(mode)
    except FileNotFoundError:
        raise RequestRefused(f"{path} cannot be written: folder {path.parent} does not exist") from None
    except OSError as error:
        raise RequestRefused(f"{path} cannot be written: {error.strerror}") from None


@app.verb(
    argument("scenario", "SCENARIO", "A scenario such as redeploy; `forewarn rehearse --list` shows all."),
    CONFIG_FILE,
    option(
        "--speed",
        "N",
        "Run time N times as fast. Default: the speed in the scenario.",
        type=click.FloatRange(min=0.001),
    ),
    flag("--kill/--no-kill", "Repeat the rehearsal with an agent that is killed.", default=True),
    flag("--verbose -v", "Show the log of the agent."),
)
def rehearse(
    session: Session, scenario: str, config: Path | None, speed: float | None, kill: bool, verbose: bool
) -> None:
    """Rehearse an event with a config and a private service; the handlers really run."""
    from forewarn.cli.views.rehearsal_view import as_json, run_agent_rehearsal, show

    path, _ = _loaded(config)
    reports: list[AgentReport] = []
    for killed in (False, True) if kill else (False,):
        report = run_agent_rehearsal(scenario, config=path, speed=speed, killed=killed, verbose=verbose)
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
