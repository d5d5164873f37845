"""The agent's log: a line for each thing that happened, readable or JSON, never with a secret in it."""

import json
import logging
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import IO, Any

from forewarn.wire.text import on_one_line

LOGGER = "forewarn.agent"
HIDDEN = "***"


class LogForm(StrEnum):
    """How lines look."""

    TEXT = "text"
    JSON = "json"


class AgentLog:
    """Writes to the log, with names as fields."""

    def __init__(self, logger: logging.Logger | None = None, **fields: Any) -> None:
        self._logger = logger or logging.getLogger(LOGGER)
        self._fields = fields

    def bind(self, **fields: Any) -> "AgentLog":
        """Return a log that adds these fields to every line."""
        return AgentLog(self._logger, **{**self._fields, **fields})

    def info(self, message: str, **fields: Any) -> None:
        """Log that something happened."""
        self._log(logging.INFO, message, fields)

    def warn(self, message: str, **fields: Any) -> None:
        """Log that something is not as it should be."""
        self._log(logging.WARNING, message, fields)

    def _log(self, level: int, message: str, fields: dict[str, Any]) -> None:
        self._logger.log(level, "%s", message, extra={"fields": {**self._fields, **fields}})


class LogFormatter(logging.Formatter):
    """Writes a line."""

    def __init__(self, form: LogForm, secrets: Iterable[str]) -> None:
        super().__init__()
        self._form = form
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        """Write a record as one line."""
        at = datetime.fromtimestamp(record.created, UTC)
        fields = {name: value for name, value in getattr(record, "fields", {}).items() if value is not None}
        message = self._redacted(record.getMessage())
        trace = f"\n{self._redacted(self.formatException(record.exc_info))}" if record.exc_info else ""
        shown = {name: self._redacted(value) for name, value in fields.items()}
        if self._form is LogForm.JSON:
            head = {"at": at.isoformat(timespec="milliseconds"), "level": record.levelname.lower()}
            return json.dumps({**head, "message": message + trace, **shown}, ensure_ascii=False)
        named = "".join(f" {name}={_quoted(value)}" for name, value in shown.items())
        level = "" if record.levelno < logging.WARNING else f"{record.levelname.lower()}: "
        # On one line, whatever an endpoint or a program has said: it must not forge lines of ours.
        return on_one_line(f"{at:%Y-%m-%d %H:%M:%SZ} {level}{message}{named}") + trace

    def _redacted(self, value: Any) -> Any:
        return redacted(value, self._secrets) if isinstance(value, str) else value


def redacted(text: str, secrets: Iterable[str]) -> str:
    """Replace secrets in a text."""
    # The longest first: one secret may be part of another.
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def start_logging(form: LogForm, *, secrets: Iterable[str] = (), stream: IO[str] | None = None) -> AgentLog:
    """Log to stderr, or to another stream; again, to change how."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LogFormatter(form, secrets))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    # What an HTTP client says about its requests names their addresses.
    for chatty in ("httpx", "httpcore", "asyncio"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    return AgentLog()


def _quoted(value: Any) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or any(each in text for each in ' "=\n') else text
