"""The log: set up at start, and when the server reads its settings again; a line for each saved record."""

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

# They say much, and what an HTTP client says of its calls names webhooks' addresses, which are secrets.
CHATTY = ("alembic", "uvicorn", "httpx", "httpcore", "asyncio")
IDENT = "forewarn"

log = logging.getLogger(__name__)


def set_up_log(settings: Settings) -> None:
    """Log as is set, instead of as before; can be called at any time. Invalid leaves all as it was."""
    # No line names threads or processes, and to ask for them takes time for each.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    to_stderr = logging.StreamHandler(sys.stderr)
    to_stderr.setFormatter(LogFormatter(LogForm(settings.log.format)))
    audit = _syslog(settings.log)
    _replace(logging.getLogger(), [to_stderr])
    logging.getLogger().setLevel(settings.log.level.upper())
    _replace(AUDIT, audit)
    # Whatever else is left out, changes are told of.
    AUDIT.setLevel(logging.INFO)
    AUDIT.propagate = True
    for chatty in CHATTY:
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # It warns of each request that cannot be read, and strangers could fill the log with them.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    # It warns of each pipeline that ends with an error, which is told as that of any statement.
    logging.getLogger("psycopg").setLevel(logging.ERROR)


def set_up_audit(settings: Settings) -> None:
    """Tell syslog alone of changes, for a command that works on the store beside a server."""
    _replace(AUDIT, _syslog(settings.log))
    AUDIT.setLevel(logging.INFO)
    AUDIT.propagate = False


class LogFormatter(logging.Formatter):
    """Writes a record as one line, with names as fields."""

    def __init__(self, form: LogForm) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        """Write a line."""
        return log_line(
            self._form,
            at=datetime.fromtimestamp(record.created, UTC),
            level=record.levelname.lower(),
            message=unmarked(record.getMessage()),
            fields=getattr(record, "fields", {}),
            trace=self.formatException(record.exc_info) if record.exc_info else "",
        )


class SyslogFormatter(LogFormatter):
    """Writes a record without what syslog adds: the time, and how grave it is."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a line."""
        if self._form is LogForm.JSON:
            return super().format(record)
        return named(unmarked(record.getMessage()), getattr(record, "fields", {}))


class Syslog(SysLogHandler):
    """Sends lines to syslog, and waits for nobody: what it does not take is lost, and that is logged."""

    socket: socket.socket

    def __init__(self, address: str | tuple[str, int]) -> None:
        super().__init__(address=address, facility=SysLogHandler.LOG_AUTH)
        self._takes = True

    def emit(self, record: logging.LogRecord) -> None:
        """Send a line; once more if syslog was started anew meanwhile, but never wait for it."""
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
            self._takes = True
        except OSError as error:
            if self._takes:
                log.warning("syslog does not take what is audited: %s", error)
            self._takes = False

    def _send(self, line: bytes) -> None:
        self.socket.setblocking(False)  # noqa: FBT003 - the socket's own
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
    """Read where syslog is: a path, or a host with its port if it is not the usual one."""
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
        if isinstance(each, SysLogHandler):  # the others are not ours, or stay open: stderr
            each.close()


records_log = logging.getLogger("forewarn.records")

# What a person may have to look after.
GRAVE = frozenset(
    {
        *(
            Kind.ORDER_FAILED,
            Kind.STEP_FAILED,
            Kind.STEP_UNKNOWN,
            Kind.HOST_LOST,
            Kind.HOST_FENCED,
            Kind.PROMISE_BROKEN,
            Kind.UNANNOUNCED_IMPACT,
            Kind.NOTICE_LATE,
            Kind.NOTICE_NEVER,
        ),
        *(Kind.WEBHOOK_FAILING, Kind.CLOCK_JUMPED, Kind.SERVICE_AWAY),
    }
)
# Declared fleets and single steps come by the thousand. The rest happens to orders, events, rollouts, holds
# and tokens, or to the service.
FINE = frozenset({"step", "machine", "group", "host", "project", "history"})
_FINE_KINDS = frozenset({Kind.CLOCK_ADVANCED})
FIELDS = ("number", "project", "group", "host", "machine", "event", "order", "by", "reason")


def level_of(kind: str) -> int:
    """Return how grave a kind of record is."""
    if kind in GRAVE:
        return logging.WARNING
    fine = kind in _FINE_KINDS or kind.partition("-")[0] in FINE
    return logging.DEBUG if fine else logging.INFO


def log_records(saved: Saved) -> None:
    """Log what has been saved; `at` is service time, which need not be the world's."""
    for record in records_of(saved):
        level = level_of(record.kind)
        if records_log.isEnabledFor(level):
            fields = {name: getattr(record, name) or None for name in FIELDS}
            fields["reason"] = unmarked(record.reason) or None
            fields["at_service_time"] = write_time(record.at)
            # As `log.log` does, but without looking for who calls: that takes a third of the time of a line.
            said = records_log.makeRecord(
                records_log.name, level, "", 0, "%s", (str(record.kind),), None, extra={"fields": fields}
            )
            records_log.handle(said)
