"""Click commands with sections and examples in their help, and short forms to declare parameters."""

from pathlib import Path
from typing import Any

import click

from forewarn.cli.completion import completion_of

PATH = click.Path(path_type=Path)
# A command a line. The help of a command shows the lines that begin with it.
EXAMPLES = Path(__file__).with_name("examples.txt")

Rows = list[tuple[str, str]]


def option(declared: str, metavar: str | None, about: str, **settings: Any) -> click.Option:
    """Declare an option by its flags, followed by its parameter name if that differs.

    The shell completes values by the placeholder, such as HOST.
    """
    settings.setdefault("shell_complete", completion_of(metavar))
    return click.Option(declared.split(), metavar=metavar, help=about, **settings)


def flag(declared: str, about: str, **settings: Any) -> click.Option:
    """Declare an option without a value."""
    return click.Option(declared.split(), is_flag=True, help=about, **settings)


def argument(name: str, metavar: str, about: str, **settings: Any) -> click.Argument:
    """Declare an argument."""
    settings.setdefault("shell_complete", completion_of(metavar))
    return click.Argument([name], metavar=metavar, help=about, **settings)


class WrongUsage(click.BadParameter):
    """A wrong value for a flag or an argument."""

    def __init__(self, flag: str, message: str) -> None:
        super().__init__(message, param_hint=flag)


class SharedOption(click.Option):
    """An option of almost every command; help lists these apart."""


class VerbCommand(click.Command):
    """A command whose help shows examples, and lists its own options before the shared ones."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; explain how to type a name that begins with -."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name.startswith("--"):
                raise
            message = f"{error.message} Put a name that begins with - after --."
            raise click.NoSuchOption(error.option_name, message, ctx=error.ctx) from None

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the description, then the examples."""
        super().format_help_text(ctx, formatter)
        if found := self.examples(ctx):
            with formatter.section("Examples"):
                for line in found:
                    formatter.write(f"  {line}\n")

    def examples(self, ctx: click.Context) -> list[str]:
        """Return the example lines of this command."""
        lines = EXAMPLES.read_text(encoding="utf-8").splitlines()
        return [line for line in lines if f"{line} ".startswith(f"{ctx.command_path} ")]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of this command, then those of all commands."""
        own: Rows = []
        shared: Rows = []
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (row := param.get_help_record(ctx)):
                (shared if isinstance(param, SharedOption) else own).append(row)
        write_section(formatter, "Options", own)
        write_section(formatter, "Options of every command", shared)


class CommandAfterDashes(VerbCommand):
    """A command that takes another command after `--`, in the parameter `command`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split the arguments at the dashes."""
        index = args.index("--") if "--" in args else len(args)
        ctx.params["command"] = args[index + 1 :]
        return super().parse_args(ctx, args[:index])


class OrderedGroup(VerbCommand, click.Group):
    """A group that lists its commands in the order of their declaration, with whole summaries."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.commands)

    def examples(self, ctx: click.Context) -> list[str]:
        """Leave out the examples of subcommands."""
        places = len(ctx.command_path.split())
        return [
            line
            for line in super().examples(ctx)
            if not {*line.split()[places : places + 1]} & {*self.commands}
        ]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the name and the summary of each command."""
        write_section(formatter, "Commands", summaries(*self.commands.values()))


def summaries(*commands: click.Command) -> Rows:
    """Return the name and the summary of each command."""
    return [(f"{each.name}", each.get_short_help_str()) for each in commands]


def write_section(formatter: click.HelpFormatter, title: str, rows: Rows) -> None:
    """Write a list of terms under a title, unless the list is empty."""
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)


def usage_message(error: click.ClickException) -> str:
    """Return a usage error in the style of all errors: the flag first, the next command last."""
    text = error.format_message()
    if isinstance(error, click.BadParameter):
        text = error.message or "expected a value"
        if isinstance(error, click.MissingParameter):
            text = "is required"
            if error.param is not None and (
                choices := error.param.type.get_missing_message(error.param, error.ctx)
            ):
                text += f": {' '.join(choices.split()).replace('Choose from: ', 'one of ')}"
        if hint := error.param_hint or (error.param and shown_name(error.param)):
            text = f"{hint}: {text}"
    text = (text if text[:2].isupper() else f"{text[:1].lower()}{text[1:]}").rstrip(".")
    ctx = getattr(error, "ctx", None)
    return f"{text}\nSee `{ctx.command_path} --help`." if ctx is not None else text


def shown_name(param: click.Parameter) -> str:
    """Return how a person types a parameter: `--takes`, `HOST`."""
    if isinstance(param, click.Argument):
        return (param.metavar or param.human_readable_name).strip("[]. ")
    return max(param.opts, key=len)
