"""Turns of the clock in a row are one line of the history that people read."""

from typing import Any

from forewarn.cli.views.history_lines import folded


def record(number: int, kind: str = "clock-advanced", by: str | None = "anna") -> dict[str, Any]:
    at = f"2026-01-05T12:00:{number:02}Z"
    return {"number": number, "at": at, "kind": kind, "by": by, "reason": f"by 1 s, no {number}"}


def said(records: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(each["number"], each["reason"]) for each in folded(records)]


def test_turns_in_a_row_are_one_line() -> None:
    assert said([record(3), record(2), record(1)]) == [
        (3, "3 times from 2026-01-05 12:00:01 UTC on, the last by 1 s, no 3")
    ]


def test_what_is_folded_can_be_folded_on_with_the_next_page() -> None:
    first = folded([record(4), record(3)])
    assert said([*first, record(2), record(1)]) == said([record(4), record(3), record(2), record(1)])


def test_turns_of_others_and_other_records_stay_lines_of_their_own() -> None:
    records = [record(5), record(4, by="bert"), record(3, kind="step-done"), record(2, kind="step-done")]
    assert folded(records) == records
