"""The `forewarn` command: nouns and verbs, put together.

What a command needs beyond Typer is imported when it runs, so that help and completion answer at once.
"""

import os
import sys
from typing import Annotated

import typer

from forewarn.cli import session
from forewarn.cli.command_group import CommandGroup
from forewarn.cli.gate import gate_commands
from forewarn.cli.guest_side import agent_commands, guest_commands
from forewarn.cli.nouns import (
    clock_commands,
    event_commands,
    fleet_commands,
    group_commands,
    history_commands,
    hold_commands,
    host_commands,
    machine_commands,
    order_commands,
    probe_commands,
    project_commands,
    rehearse_commands,
    rollout_commands,
    serve_commands,
    token_commands,
    watch_commands,
    webhook_commands,
)
from forewarn.cli.session import Json, Project, Server, Token

ABOUT = "An open Scheduled Events service for any fleet of virtual machines."
EXIT_CODES = "Exit codes: 0 done, 1 refused, 2 wrong usage, 3 no server reached."

SERVER_PANEL = "The server itself"

app = CommandGroup(
    help=ABOUT,
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _noun, _part in {
    "machine": machine_commands,
    "host": host_commands,
    "group": group_commands,
    "project": project_commands,
    "order": order_commands,
    "rollout": rollout_commands,
    "event": event_commands,
    "fleet": fleet_commands,
    "webhook": webhook_commands,
    "clock": clock_commands,
    "gate": gate_commands,
    "guest": guest_commands,
    "token": token_commands,
    "agent": agent_commands,
}.items():
    app.add_typer(_part.app, name=_noun)

app.command("watch")(watch_commands.watch)
app.add_typer(history_commands.app, name="history")
app.command("rehearse")(rehearse_commands.rehearse)
app.command("hold")(hold_commands.hold)
app.command("release")(hold_commands.release)
app.command("holds")(hold_commands.holds)
app.command("calendar")(probe_commands.calendar)
app.command("health", rich_help_panel=SERVER_PANEL)(probe_commands.health)
app.command("metrics", rich_help_panel=SERVER_PANEL)(probe_commands.metrics)
app.command("serve", rich_help_panel=SERVER_PANEL)(serve_commands.serve)
app.command("backup", rich_help_panel=SERVER_PANEL)(serve_commands.backup)


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
    session.keep_options(ctx, server=server, token=token, project=project, json=json)


def main() -> None:
    """Run the command."""
    try:
        app(prog_name="forewarn")
    finally:
        _flush()


def _flush() -> None:
    """Write what is left; the reader of a pipe may have gone."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
