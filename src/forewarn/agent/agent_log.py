"""The agent's log: one line per occurrence, as text or JSON, with secrets redacted."""

import logging
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import IO, Any

from forewarn.wire.texts import LogForm, log_line

__all__ = ["AgentLog", "AgentLogFormatter", "LogForm", "redacted", "start_logging"]

LOGGER = "forewarn.agent"
HIDDEN = "***"


class AgentLog:
    """Writes to the log, with names as fields."""

    def __init__(self, logger: logging.Logger | None = None, **fields: Any) -> None:
        self._logger = logger or logging.getLogger(LOGGER)
        self._fields = fields

    def bind(self, **fields: Any) -> "AgentLog":
        """Return a log that adds these fields to every line."""
        return AgentLog(self._logger, **{**self._fields, **fields})

    def info(self, message: str, **fields: Any) -> None:
        """Log an occurrence."""
        self._log(logging.INFO, message, fields)

    def warn(self, message: str, **fields: Any) -> None:
        """Log a problem."""
        self._log(logging.WARNING, message, fields)

    def _log(self, level: int, message: str, fields: dict[str, Any]) -> None:
        self._logger.log(level, "%s", message, extra={"fields": {**self._fields, **fields}})


class AgentLogFormatter(logging.Formatter):
    """Formats a record as one line and redacts secrets."""

    def __init__(self, form: LogForm, secrets: Iterable[str]) -> None:
        super().__init__()
        self._form = form
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        fields = getattr(record, "fields", {})
        return log_line(
            self._form,
            at=datetime.fromtimestamp(record.created, UTC),
            level=record.levelname.lower(),
            message=self._redacted(record.getMessage()),
            fields={name: self._redacted(value) for name, value in fields.items()},
            trace=self._redacted(self.formatException(record.exc_info)) if record.exc_info else "",
        )

    def _redacted(self, value: Any) -> Any:
        return redacted(value, self._secrets) if isinstance(value, str) else value


def redacted(text: str, secrets: Iterable[str]) -> str:
    """Replace the secrets in a text."""
    # The longest first: one secret may be part of another.
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def start_logging(form: LogForm, *, secrets: Iterable[str] = (), stream: IO[str] | None = None) -> AgentLog:
    """Log to stderr or another stream; a second call replaces the first."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(AgentLogFormatter(form, secrets))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    # These libraries log the URLs of requests, which may contain secrets.
    for chatty in ("httpx", "httpcore", "asyncio"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    return AgentLog()
