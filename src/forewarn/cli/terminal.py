"""Output: tables for people, plain lines for pipes, JSON for programs."""

import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from forewarn.cli import formatting
from forewarn.core.text_formats import on_one_line

if TYPE_CHECKING:
    from rich.text import Text

T = TypeVar("T")

# Wider than any table: a pipe gets whole lines.
UNBOUNDED = 100_000
SHORT_ID = 8

_GUID = re.compile(r"[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}")
_TIME = re.compile(r"\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)Z")

STYLES = {
    **dict.fromkeys(("running", "ok", "done", "yes"), "green"),
    **dict.fromkeys(
        ("Scheduled", "announced", "queued", "cordoned", "waiting", "planned", "paused", "aborting"), "yellow"
    ),
    **dict.fromkeys(
        ("Started", "started", "checking", "frozen", "restarting", "moving", "degraded"), "magenta"
    ),
    **dict.fromkeys(("failed", "failed, abandoned", "lost"), "bold red"),
    **dict.fromkeys(("stopped", "cancelled", "moot", "aborted", "-"), "dim"),
}


def is_terminal() -> bool:
    """Return whether stdout is a terminal."""
    return sys.stdout.isatty()


def width() -> int:
    """Return the width of the terminal; a pipe is unbounded."""
    return shutil.get_terminal_size().columns if is_terminal() else UNBOUNDED


def short(id_: str | None) -> str:
    """Shorten an id at a terminal; a pipe gets the whole id."""
    if id_ is None:
        return "-"
    return id_[:SHORT_ID] if is_terminal() else id_


def readable(text: str) -> str:
    """Write the times of a sentence as everywhere, and shorten its ids at a terminal."""
    text = _TIME.sub(r"\1 \2 UTC", text)
    return _GUID.sub(lambda id_: short(id_.group()), text)


def echo(text: str = "") -> None:
    """Print a line and flush it, so that a reader of a pipe sees it at once."""
    print(text, flush=True)


def echo_wrapped(text: str, *, indent: str = "", hanging: str | None = None) -> None:
    """Print a text, wrapped between words at a terminal and on one line in a pipe."""
    indent = on_one_line(indent)
    line = indent + on_one_line(text)
    if is_terminal():
        import textwrap

        line = textwrap.fill(
            on_one_line(text),
            width=shutil.get_terminal_size().columns,
            initial_indent=indent,
            subsequent_indent=indent if hanging is None else hanging,
            break_long_words=False,
            break_on_hyphens=False,
        )
    echo(line)


def echo_steps(commands: Mapping[str, str]) -> None:
    """Print the next commands, a line each, with aligned labels."""
    room = max(map(len, commands), default=0) + 1
    for label, words in commands.items():
        echo(f"  {f'{label}:':{room}}  {words}")


def print_error(text: str) -> None:
    """Print an error to stderr."""
    first, *rest = text.splitlines() or [""]
    print(f"forewarn: {first}", *rest, sep="\n", file=sys.stderr)


def print_json_error(code: str, message: str) -> None:
    """Print an error to stderr in the form of the API's errors."""
    import json

    error = {"error": {"code": code, "message": message}}
    print(json.dumps(error, ensure_ascii=False), file=sys.stderr)


def try_print_error(text: str) -> None:
    """Print an error to stderr; ignore a closed terminal."""
    with suppress(OSError):
        print_error(text)


def print_json(value: object) -> None:
    """Print an answer as JSON."""
    import json

    print(json.dumps(value, indent=2, ensure_ascii=False))


def columns(fields: str) -> dict[str, Callable[[Any], object]]:
    """Return columns that show fields: `LAST-SEEN` shows last_seen, `UD=update_domain` that field."""
    pairs = (each.partition("=") for each in fields.split())
    return {
        heading.replace("-", " "): attrgetter(field or heading.lower().replace("-", "_"))
        for heading, _, field in pairs
    }


# Without slots: Python 3.11 cannot create `ItemTable[Kind](…)` with them.
@dataclass(frozen=True, kw_only=True)
class ItemTable(Generic[T]):
    """The columns of a table, each a function of an item, and how to fit them into a terminal."""

    columns: Mapping[str, Callable[[T], object]]
    wraps: tuple[str, ...] = ()  # columns that may be wrapped
    spare: tuple[str, ...] = ()  # columns that a narrow terminal drops, in this order
    spare_if_same: tuple[str, ...] = ()  # columns dropped before those if all items have the same value
    empty: str = ""  # printed if there are no items

    def print(self, items: Iterable[T]) -> None:
        """Print a row for each item, or `empty`."""
        if given := list(items):
            print_lines(self.lines(given))
        else:
            echo_wrapped(self.empty)

    def lines(self, items: Sequence[T]) -> "list[Text]":
        """Draw a table as wide as the terminal; if that is too narrow, draw item by item."""
        from forewarn.cli.tables import Column, block_lines, choose_widths, table_lines

        cells = {name: [_cell(show(item)) for item in items] for name, show in self.columns.items()}
        columns = [
            Column(name=name, cells=[cell.plain for cell in column], wraps=name in self.wraps)
            for name, column in cells.items()
        ]
        # An empty cell counts as the same.
        same = [
            each.name
            for each in columns
            if each.name in self.spare_if_same and len({*each.cells} - {"-"}) <= 1
        ]
        widths = choose_widths(columns, width=width(), spare=(*same, *self.spare))
        return block_lines(cells, width()) if widths is None else table_lines(cells, widths)


def details(rows: Iterable[tuple[str, object]]) -> None:
    """Print the facts about one thing, a line each, under capitalized labels."""
    from forewarn.cli.tables import fact_lines

    facts = [(f"{name[:1].upper()}{name[1:]}", _cell(value)) for name, value in rows]
    print_lines(fact_lines(facts, width()))


def details_of(answer: Any, **instead: object) -> None:
    """Print each field of an answer, a line each; `instead` replaces values."""
    shown = {each.name: getattr(answer, each.name) for each in fields(answer)}
    details(
        (name.removesuffix("_seconds").replace("_", " "), value) for name, value in (shown | instead).items()
    )


def _plain(value: object) -> str:
    """Write an amount as people do: 16 rather than 16.0."""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _cell(value: object) -> "Text":
    from rich.text import Text

    match value:
        case None:
            text = ""
        case bool():
            text = "yes" if value else "no"
        case datetime():
            text = formatting.utc(value)
        case list() | tuple():
            text = ", ".join(str(each) for each in value)
        case Mapping():
            text = ", ".join(f"{key}={_plain(each)}" for key, each in value.items())
        case _:
            text = str(value)
    text = "\n".join(map(on_one_line, text.split("\n"))) or "-"
    return Text(text, style=STYLES.get(text, ""))


def print_lines(lines: "Iterable[Text]") -> None:
    """Print lines that are laid out already."""
    from rich.console import Console

    if is_terminal():
        screen = Console(highlight=False)
        for line in lines:
            screen.print(line, soft_wrap=True)
        return
    for line in lines:
        print(line.plain)
