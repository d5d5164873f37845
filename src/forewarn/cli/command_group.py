"""Commands whose help leaves out what says nothing: that a flag is a bool, and that a name is a text."""

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from forewarn.cli import help_drawing


class _PlainHelp:
    def get_params(self, ctx: Any) -> Any:
        """Return its options."""
        return _plain(super().get_params(ctx))  # type: ignore[misc]

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read what was typed; an option that does not exist is answered with those that are close."""
        try:
            return super().parse_args(ctx, args)  # type: ignore[misc]
        except Exception as error:
            _leave_out_guesses(error)
            raise

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Draw its help."""
        help_drawing.load()
        super().format_help(ctx, formatter)  # type: ignore[misc]


# Under this key a command finds what was typed after `--`, which Click passes on with what stood before it.
AFTER_DASHES = "forewarn.after_dashes"


class _Command(_PlainHelp, TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Keep what stands after `--` apart, too."""
        ctx.meta[AFTER_DASHES] = args[args.index("--") + 1 :] if "--" in args else []
        return super().parse_args(ctx, args)


class CommandAfterDashes(_Command):
    """A command that takes another one after `--`, beside as many arguments of its own as are typed."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Set aside what stands after the dashes, and read the rest."""
        index = args.index("--") if "--" in args else len(args)
        left = super().parse_args(ctx, args[:index])
        ctx.meta[AFTER_DASHES] = args[index + 1 :]
        return left

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what its usage is made of."""
        return [*super().collect_usage_pieces(ctx), "-- COMMAND..."]


class HelpGroup(_PlainHelp, TyperGroup):
    """The Click group that Typer makes of a CommandGroup."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command; a name that is none is answered with what was meant, if that is close."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            from forewarn.core.spelling import hint

            ctx.fail(
                f"No such command {args[0]!r}{hint(args[0], self.list_commands(ctx))}.".replace("?.", "?")
            )
        return super().resolve_command(ctx, args)


class CommandGroup(typer.Typer):
    """A Typer application whose commands and groups have this help."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"cls": HelpGroup, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Add a command."""
        return super().command(name, **{"cls": _Command, **settings})


def _leave_out_guesses(error: Any) -> None:
    """Let Click suggest only options that are close to what was typed, and say how names with - are typed."""
    if hasattr(error, "possibilities") and not error.option_name.startswith("--"):
        error.message += ". A name that begins with - goes after --"
    if getattr(error, "possibilities", None):
        from forewarn.core.spelling import closest

        typed = error.option_name
        error.possibilities = [each for each in error.possibilities if closest(typed, [each]) is not None]


def _plain(params: Any) -> Any:
    for param in params:
        if isinstance(param, TyperArgument):
            # Its name stands before it already.
            param.__dict__["display_type_rich"] = _nothing
        elif getattr(param, "is_flag", False):
            param.metavar = ""
    return params


def _nothing(*_: Any, **__: Any) -> None:
    """Show no type."""
