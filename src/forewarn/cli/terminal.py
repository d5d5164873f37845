"""Where output goes: tables for people, plain lines for pipes, JSON for programs."""

import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from forewarn.cli import formatting
from forewarn.core.text_formats import on_one_line

if TYPE_CHECKING:
    from rich.text import Text

T = TypeVar("T")

# Wider than any table: what goes into a pipe must be whole.
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
    """Return whether the output goes to a terminal."""
    return sys.stdout.isatty()


def width() -> int:
    """Return how wide the terminal is now; a pipe has no end."""
    return shutil.get_terminal_size().columns if is_terminal() else UNBOUNDED


def short(id_: str | None) -> str:
    """Shorten an id for a person; a pipe gets all of it."""
    if id_ is None:
        return "-"
    return id_[:SHORT_ID] if is_terminal() else id_


def readable(text: str) -> str:
    """Write a sentence for a person: times as everywhere, ids shortened; a pipe gets all of them."""
    text = _TIME.sub(r"\1 \2 UTC", text)
    return _GUID.sub(lambda id_: short(id_.group()), text)


def echo(text: str = "") -> None:
    """Print a line, and flush it: who follows a log sees it at once."""
    print(text, flush=True)


def fold(text: str, *, indent: str = "", hanging: str | None = None) -> None:
    """Print a text, broken between words where the terminal ends; a pipe gets it on one line."""
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


def print_error(text: str) -> None:
    """Print what went wrong to stderr."""
    first, *rest = text.splitlines() or [""]
    print(f"forewarn: {first}", *rest, sep="\n", file=sys.stderr)


def print_json_error(code: str, message: str) -> None:
    """Print what went wrong to stderr for a program, in the form of the API's errors."""
    import json

    error = {"error": {"code": code, "message": message}}
    print(json.dumps(error, ensure_ascii=False), file=sys.stderr)


def try_print_error(text: str) -> None:
    """Print to stderr what can be lost: a terminal may be closed."""
    with suppress(OSError):
        print_error(text)


def print_json(value: object) -> None:
    """Print an answer for a program."""
    import json

    print(json.dumps(value, indent=2, ensure_ascii=False))


# Without slots: Python 3.11 cannot make `ItemTable[Kind](…)` with them.
@dataclass(frozen=True, kw_only=True)
class ItemTable(Generic[T]):
    """A kind of table, and what each column shows of an item; a terminal gets as much of it as fits."""

    columns: Mapping[str, Callable[[T], object]]
    wraps: tuple[str, ...] = ()  # columns of many words
    spare: tuple[str, ...] = ()  # columns that a narrow terminal does without, the first to go first
    spare_if_same: tuple[str, ...] = ()  # those that go before, where they say the same of all items
    empty: str = ""  # printed where there are no items

    def print(self, items: Iterable[T]) -> None:
        """Print a row for each item, or a line if there is none."""
        if given := list(items):
            print_lines(self.lines(given))
        else:
            fold(self.empty)

    def lines(self, items: Sequence[T]) -> "list[Text]":
        """Draw a table for the terminal as wide as it is now; where that is too narrow, item by item."""
        from forewarn.cli.tables import Column, block_lines, choose_widths, table_lines

        cells = {name: [_cell(show(item)) for item in items] for name, show in self.columns.items()}
        columns = [
            Column(name=name, cells=[cell.plain for cell in column], wraps=name in self.wraps)
            for name, column in cells.items()
        ]
        # What has no project is of no other one.
        same = [
            each.name
            for each in columns
            if each.name in self.spare_if_same and len({*each.cells} - {"-"}) <= 1
        ]
        widths = choose_widths(columns, width=width(), spare=(*same, *self.spare))
        return block_lines(cells, width()) if widths is None else table_lines(cells, widths)


def details(rows: Iterable[tuple[str, object]]) -> None:
    """Print what is known of one thing, a line each."""
    from forewarn.cli.tables import fact_lines

    print_lines(fact_lines([(name, _cell(value)) for name, value in rows], width()))


def details_of(answer: Any, **instead: object) -> None:
    """Print each field of an answer, a line each; of some, something instead."""
    shown = {each.name: getattr(answer, each.name) for each in fields(answer)}
    details(
        (name.removesuffix("_seconds").replace("_", " "), value) for name, value in (shown | instead).items()
    )


def _plain(value: object) -> str:
    """Write what a mapping holds: amounts as people do, 16 rather than 16.0."""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _cell(value: object) -> "Text":
    from rich.text import Text

    match value:
        case None:
            said = ""
        case bool():
            said = "yes" if value else "no"
        case datetime():
            said = formatting.utc(value)
        case list() | tuple():
            said = ", ".join(str(each) for each in value)
        case Mapping():
            said = ", ".join(f"{key}={_plain(each)}" for key, each in value.items())
        case _:
            said = str(value)
    said = "\n".join(map(on_one_line, said.split("\n"))) or "-"
    return Text(said, style=STYLES.get(said, ""))


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
