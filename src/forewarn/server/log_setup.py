"""The log: its configuration, the audit log to syslog, and a line for each saved record."""

import logging
import socket
import sys
from datetime import UTC, datetime
from logging.handlers import SYSLOG_UDP_PORT, SysLogHandler

from forewarn.api.audit import AUDIT
from forewarn.config import LogSettings, Settings
from forewarn.core.basic_types import Kind
from forewarn.core.errors import Invalid
from forewarn.core.redaction import unmarked
from forewarn.store.saved import Saved, records_of
from forewarn.wire.texts import LogForm, log_line, named, write_time

# These loggers write much, and those of the HTTP client write the URLs of webhooks, which are secret.
CHATTY = ("alembic", "uvicorn", "httpx", "httpcore", "asyncio")
IDENT = "forewarn"

log = logging.getLogger(__name__)


def set_up_log(settings: Settings) -> None:
    """Configure the log, at the start or on reload; if this raises Invalid, nothing has changed."""
    # The format has no thread or process, and reading them takes time for each line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    to_stderr = logging.StreamHandler(sys.stderr)
    to_stderr.setFormatter(LogFormatter(LogForm(settings.log.format)))
    audit = _syslog(settings.log)
    _replace(logging.getLogger(), [to_stderr])
    logging.getLogger().setLevel(settings.log.level.upper())
    _replace(AUDIT, audit)
    # The audit log is complete at every log level.
    AUDIT.setLevel(logging.INFO)
    AUDIT.propagate = True
    for chatty in CHATTY:
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # Uvicorn warns of each request that it cannot parse, so any caller could fill the log.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    # psycopg warns of each pipeline that fails, but the error of the statement is logged anyway.
    logging.getLogger("psycopg").setLevel(logging.ERROR)


def set_up_audit(settings: Settings) -> None:
    """Send audit lines only to syslog, for a command that works directly on the store."""
    _replace(AUDIT, _syslog(settings.log))
    AUDIT.setLevel(logging.INFO)
    AUDIT.propagate = False


class LogFormatter(logging.Formatter):
    """Formats a record as one line with fields."""

    def __init__(self, form: LogForm) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        return log_line(
            self._form,
            at=datetime.fromtimestamp(record.created, UTC),
            level=record.levelname.lower(),
            message=unmarked(record.getMessage()),
            fields=getattr(record, "fields", {}),
            trace=self.formatException(record.exc_info) if record.exc_info else "",
        )


class SyslogFormatter(LogFormatter):
    """Formats a record without the time and the level, which syslog adds."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        if self._form is LogForm.JSON:
            return super().format(record)
        return named(unmarked(record.getMessage()), getattr(record, "fields", {}))


class Syslog(SysLogHandler):
    """Sends lines to syslog without blocking; logs a warning when syslog does not accept a line."""

    socket: socket.socket

    def __init__(self, address: str | tuple[str, int]) -> None:
        super().__init__(address=address, facility=SysLogHandler.LOG_AUTH)
        self._accepts = True

    def emit(self, record: logging.LogRecord) -> None:
        """Send a line; reconnect once if syslog has restarted."""
        priority = self.encodePriority(self.facility, self.mapPriority(record.levelname))
        line = f"<{priority}>{IDENT}: {self.format(record)}\0".encode()
        try:
            try:
                self._send(line)
            except BlockingIOError:
                raise
            except OSError:
                self.socket.close()
                self.createSocket()
                self._send(line)
            self._accepts = True
        except OSError as error:
            if self._accepts:
                log.warning("syslog does not accept audit lines: %s", error)
            self._accepts = False

    def _send(self, line: bytes) -> None:
        self.socket.setblocking(False)  # noqa: FBT003 - positional only
        if isinstance(self.address, str):
            self.socket.send(line)
        else:
            self.socket.sendto(line, self.address)


def _syslog(settings: LogSettings) -> list[logging.Handler]:
    if settings.syslog is None:
        return []
    try:
        handler = Syslog(_address(settings.syslog))
    except OSError as error:
        raise Invalid(f"[log] syslog: {settings.syslog} cannot be reached: {error}") from None
    handler.setFormatter(SyslogFormatter(LogForm(settings.format)))
    return [handler]


def _address(text: str) -> str | tuple[str, int]:
    """Parse the address of syslog: a path, HOST or HOST:PORT."""
    if text.startswith("/"):
        return text
    host, colon, port = text.rpartition(":")
    if colon and "]" not in port:
        if not port.isdigit():
            raise Invalid(f"[log] syslog: expected a path or HOST:PORT, got {text!r}")
        return host.strip("[]"), int(port)
    return text.strip("[]"), SYSLOG_UDP_PORT


def _replace(logger: logging.Logger, handlers: list[logging.Handler]) -> None:
    old, logger.handlers = logger.handlers, handlers
    for each in old:
        if isinstance(each, SysLogHandler):  # the handler of stderr must not be closed
            each.close()


records_log = logging.getLogger("forewarn.records")

# Kinds that an operator may have to act on.
WARNING_KINDS = frozenset(
    {
        Kind.ORDER_FAILED,
        Kind.STEP_FAILED,
        Kind.STEP_UNKNOWN,
        Kind.HOST_LOST,
        Kind.HOST_FENCED,
        Kind.PROMISE_BROKEN,
        Kind.UNANNOUNCED_IMPACT,
        Kind.NOTICE_LATE,
        Kind.NOTICE_NEVER,
        Kind.WEBHOOK_FAILING,
        Kind.CLOCK_JUMPED,
        Kind.SERVICE_AWAY,
    }
)
# The first words of kinds that come by the thousand, with declared fleets and single steps. The other kinds
# are about orders, events, rollouts, holds, tokens and the server.
DEBUG_PREFIXES = frozenset({"step", "machine", "group", "host", "project", "history"})
FIELDS = ("number", "project", "group", "host", "machine", "event", "order", "by", "reason")


def level_of(kind: str) -> int:
    """Return the log level of a kind of record."""
    if kind in WARNING_KINDS:
        return logging.WARNING
    is_debug = kind == Kind.CLOCK_ADVANCED or kind.partition("-")[0] in DEBUG_PREFIXES
    return logging.DEBUG if is_debug else logging.INFO


def log_records(saved: Saved) -> None:
    """Log saved records with their service time, which may differ from real time."""
    for record in records_of(saved):
        level = level_of(record.kind)
        if records_log.isEnabledFor(level):
            fields = {name: getattr(record, name) or None for name in FIELDS}
            fields["reason"] = unmarked(record.reason) or None
            fields["at_service_time"] = write_time(record.at)
            # Unlike `log.log`, this does not look for the caller, which takes a third of the time of a line.
            line = records_log.makeRecord(
                records_log.name, level, "", 0, "%s", (str(record.kind),), None, extra={"fields": fields}
            )
            records_log.handle(line)
