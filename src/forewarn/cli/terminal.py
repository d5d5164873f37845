"""Where output goes: tables for people, plain lines for pipes, JSON for programs."""

import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from forewarn.cli import formatting
from forewarn.wire.text import on_one_line

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

T = TypeVar("T")

# Wider than any table: what goes into a pipe must be whole.
UNBOUNDED = 100_000
SHORT_ID = 8
# Between two columns; and what a column of many words needs at least to be read.
GAP = 3
WRAPPED = 24

STYLES = {
    **dict.fromkeys(("running", "ok", "done", "yes"), "green"),
    **dict.fromkeys(
        ("Scheduled", "announced", "queued", "cordoned", "waiting", "planned", "paused", "aborting"), "yellow"
    ),
    **dict.fromkeys(
        ("Started", "started", "checking", "frozen", "restarting", "moving", "degraded"), "magenta"
    ),
    **dict.fromkeys(("failed", "failed, abandoned"), "bold red"),
    **dict.fromkeys(("stopped", "cancelled", "moot", "aborted", "-"), "dim"),
}


def is_terminal() -> bool:
    """Return whether the output goes to a terminal."""
    return sys.stdout.isatty()


def short(id_: str | None) -> str:
    """Shorten an id for a person; a pipe gets all of it."""
    if id_ is None:
        return "-"
    return id_[:SHORT_ID] if is_terminal() else id_


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
    """A kind of table, and what each column shows of an item."""

    columns: Mapping[str, Callable[[T], object]]
    wraps: tuple[str, ...] = ()  # columns of many words
    spare: tuple[str, ...] = ()  # columns that a narrow terminal does without, the first to go first
    empty: str = ""  # printed where there are no items

    def print(self, items: Iterable[T]) -> None:
        """Print a row for each item, or a line if there is none."""
        if given := list(items):
            _print(self.drawn(given))
        else:
            echo(self.empty)

    def drawn(self, items: Sequence[T]) -> "Table":
        """Draw a table, as wide as the terminal is now."""
        from rich import box
        from rich.table import Table

        cells = {name: [_cell(show(item)) for item in items] for name, show in self.columns.items()}
        kept = self._fitting(cells) if is_terminal() else list(cells)
        drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
        for name in kept:
            drawn.add_column(name, overflow="fold", no_wrap=name not in self.wraps)
        for row in zip(*(cells[name] for name in kept), strict=True):
            drawn.add_row(*row)
        return drawn

    def _fitting(self, cells: "Mapping[str, list[Text]]") -> list[str]:
        """Leave columns out until the others fit the terminal."""
        widths = {name: max(len(name), *(cell.cell_len for cell in column)) for name, column in cells.items()}
        widths |= {name: min(widths[name], WRAPPED) for name in self.wraps}
        for name in self.spare:
            if sum(widths.values()) + GAP * (len(widths) - 1) <= shutil.get_terminal_size().columns:
                break
            del widths[name]
        return list(widths)


def details(rows: Iterable[tuple[str, object]]) -> None:
    """Print what is known of one thing, a line each."""
    from rich.table import Table

    drawn = Table(box=None, show_header=False, pad_edge=False)
    drawn.add_column(style="bold", no_wrap=True)
    drawn.add_column(overflow="fold")
    for name, value in rows:
        drawn.add_row(name, _cell(value))
    _print(drawn)


def details_of(answer: Any, **instead: object) -> None:
    """Print each field of an answer, a line each; of some, something instead."""
    shown = {each.name: getattr(answer, each.name) for each in fields(answer)}
    details(
        (name.removesuffix("_seconds").replace("_", " "), value) for name, value in (shown | instead).items()
    )


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
            said = ", ".join(f"{key}={each}" for key, each in value.items())
        case _:
            said = str(value)
    said = "\n".join(map(on_one_line, said.split("\n"))) or "-"
    return Text(said, style=STYLES.get(said, ""))


def _print(drawn: object) -> None:
    from rich.console import Console

    if is_terminal():
        Console(highlight=False).print(drawn)
        return
    console = Console(width=UNBOUNDED, highlight=False, force_terminal=False, no_color=True)
    with console.capture() as captured:
        console.print(drawn)
    # Cells are padded to their column, which is of no use at the end of a line.
    for line in captured.get().splitlines():
        print(line.rstrip())
