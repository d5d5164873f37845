"""Commands and groups whose help has sections, and short ways to declare what they take."""

from pathlib import Path
from typing import Any

import click

PATH = click.Path(path_type=Path)

Rows = list[tuple[str, str]]


def option(declared: str, metavar: str | None, about: str, **settings: Any) -> click.Option:
    """Declare an option by its flags and, if the function has another name for it, that name."""
    return click.Option(declared.split(), metavar=metavar, help=about, **settings)


def flag(declared: str, about: str, **settings: Any) -> click.Option:
    """Declare an option without a value, in the same way."""
    return click.Option(declared.split(), is_flag=True, help=about, **settings)


def argument(name: str, metavar: str, about: str | None = None, **settings: Any) -> click.Argument:
    """Declare an argument."""
    return click.Argument([name], metavar=metavar, help=about, **settings)


class SharedOption(click.Option):
    """An option of almost every command: help lists these apart."""


class VerbCommand(click.Command):
    """A command whose help lists the options of all commands apart from its own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read what was typed; explain how to type a name that begins with -."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name.startswith("--"):
                raise
            said = f"{error.message} A name that begins with - goes after --."
            raise click.NoSuchOption(error.option_name, said, ctx=error.ctx) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of this command, then those of all commands."""
        own: Rows = []
        shared: Rows = []
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (row := param.get_help_record(ctx)):
                (shared if isinstance(param, SharedOption) else own).append(row)
        write_section(formatter, "Options", own)
        write_section(formatter, "Everywhere", shared)


class CommandAfterDashes(VerbCommand):
    """A command that takes another one after `--` as `command`, beside arguments of its own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set aside what stands after the dashes, and read the rest."""
        index = args.index("--") if "--" in args else len(args)
        ctx.params["command"] = args[index + 1 :]
        return super().parse_args(ctx, args[:index])


class NounGroup(VerbCommand, click.Group):
    """A group that lists its commands in the order of their declaration, each with its whole summary."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of its commands."""
        return list(self.commands)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line or more for each command."""
        write_section(formatter, "Commands", summaries(*self.commands.values()))


def summaries(*commands: click.Command) -> Rows:
    """Return the name and the summary of each command."""
    return [(f"{each.name}", each.get_short_help_str()) for each in commands]


def write_section(formatter: click.HelpFormatter, title: str, rows: Rows) -> None:
    """Write a list of terms under a title, if there are any."""
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)
