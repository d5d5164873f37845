"""Records of the history as people see them: rows of a list, or a line each."""

from typing import Any

from forewarn.cli import formatting, terminal

CLOCK_ADVANCED = "clock-advanced"

LIST = terminal.TableLayout(
    columns=("NUMBER", "AT", "WHAT", "ON", "EVENT", "ORDER", "BY", "WHY"),
    wraps=("WHY",),
    spare=("NUMBER", "BY", "ORDER", "EVENT"),
)


def folded(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make one of turns of the clock in a row by the same person: a rehearsal turns it every moment.

    The newest of them is kept, with the moment from which on it was turned, and how often.
    """
    lines: list[dict[str, Any]] = []
    for record in records:
        newer = lines[-1] if lines else None
        if newer is None or not _is_same_turning(newer, record):
            lines.append(record)
            continue
        times = newer.get("turns", 1) + record.get("turns", 1)
        last = newer.get("last", newer["reason"])
        said = f"{times} times from {formatting.at(record['at'])} on, the last {last}"
        lines[-1] = {**newer, "turns": times, "last": last, "reason": said}
    return lines


def _is_same_turning(newer: dict[str, Any], record: dict[str, Any]) -> bool:
    return {newer["kind"], record["kind"]} == {CLOCK_ADVANCED} and newer["by"] == record["by"]


def row(record: dict[str, Any]) -> tuple[object, ...]:
    """Make a record a row of the list."""
    return (
        record["number"],
        formatting.at(record["at"]),
        record["kind"],
        record["machine"] or record["host"] or record["group"],
        terminal.short(record["event"]),
        terminal.short(record["order"]),
        record["by"],
        record["reason"],
    )


def line(record: dict[str, Any]) -> str:
    """Write a record as one line."""
    about = record["machine"] or record["host"] or record["group"] or ""
    by = f"by {record['by']}" if record["by"] else ""
    said = (formatting.at(record["at"]), f"{record['kind']:16}", about, record["reason"], by)
    return "  ".join(part for part in said if part)
