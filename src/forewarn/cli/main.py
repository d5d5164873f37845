"""The `forewarn` command.

Help and completion must answer at once. A command's module is therefore imported when the command is called.
"""

import gc
import os
import sys
from importlib import import_module
from typing import Any

import click

from forewarn.cli import terminal
from forewarn.cli.command_group import OrderedGroup, flag, summaries, usage_message, write_section
from forewarn.cli.session import EVERYWHERE

ABOUT = "An open Scheduled Events service for any fleet of virtual machines."
EXIT_CODES = "Exit codes: 0 done, 1 refused, 2 wrong usage, 3 server unreachable or without an answer."

SECTIONS = {
    "Fleet": {
        "machine": "Show, declare, restart, redeploy, move, evict and terminate machines.",
        "host": "Show and declare hosts, maintain them, and report failures.",
        "group": "Show and declare the groups that receive events together.",
        "project": "Show and declare projects: windows, blackout days, rehearsals.",
        "driver": "Show the drivers that carry out work, and try one.",
        "fleet": "Show the fleet as a file, apply a file, import from a hypervisor.",
    },
    "Work": {
        "order": "Show orders; cancel, retry, abandon or report them.",
        "event": "Show the events that guests see; approve or cancel them.",
        "rollout": "Roll maintenance over hosts in waves; pause, resume or abort.",
        "hold": "Stop new work for a while, and stop work that is under way.",
        "gate": "Give notice, wait for the guests, then run your own command.",
        "rehearse": "Play a scenario to guests, and report how they reacted.",
        "watch": "Watch hosts, machines, events, holds and rollouts live. Ctrl-C ends the view.",
        "history": "Show records, newest first; `history export` writes them to a file.",
    },
    "People": {
        "token": "Create, list and revoke access tokens.",
        "webhook": "Push records to a URL, and show deliveries that fail.",
        "calendar": "Print upcoming events as an iCalendar file; --project selects those of a project.",
        "promises": "Count notices that were kept, late, missed or broken, by project and month.",
    },
    "Inside a machine": {
        "guest": "Show and approve the events of this machine.",
        "agent": "Prepare this machine for events, approve them, and recover.",
    },
    "Server": {
        "serve": "Run the server.",
        "health": "Check whether the server works and can save changes.",
        "metrics": "Print the metrics in Prometheus format.",
        "clock": "Show service time; advance a manual clock.",
        "backup": "Copy the store to a file, even while a server uses it.",
        "copy": "Copy the store to another database and compare every row. Stop the server first.",
        "unit": "Write a systemd unit for the server, the agent, a filter or an import.",
    },
}
# Earlier names of `hold list` and `hold release`. Help does not list them.
ALIASES = {
    "holds": "List the holds in force, with their reasons.",
    "release": "Release a hold, by its id or by what it holds (--project, --host); waiting work continues.",
}
GROUPS = {
    *("machine", "host", "group", "project", "driver", "fleet", "order", "event", "rollout", "hold", "gate"),
    *("history", "token", "webhook", "guest", "agent", "clock", "unit"),
}
# The modules of commands that are not `commands.NAME_commands`.
MODULES = {
    **dict.fromkeys(ALIASES, "commands.hold_commands"),
    **dict.fromkeys(("clock", "calendar", "promises", "health", "metrics"), "commands.service_commands"),
    **dict.fromkeys(("backup", "copy"), "commands.serve_commands"),
    "guest": "guest_side.guest_commands",
    "agent": "guest_side.agent_commands",
}
COMMANDS = {**{name: about for section in SECTIONS.values() for name, about in section.items()}, **ALIASES}


class LazyCommand(click.Command):
    """A listed command, whose module is imported when the command is called."""

    def __init__(self, name: str, about: str) -> None:
        super().__init__(name, help=about, short_help=about, hidden=name in ALIASES)

    def load(self) -> click.Command:
        """Import the command; a group gets the help that it is listed with."""
        name = f"{self.name}"
        module = import_module(f"forewarn.cli.{MODULES.get(name, f'commands.{name}_commands')}")
        found: click.Command = getattr(module, "app" if name in GROUPS else name)
        if isinstance(found, click.Group):
            found.help = found.short_help = self.help
        return found


class LazyGroup(OrderedGroup):
    """The program: it lists its commands without importing them."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command and import it."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found.load() if isinstance(found, LazyCommand) else found, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by section, without the aliases."""
        for title, names in SECTIONS.items():
            write_section(formatter, title, summaries(*(self.commands[name] for name in names)))

    def main(self, args: Any = None, *more: Any, **settings: Any) -> Any:
        """Run the command and exit; usage errors have the form of all other errors."""
        words = list(sys.argv[1:] if args is None else args)
        typed = words[: words.index("--")] if "--" in words else words
        try:
            code = super().main(words, *more, **settings | {"standalone_mode": False})
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            code = error.exit_code
        except click.ClickException as error:
            code = error.exit_code
            if "--json" in typed:
                terminal.print_json_error("Usage", usage_message(error))
            else:
                terminal.print_error(usage_message(error))
        except click.Abort:
            terminal.print_error("interrupted; nothing was changed")
            code = 1
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


def _eager_flag(declared: str, about: str, callback: Any) -> click.Option:
    return flag(declared, about, callback=callback, is_eager=True, expose_value=False)


app = LazyGroup(
    "forewarn",
    commands={name: LazyCommand(name, about) for name, about in COMMANDS.items()},
    params=[
        _eager_flag("--version", "Show the version.", _show_version),
        _eager_flag("--install-completion", "Install completion for the current shell.", _complete),
        _eager_flag("--show-completion", "Print the completion script of the current shell.", _complete),
        *EVERYWHERE,
    ],
    callback=gc.enable,  # __main__ disables it while the program starts
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
        try:
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of the pipe has exited
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
