"""Lines of a log, for people or for programs: a message, and names as fields."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from forewarn.wire.text import on_one_line

# Below these, people need not be told how grave it is.
_PLAIN = frozenset({"debug", "info"})

# Where a field that is not quoted would seem to end, or another to begin.
_UNCLEAR = re.compile(r'[ "=\n]')


class LogForm(StrEnum):
    """How lines look."""

    TEXT = "text"
    JSON = "json"


def log_line(
    form: LogForm, *, at: datetime, level: str, message: str, fields: Mapping[str, Any], trace: str = ""
) -> str:
    """Write a line; fields that are None are left out, and the lines of a stack trace follow a text."""
    if form is LogForm.JSON:
        shown = {name: value for name, value in fields.items() if value is not None}
        head = {"at": at.isoformat(timespec="milliseconds"), "level": level}
        return json.dumps(
            {**head, "message": message + (f"\n{trace}" if trace else ""), **shown}, ensure_ascii=False
        )
    grave = "" if level in _PLAIN else f"{level}: "
    text = f"{at:%Y-%m-%d %H:%M:%SZ} {grave}{named(message, fields)}"
    return f"{text}\n{trace}" if trace else text


def named(message: str, fields: Mapping[str, Any]) -> str:
    """Write a message and its fields, for people: `order-placed order=… by=…`."""
    shown = (f" {name}={_quoted(value)}" for name, value in fields.items() if value is not None)
    # On one line, whatever a caller or a program has said: it must not forge lines of ours.
    return on_one_line(f"{message}{''.join(shown)}")


def _quoted(value: Any) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or _UNCLEAR.search(text) else text
