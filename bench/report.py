"""Print the results as a table, and write all measurements as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.computer import Computer


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the table: a figure and its target."""

    what: str
    measured: str
    value: float | None = None  # the bare figure, for the JSON file
    target: str = ""
    met: bool | None = None  # None: no target, or not measured
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The results of one benchmark: its rows and all measurements."""

    rows: Sequence[Row]
    raw: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole run."""

    computer: Computer
    seconds: float
    parts: dict[str, Findings]

    @property
    def rows(self) -> list[Row]:
        """All rows, in the order of the parts."""
        return [row for findings in self.parts.values() for row in findings.rows]

    @property
    def missed(self) -> list[Row]:
        """The rows whose target was not met."""
        return [row for row in self.rows if row.met is False]


# The marks around the figures of a page.
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def fill_in(page: Path, figures: str) -> None:
    """Replace the figures of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{figures}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def show(report: Report, console: Console) -> None:
    """Print the table, and below it the notes of the rows."""
    table = Table(
        title=f"forewarn bench, {report.seconds:.0f} s", title_justify="left", caption_justify="left"
    )
    table.caption = str(report.computer)
    table.add_column("what")
    table.add_column("measured", justify="right")
    table.add_column("target", justify="right")
    table.add_column("met?", justify="center")
    for row in report.rows:
        table.add_row(
            row.what, row.measured, row.target, _verdict(row), style="bold red" if row.met is False else None
        )
    console.print(table)
    for row in report.rows:
        if row.note:
            console.print(f"{row.what}: {row.note}", markup=False)


def write(report: Report, path: Path) -> None:
    """Write all measurements as JSON."""
    content = {
        "computer": asdict(report.computer),
        "seconds": round(report.seconds, 1),
        "rows": [asdict(row) for row in report.rows],
        "raw": {name: findings.raw for name, findings in report.parts.items()},
    }
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _verdict(row: Row) -> str:
    match row.met:
        case True:
            return "yes"
        case False:
            return "NO"
        case None:
            return ""
