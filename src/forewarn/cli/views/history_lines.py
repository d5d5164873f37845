"""Records of the history as people see them: rows of a list, or a line each."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from forewarn.cli import formatting, terminal
from forewarn.core.words import Kind
from forewarn.wire.answers.record_answers import RecordAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLine:
    """A record; of turns of the clock in a row by one person, the newest: a rehearsal turns it often."""

    record: RecordAnswer
    times: int = 1
    first: RecordAnswer | None = None  # the turn that the row began with

    @property
    def reason(self) -> str | None:
        """The reason that is shown."""
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
    empty="Nothing has happened.",
)


def folded(records: Iterable[RecordAnswer], lines: Iterable[HistoryLine] = ()) -> list[HistoryLine]:
    """Add records to lines, newest first; turns of the clock in a row become one line."""
    found = list(lines)
    for record in records:
        if found and _is_same_turning(found[-1].record, record):
            found[-1] = replace(found[-1], times=found[-1].times + 1, first=record)
        else:
            found.append(HistoryLine(record=record))
    return found


def _is_same_turning(newer: RecordAnswer, record: RecordAnswer) -> bool:
    return newer.kind == record.kind == Kind.CLOCK_ADVANCED and newer.by == record.by


def write_record(record: RecordAnswer) -> str:
    """Write a record as one line."""
    by = f"by {record.by}" if record.by else ""
    said = (formatting.utc(record.at), f"{record.kind:16}", _about(record), record.reason, by)
    return "  ".join(part for part in said if part)


def _about(record: RecordAnswer) -> str | None:
    return record.machine or record.host or record.group
