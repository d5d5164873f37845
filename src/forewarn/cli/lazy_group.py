"""A group whose commands are imported when they are called: help and completion list them without."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
import typer.main
from typer.core import TyperCommand

from forewarn.cli import terminal
from forewarn.cli.command_group import CommandGroup, HelpGroup

# The base of all that Click finds wrong; Typer has a Click of its own inside.
_UsageError: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command as it is listed, and where it is: a function, or the group of a noun."""

    home: str  # MODULE:NAME
    help: str
    panel: str | None = None

    def load(self, name: str) -> Any:
        """Import it, and make what Typer makes of it."""
        module, _, attribute = self.home.partition(":")
        found = getattr(import_module(module), attribute)
        holder = CommandGroup()
        if isinstance(found, typer.Typer):
            holder.add_typer(found, name=name, help=self.help, short_help=self.help)
        else:
            holder.command(name, rich_help_panel=self.panel)(found)
        return typer.main.get_group(holder).commands[name]

    def listed(self, name: str) -> TyperCommand:
        """Make what is needed to list it; the help of a noun is given in full wherever it is listed."""
        in_full = self.help if self.home.endswith(":app") else None
        return TyperCommand(name, help=self.help, short_help=in_full, rich_help_panel=self.panel)


class _Loaded(Mapping[str, Any]):
    """Commands by name, each loaded when it is asked for."""

    def __init__(self, parts: Mapping[str, LazyCommand]) -> None:
        self._parts = parts
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._parts[name].load(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


def lazy_group(parts: Mapping[str, LazyCommand]) -> type[HelpGroup]:
    """Make the class of a group that has these commands."""

    class LazyGroup(HelpGroup):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            self.commands = _Loaded(parts)  # type: ignore[assignment]

        def list_commands(self, ctx: Any) -> list[str]:
            return list(parts)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            return parts[cmd_name].listed(cmd_name) if cmd_name in parts else None

        def main(self, args: Any = None, *more: Any, **settings: Any) -> Any:
            """Run the command; what is wrong with how it was typed is JSON too, where that is asked for."""
            words = list(sys.argv[1:] if args is None else args)
            typed = words[: words.index("--")] if "--" in words else words
            if "--json" not in typed:
                return super().main(args, *more, **settings)
            try:
                code = super().main(words, *more, **settings | {"standalone_mode": False})
            except _UsageError as error:
                terminal.print_json_error("Usage", error.format_message())
                code = error.exit_code
            sys.exit(code if isinstance(code, int) else 0)

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            name, command, rest = super().resolve_command(ctx, args)
            return name, command and self.commands[args[0]], rest

    return LazyGroup
