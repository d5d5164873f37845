"""Log lines as text and as JSON."""

import json
from datetime import UTC, datetime

from forewarn.wire.texts import LogForm, log_line

AT = datetime(2026, 1, 5, 12, 0, 0, 250_000, tzinfo=UTC)


def text(message: str = "order-placed", *, level: str = "info", trace: str = "", **fields: object) -> str:
    return log_line(LogForm.TEXT, at=AT, level=level, message=message, fields=fields, trace=trace)


def test_a_text_names_its_fields_and_quotes_what_has_blanks() -> None:
    assert text(by="olga", reason="old disks", host=None) == (
        '2026-01-05 12:00:00Z order-placed by=olga reason="old disks"'
    )
    assert text(level="warning") == "2026-01-05 12:00:00Z warning: order-placed"


def test_a_value_cannot_forge_a_log_line() -> None:
    assert "\n" not in text("a\nb", reason="c\n2026-01-05 forged\x1b[0m")
    assert text(trace="Traceback\n  x").splitlines()[1:] == ["Traceback", "  x"]


def test_json_has_one_object_for_each_line() -> None:
    line = log_line(
        LogForm.JSON, at=AT, level="error", message="x", fields={"n": 1, "host": None}, trace="Trace\nback"
    )
    assert "\n" not in line
    assert json.loads(line) == {
        "at": "2026-01-05T12:00:00.250+00:00",
        "level": "error",
        "message": "x\nTrace\nback",
        "n": 1,
    }
