"""How the server logs: set up at start, and again when it reads its settings anew."""

import logging
import socket
import sys
from datetime import UTC, datetime
from logging.handlers import SYSLOG_UDP_PORT, SysLogHandler

from forewarn.api.audit import AUDIT
from forewarn.config import LogSettings, Settings
from forewarn.core.errors import Invalid
from forewarn.core.redaction import unmarked
from forewarn.wire.texts import LogForm, log_line, named

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
