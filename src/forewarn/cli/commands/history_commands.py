"""`forewarn history`: show records, and export them to a file."""

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import IO, Any, Literal

import click

from forewarn.cli import formatting, terminal
from forewarn.cli.command_group import PATH, WrongUsage, flag, option
from forewarn.cli.formatting import counted
from forewarn.cli.options import OF_HOST, OF_MACHINE, full_id, kinds
from forewarn.cli.session import EVERYWHERE, Noun, Session
from forewarn.client.calls import OperatorClient
from forewarn.client.replies import PAGE, RequestRefused
from forewarn.core.basic_types import Kind
from forewarn.wire.answers.event_answers import EventAnswer
from forewarn.wire.answers.order_answers import OrderAnswer
from forewarn.wire.answers.record_answers import RecordAnswer, RecordsAnswer

OF_EVENT = option("--event", "EVENT", "Only of this event.")
OF_ORDER = option("--order", "ORDER", "Only of this order.")
TEXT = option("--text", "TEXT", "Only records that contain this text, in any case.")
BY = option("--by", "NAME", "Only actions of this person, guest or service.")
OF_GROUP = option("--group", "GROUP", "Only of this group.")
UNTIL = option("--until", "TIME", "Only before this time.")
SINCE = option(
    "--since",
    "NUMBER|TIME",
    "Only after this record number, or from this time on, such as 2026-01-31T12:00:00Z.",
)
OUTPUT = option("--output -o", "FILE", "The file to write. Default: standard output.", type=PATH)
FORMAT = option(
    "--format format_",
    None,
    "Default: from the name of the file, else jsonl.",
    type=click.Choice(["jsonl", "csv"]),
)
RESUME = flag("--resume", "Continue after the last record in the file.")


FILTERS = (OF_MACHINE, OF_EVENT, OF_ORDER, OF_GROUP, OF_HOST, BY, TEXT, kinds("--kind"), UNTIL)

COLUMNS = (
    *("number", "at", "kind", "project", "group", "host"),
    *("machine", "event", "order", "by", "reason"),
)
# Longer than any record: the last record of a file lies within.
TAIL_BYTES = 64 * 1024
Record = dict[str, Any]


def history(session: Session, since: str | None, limit: int, **filters: Any) -> None:
    """Show records, newest first; `export` writes them to a file."""
    if since and _is_number(since):
        raise WrongUsage(
            "--since",
            f"expected a time such as 2026-01-31T12:00:00Z, got {since!r}; "
            "`history export --since` also takes the number of a record",
        )
    wanted = _wanted(session, filters, since=since)
    reply = session.client.get("/v1/history", RecordsAnswer, **wanted, limit=limit)
    session.print_reply(reply, lambda page: _show(session, page, wanted, limit=limit))


app = Noun(
    [
        *FILTERS,
        option("--since", "TIME", "Only from this time on, such as 2026-01-31T12:00:00Z."),
        option("--limit", "N", "The most records to show.", type=click.IntRange(min=1, max=1000), default=50),
        *EVERYWHERE,
    ],
    alone=history,
    no_args_is_help=False,
)


@app.verb(*FILTERS, OUTPUT, FORMAT, SINCE, RESUME)
def export(
    session: Session,
    output: Path | None,
    format_: Literal["jsonl", "csv"] | None,
    since: str | None,
    resume: bool,
    **filters: Any,
) -> None:
    """Write all records, oldest first, as JSON lines or as CSV."""
    file = None if output is None or str(output) == "-" else output
    if resume and file is None:
        raise WrongUsage("--resume", "requires --output")
    form = format_ or ("csv" if file is not None and file.suffix == ".csv" else "jsonl")
    above = int(since) if since and _is_number(since) else 0
    wanted = _wanted(session, filters, since=None if since and _is_number(since) else since)
    write_export(session, file, form, above=above, wanted=wanted, resume=resume)


def _wanted(session: Session, filters: dict[str, Any], *, since: str | None) -> dict[str, Any]:
    """Return the query, with whole ids."""
    event, order = filters["event"], filters["order"]
    return {
        **session.scope,
        **filters,
        "event": full_id(session.client, EventAnswer, event) if event else None,
        "order": full_id(session.client, OrderAnswer, order) if order else None,
        "since": since,
    }


def _is_number(text: str) -> bool:
    """Return whether a text is a record's number rather than a time."""
    return text.isascii() and text.isdigit()


def _show(session: Session, page: RecordsAnswer, wanted: dict[str, Any], *, limit: int) -> None:
    """Show `limit` lines; consecutive clock advances share one."""
    lines = folded(page.records)
    while len(lines) < limit and page.next is not None:
        more = session.client.get("/v1/history", RecordsAnswer, **wanted, limit=PAGE, after=page.next)
        page = more.value
        lines = folded(page.records, lines)
    none = formatting.none_found("records", LIST.empty, **wanted)
    replace(LIST, empty=none).print(lines[:limit])


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLine:
    """A record, or the newest of consecutive clock advances by one person."""

    record: RecordAnswer
    times: int = 1
    first: RecordAnswer | None = None  # the oldest of the advances

    @property
    def reason(self) -> str | None:
        """The reason to show."""
        if self.first is None:
            return self.record.reason
        return f"{self.times} times from {formatting.utc(self.first.at)} on, the last {self.record.reason}"


LIST = terminal.ItemTable[HistoryLine](
    columns={
        "NUMBER": lambda line: line.record.number,
        "AT": lambda line: line.record.at,
        "WHAT": lambda line: line.record.kind,
        "PROJECT": lambda line: line.record.project,
        "ON": lambda line: _about(line.record),
        "EVENT": lambda line: terminal.short(line.record.event),
        "ORDER": lambda line: terminal.short(line.record.order),
        "BY": lambda line: line.record.by,
        "WHY": lambda line: line.reason,
    },
    wraps=("WHY",),
    spare=("NUMBER", "BY", "ORDER", "EVENT"),
    spare_if_same=("PROJECT",),
    empty="No records.",
)


def folded(records: Iterable[RecordAnswer], lines: Iterable[HistoryLine] = ()) -> list[HistoryLine]:
    """Add records to lines, newest first; consecutive clock advances become one line."""
    found = list(lines)
    for record in records:
        if found and _is_same_advance(found[-1].record, record):
            found[-1] = replace(found[-1], times=found[-1].times + 1, first=record)
        else:
            found.append(HistoryLine(record=record))
    return found


def _is_same_advance(newer: RecordAnswer, record: RecordAnswer) -> bool:
    return newer.kind == record.kind == Kind.CLOCK_ADVANCED and newer.by == record.by


def write_record(record: RecordAnswer) -> str:
    """Write a record as one line."""
    by = f"by {record.by}" if record.by else ""
    parts = (formatting.utc(record.at), f"{record.kind:16}", _about(record), record.reason, by)
    return "  ".join(part for part in parts if part)


def _about(record: RecordAnswer) -> str | None:
    return record.machine or record.host or record.group


def write_export(
    session: Session, file: Path | None, form: str, *, above: int, wanted: dict[str, Any], resume: bool
) -> None:
    """Write the wanted records above a number; `resume` takes the number from the file."""
    if resume and file is not None:
        above = max(above, last_number(file, form))
    count, last = 0, above
    with session.client.keeping_connection() as client:
        pages = _pages(client, above, wanted)
        # Fetched before the file is created, so that an unreachable server leaves no empty file.
        first = next(pages, [])
        with _opened(file, append=resume) as (stream, begun):
            write = _writer(form, stream, headed=begun)
            for page in chain([first], pages):
                for record in page:
                    write(record)
                stream.flush()
                count, last = count + len(page), page[-1]["number"] if page else last
                _progress(f"{counted(count, 'record')}, up to number {last}")
    _show_summary(session, file, count, last)


def _pages(client: OperatorClient, above: int, wanted: dict[str, Any]) -> Iterator[list[Record]]:
    begin = above
    while True:
        page = client.get("/v1/history", RecordsAnswer, above=above, limit=PAGE, **wanted).json
        # Only the first page can start before the oldest record that is kept.
        if above == begin and page["missing_up_to"] is not None:
            gone = f"records after {above} and up to {page['missing_up_to']}"
            terminal.print_error(f"{gone} may be missing: the server has deleted old records")
        if page["records"]:
            yield page["records"]
        if page["next"] is None:
            return
        above = int(page["next"])  # beyond the last record of the page if a filter dropped some


@contextmanager
def _opened(file: Path | None, *, append: bool) -> Iterator[tuple[IO[str], bool]]:
    """Open the output, and return whether it has content."""
    if file is None:
        yield sys.stdout, False
        return
    try:
        with file.open("a" if append else "x", encoding="utf-8", newline="") as stream:
            yield stream, stream.tell() > 0
    except FileExistsError:
        raise RequestRefused(f"{file} exists; choose another name, or continue it with --resume") from None
    except OSError as error:
        raise RequestRefused(f"{file} cannot be written: {error.strerror}") from None


def _writer(form: str, stream: IO[str], *, headed: bool) -> Callable[[Record], object]:
    if form == "jsonl":
        return lambda record: stream.write(f"{json.dumps(record, ensure_ascii=False)}\n")
    rows = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    if not headed:
        rows.writeheader()
    return lambda record: rows.writerow(_row(record))


def _row(record: Record) -> Record:
    """Return the columns of a record on one line, so that `--resume` can read the last line."""
    row = {column: record[column] for column in COLUMNS}
    return row | {"reason": " ".join((row["reason"] or "").splitlines())}


def last_number(file: Path, form: str) -> int:
    """Return the number of the last record in a file, or 0, and cut off an incomplete last line.

    A file that is no export is refused and stays unchanged.
    """
    if not file.exists():
        return 0
    try:
        with file.open("r+b") as stream:
            start = stream.seek(max(0, stream.seek(0, 2) - TAIL_BYTES))
            tail = stream.read()
            if not tail:
                return 0
            whole, _, begun = tail.rpartition(b"\n")
            number = _number_in(whole.rpartition(b"\n")[2].decode(), form)
            if begun:
                stream.truncate(start + len(whole) + 1)
            return number
    except OSError as error:
        raise RequestRefused(f"{file} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, csv.Error):
        raise RequestRefused(f"{file} does not end with a record as {form}; choose another file") from None


def _number_in(line: str, form: str) -> int:
    """Return the number of the record in a line; raise an error if the line is no record."""
    if form == "jsonl":
        record = json.loads(line)
    elif line == ",".join(COLUMNS):
        return 0
    else:
        record = dict(zip(COLUMNS, next(csv.reader([line])), strict=True))
    datetime.fromisoformat(record["at"])
    return int(record["number"])


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text}", end="\033[K", file=sys.stderr, flush=True)


def _show_summary(session: Session, file: Path | None, count: int, last: int) -> None:
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    if file is None:
        return
    summary = {"file": str(file), "records": count, "last": last}
    session.print_answer(
        summary,
        lambda: terminal.echo(f"Wrote {counted(count, 'record')} to {file}, up to number {last}."),
    )
