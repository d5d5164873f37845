"""The `forewarn` command: nouns and verbs, put together.

Each is imported when it is called, and what it needs beyond Click when it runs, so that help and completion
answer at once.
"""

import gc
import os
import sys
from importlib import import_module
from typing import Any

import click

from forewarn.cli import terminal
from forewarn.cli.command_group import NounGroup, flag, summaries, write_section
from forewarn.cli.session import EVERYWHERE

ABOUT = "An open Scheduled Events service for any fleet of virtual machines."
EXIT_CODES = "Exit codes: 0 done, 1 refused, 2 wrong usage, 3 no server reached, or no answer from it."


VERBS = {
    "watch": (
        "Watch hosts, machines, events with countdowns, holds and rollouts as they change; Ctrl-C ends it."
    ),
    "rehearse": "Rehearse what a fleet may do to its guests, and report what they made of it.",
    "release": "Lift a hold, by its id or by what it holds (--project, --host); what waited for it goes on.",
    "holds": "List what is held, and why.",
    "calendar": "Print coming events as a calendar; --project prints those of a project.",
    "promises": (
        "Count by project and month whose notice was kept, late or never got, and what else befell them."
    ),
}
NOUNS = {
    "hold": "Announce and start nothing new for a while; stop what is under way.",
    "machine": "Show machines, and order something to be done to one.",
    "host": "Show hosts, maintain them, and say how they are.",
    "driver": "Show who can do work on hosts.",
    "group": "Show whom events are delivered to.",
    "project": "Show the tenants, and when maintenance may disturb them.",
    "order": "Show what is going to be done; cancel, retry or abandon it.",
    "rollout": "Roll maintenance over hosts in waves; pause, resume or abort it.",
    "event": "Show what is announced to guests; approve or cancel it.",
    "fleet": "Show the fleet as a file, or counted; make it what a file says.",
    "webhook": "Push records to an address as they happen; see what is stuck.",
    "clock": "Show service time; turn it, if the clock is a manual one.",
    "gate": "Announce, wait for the guests, then run your own command.",
    "guest": "Inside a machine: what it is told, and approving it.",
    "token": "Say who may do what: make, list and revoke tokens.",
    "agent": "The agent in a machine: it gets ready for events, approves them, and comes back.",
    "unit": "Have systemd run a program of forewarn: write its unit.",
    "history": "Show what happened, newest first; `export` writes all of it.",
}
OF_SERVER = {
    "health": "Check whether the server works, and whether it can save anything.",
    "metrics": "Print the metrics, as Prometheus reads them.",
    "serve": "Run the service.",
    "backup": "Copy the store to a file, also while a server runs on it.",
    "copy": (
        "Copy the store to another database, of either kind, and compare all of it; no server may run on it."
    ),
}
# Where a command is, if not in `nouns` in a module of its own.
HOMES = {
    **dict.fromkeys(("release", "holds"), "nouns.hold_commands"),
    **dict.fromkeys(("clock", "calendar", "promises", "health", "metrics"), "nouns.service_commands"),
    **dict.fromkeys(("backup", "copy"), "nouns.serve_commands"),
    "guest": "guest_side.guest_commands",
    "agent": "guest_side.agent_commands",
}
COMMANDS = {**VERBS, **NOUNS, **OF_SERVER}


class LazyCommand(click.Command):
    """A command as it is listed; its module is imported when it is called."""

    def __init__(self, name: str, about: str) -> None:
        super().__init__(name, help=about, short_help=about)

    def load(self) -> click.Command:
        """Import it; a noun gets the help that it is listed with."""
        name = f"{self.name}"
        module = import_module(f"forewarn.cli.{HOMES.get(name, f'nouns.{name}_commands')}")
        found: click.Command = getattr(module, "app" if name in NOUNS else name)
        if isinstance(found, click.Group):
            found.help = found.short_help = self.help
        return found


class LazyGroup(NounGroup):
    """A group whose commands are imported when they are called: help and completion list them without."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, and import it."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found.load() if isinstance(found, LazyCommand) else found, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, those about the server itself last."""
        lines = {row[0]: row for row in summaries(*self.commands.values())}
        write_section(formatter, "Commands", [lines[name] for name in (*VERBS, *NOUNS)])
        write_section(formatter, "The server itself", [lines[name] for name in OF_SERVER])

    def main(self, args: Any = None, *more: Any, **settings: Any) -> Any:
        """Run the command; what is wrong with how it was typed is JSON too, where that is asked for."""
        words = list(sys.argv[1:] if args is None else args)
        typed = words[: words.index("--")] if "--" in words else words
        if "--json" not in typed:
            return super().main(args, *more, **settings)
        try:
            code = super().main(words, *more, **settings | {"standalone_mode": False})
        except click.ClickException as error:
            terminal.print_json_error("Usage", error.format_message())
            code = error.exit_code
        sys.exit(code if isinstance(code, int) else 0)


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from forewarn.version import version

        click.echo(f"forewarn {version()}")
        ctx.exit()


def _complete(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from forewarn.cli import completion

        completion.install(app) if param.name == "install_completion" else completion.show(app)
        ctx.exit()


def _at_once(declared: str, about: str, callback: Any) -> click.Option:
    return flag(declared, about, callback=callback, is_eager=True, expose_value=False)


app = LazyGroup(
    "forewarn",
    commands={name: LazyCommand(name, about) for name, about in COMMANDS.items()},
    params=[
        _at_once("--version", "Show the version.", _show_version),
        _at_once("--install-completion", "Install completion for the current shell.", _complete),
        _at_once(
            "--show-completion",
            "Show completion for the current shell, to copy it or customize the installation.",
            _complete,
        ),
        *EVERYWHERE,
    ],
    callback=gc.enable,  # it is off while a program starts
    help=ABOUT,
    epilog=EXIT_CODES,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)


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
