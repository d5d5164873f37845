"""The `forewarn` command: nouns and verbs, put together.

Each is imported when it is called, and what it needs beyond Typer when it runs, so that help and completion
answer at once.
"""

import gc
import os
import sys
from typing import Annotated

import typer

from forewarn.cli.command_group import CommandGroup
from forewarn.cli.lazy_group import LazyCommand, lazy_group
from forewarn.cli.session import Session, with_session

ABOUT = "An open Scheduled Events service for any fleet of virtual machines."
EXIT_CODES = "Exit codes: 0 done, 1 refused, 2 wrong usage, 3 no server reached, or no answer from it."

SERVER_PANEL = "The server itself"


def _noun(name: str, help_: str, *, room: str = "nouns") -> LazyCommand:
    return LazyCommand(f"forewarn.cli.{room}.{name}_commands:app", help_)


def _verb(name: str, function: str, help_: str, *, panel: str | None = None) -> LazyCommand:
    return LazyCommand(f"forewarn.cli.nouns.{name}_commands:{function}", help_, panel)


def _of_the_server(name: str, function: str, help_: str) -> LazyCommand:
    return _verb(name, function, help_, panel=SERVER_PANEL)


COMMANDS = {
    "watch": _verb(
        "watch",
        "watch",
        "Watch hosts, machines, events with countdowns, holds and rollouts as they change; Ctrl-C ends it.",
    ),
    "rehearse": _verb(
        "rehearse",
        "rehearse",
        "Rehearse what a fleet may do to its guests, and report what they made of it.",
    ),
    "release": _verb(
        "hold",
        "release",
        "Lift a hold, by its id or by what it holds (--project, --host); what waited for it goes on.",
    ),
    "holds": _verb("hold", "holds", "List what is held, and why."),
    "calendar": _verb(
        "probe", "calendar", "Print coming events as a calendar; --project prints those of a project."
    ),
    "promises": _verb(
        "promise",
        "promises",
        "Count by project and month whose notice was kept, late or never got, and what else befell them.",
    ),
    "health": _of_the_server(
        "probe", "health", "Check whether the server works, and whether it can save anything."
    ),
    "metrics": _of_the_server("probe", "metrics", "Print the metrics, as Prometheus reads them."),
    "serve": _of_the_server("serve", "serve", "Run the service."),
    "backup": _of_the_server("serve", "backup", "Copy the store to a file, also while a server runs on it."),
    "copy": _of_the_server(
        "serve",
        "copy",
        "Copy the store to another database, of either kind, and compare all of it; no server may run on it.",
    ),
    "hold": _noun("hold", "Announce and start nothing new for a while; stop what is under way."),
    "machine": _noun("machine", "Show machines, and order something to be done to one."),
    "host": _noun("host", "Show hosts, maintain them, and say how they are."),
    "driver": _noun("driver", "Show who can do work on hosts."),
    "group": _noun("group", "Show whom events are delivered to."),
    "project": _noun("project", "Show the tenants, and when maintenance may disturb them."),
    "order": _noun("order", "Show what is going to be done; cancel, retry or abandon it."),
    "rollout": _noun("rollout", "Roll maintenance over hosts in waves; pause, resume or abort it."),
    "event": _noun("event", "Show what is announced to guests; approve or cancel it."),
    "fleet": _noun("fleet", "Show the fleet as a file, or counted; make it what a file says."),
    "webhook": _noun("webhook", "Push records to an address as they happen; see what is stuck."),
    "clock": _noun("clock", "Show service time; turn it, if the clock is a manual one."),
    "gate": _noun("gate", "Announce, wait for the guests, then run your own command.", room="gate"),
    "guest": _noun("guest", "Inside a machine: what it is told, and approving it.", room="guest_side"),
    "token": _noun("token", "Say who may do what: make, list and revoke tokens."),
    "agent": _noun(
        "agent",
        "The agent in a machine: it gets ready for events, approves them, and comes back.",
        room="guest_side",
    ),
    "unit": _noun("unit", "Have systemd run a program of forewarn: write its unit."),
    "history": _noun("history", "Show what happened, newest first; `export` writes all of it."),
}

app = CommandGroup(
    cls=lazy_group(COMMANDS),
    help=ABOUT,
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from forewarn.version import version

        typer.echo(f"forewarn {version()}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
]


@app.callback()
@with_session
def start(_: Session, version: Version = False) -> None:
    """An open Scheduled Events service for any fleet of virtual machines."""
    gc.enable()  # it is off while a program starts


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
