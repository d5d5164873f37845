"""Consecutive clock advances are one line of the history."""

from collections.abc import Sequence
from datetime import UTC, datetime

from forewarn.cli.commands.history_commands import HistoryLine, folded
from forewarn.wire.answers.record_answers import RecordAnswer


def record(number: int, kind: str = "clock-advanced", by: str | None = "anna") -> RecordAnswer:
    return RecordAnswer(
        number=number,
        at=datetime(2026, 1, 5, 12, 0, number, tzinfo=UTC),
        kind=kind,
        project=None,
        group=None,
        host=None,
        machine=None,
        event=None,
        order=None,
        by=by,
        reason=f"by 1 s, no {number}",
        topics=(),
    )


def shown(lines: Sequence[HistoryLine]) -> list[tuple[int, str | None]]:
    return [(line.record.number, line.reason) for line in lines]


def test_consecutive_clock_advances_are_one_line() -> None:
    assert shown(folded([record(3), record(2), record(1)])) == [
        (3, "3 times from 2026-01-05 12:00:01 UTC on, the last by 1 s, no 3")
    ]


def test_a_folded_line_continues_on_the_next_page() -> None:
    first = folded([record(4), record(3)])
    whole = folded([record(4), record(3), record(2), record(1)])
    assert shown(folded([record(2), record(1)], first)) == shown(whole)


def test_advances_by_others_and_other_records_have_their_own_lines() -> None:
    records = [record(5), record(4, by="bert"), record(3, kind="step-done"), record(2, kind="step-done")]
    assert [line.record for line in folded(records)] == records
    assert shown(folded(records)) == [(each.number, each.reason) for each in records]
