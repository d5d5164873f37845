"""The `forewarn` command: nouns and verbs, put together.

What a command needs beyond Typer is imported when it runs, so that help and completion answer at once.
"""

import os
import sys
from typing import Annotated

import typer

from forewarn.cli import (
    agent,
    clock,
    event,
    fleet,
    gate,
    group,
    guest,
    history,
    hold,
    host,
    machine,
    order,
    probe,
    project,
    rehearse,
    rollout,
    serve,
    session,
    token,
    watch,
    webhook,
)
from forewarn.cli.commands import Commands
from forewarn.cli.session import Json, Project, Server, Token

ABOUT = "An open Scheduled Events service for any fleet of virtual machines."
EXIT_CODES = "Exit codes: 0 done, 1 refused, 2 wrong usage, 3 no server reached."

SERVER_PANEL = "The server itself"

app = Commands(
    help=ABOUT,
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _noun, _part in {
    "machine": machine,
    "host": host,
    "group": group,
    "project": project,
    "order": order,
    "rollout": rollout,
    "event": event,
    "fleet": fleet,
    "webhook": webhook,
    "clock": clock,
    "gate": gate,
    "guest": guest,
    "token": token,
    "agent": agent,
}.items():
    app.add_typer(_part.app, name=_noun)

app.command("watch")(watch.watch)
app.add_typer(history.app, name="history")
app.command("rehearse")(rehearse.rehearse)
app.command("hold")(hold.hold)
app.command("release")(hold.release)
app.command("holds")(hold.holds)
app.command("calendar")(probe.calendar)
app.command("health", rich_help_panel=SERVER_PANEL)(probe.health)
app.command("metrics", rich_help_panel=SERVER_PANEL)(probe.metrics)
app.command("serve", rich_help_panel=SERVER_PANEL)(serve.serve)
app.command("backup", rich_help_panel=SERVER_PANEL)(serve.backup)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"forewarn {version('forewarn')}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
]


@app.callback()
def start(
    ctx: typer.Context,
    version: Version = False,
    server: Server = None,
    token: Token = None,
    project: Project = None,
    json: Json = None,
) -> None:
    """An open Scheduled Events service for any fleet of virtual machines."""
    session.remember(ctx, server=server, token=token, project=project, json=json)


def main() -> None:
    """Run the command."""
    try:
        app(prog_name="forewarn")
    finally:
        _flush()


def _flush() -> None:
    """Write what is left; whoever read the output may have seen enough and gone."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
