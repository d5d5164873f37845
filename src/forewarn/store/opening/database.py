"""Database URLs, the engines of a database, and its errors translated into the errors of `core`."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, event, make_url
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    InternalError,
    OperationalError,
)

from forewarn.core.errors import Conflict, ForewarnError, Invalid, Unavailable
from forewarn.store.opening.deadlines import Deadlines

# By the name of the constraint, as PostgreSQL reports it, or its columns, as SQLite does.
_NOT_UNIQUE = (
    ("machines_name", "machines.project, machines.key", "another machine of the project has that name"),
    ("machines_address", "machines.network, machines.address", "another machine has that address"),
    ("machines_port", "machines.port", "another machine has that port"),
)

# By SQLite's primary result codes: https://www.sqlite.org/rescode.html
_SQLITE: dict[int, tuple[type[ForewarnError], str]] = {
    3: (Unavailable, "may not be read or written: check its permissions"),
    5: (Unavailable, "is being written by another process: try again"),
    6: (Unavailable, "is being written by another process: try again"),
    8: (Unavailable, "cannot be written: check its permissions and its folder's"),
    10: (Unavailable, "cannot be read or written, the disk has failed: check the disk"),
    11: (Unavailable, "is damaged: restore a backup"),
    13: (Unavailable, "cannot grow, the disk is full: free some space"),
    14: (Unavailable, "cannot be opened: check that its folder exists and can be written to"),
    26: (Invalid, "is not an SQLite database: use another --database"),
}

# The codes of PostgreSQL for which there is advice:
# https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRESQL = {
    # The answer of a standby to BEGIN READ WRITE. No other statement here can be unsupported.
    "0A000": "is read-only: connect to the primary",
    "25006": "is read-only: connect to the primary",
    "42501": "refuses this user: grant it all rights on the database",
    "53100": "cannot grow, the disk is full: free some space",
    "53300": "has no connection left: raise its max_connections",
    "55P03": "is being written by another process: try again",
}

_LOCKED_SQLITE = (5, 6)
_LOCKED_POSTGRESQL = "55P03"


def is_locked(error: BaseException) -> bool:
    """Return whether a wait for the lock of another process timed out."""
    if (code := getattr(error, "sqlite_errorcode", None)) is not None:
        return code & 0xFF in _LOCKED_SQLITE
    return getattr(error, "sqlstate", None) == _LOCKED_POSTGRESQL


def translate_failures(engine: Engine, name: str) -> None:
    """Raise every failure of an engine as one of the errors of `core`."""

    @event.listens_for(engine, "handle_error")
    def translate(context: ExceptionContext) -> ForewarnError | None:
        # The pool handles a failed ping itself.
        return None if context.is_pre_ping else _translation(context, name)


def _translation(context: ExceptionContext, name: str) -> ForewarnError | None:
    original = context.original_exception
    if isinstance(original, UnicodeEncodeError | OverflowError):
        return Invalid(f"{name} cannot store this value: {original}")
    match context.sqlalchemy_exception:
        case IntegrityError():
            return Conflict(_not_unique(str(original)))
        case DataError():
            return Invalid(f"{name} cannot store this value: {_first_line(original)}")
        case OperationalError() | InternalError() | InterfaceError():
            return _by_code(original, name) or Unavailable(
                f"{name} cannot be used, check that it is up: {_first_line(original)}"
            )
        case DBAPIError():
            return _by_code(original, name)
        case _:
            return None


def _not_unique(text: str) -> str:
    for constraint, columns, meaning in _NOT_UNIQUE:
        if constraint in text or text.endswith(columns):
            return meaning
    return "another call saved the same thing first: try again"


def _by_code(error: BaseException, name: str) -> ForewarnError | None:
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF in _SQLITE:
        kind, advice = _SQLITE[code & 0xFF]
        return kind(f"{name} {advice}")
    advice = _POSTGRESQL.get(getattr(error, "sqlstate", None) or "", "")
    return Unavailable(f"{name} {advice}") if advice else None


def _first_line(error: object) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


# The most connections. Reading: one for each thread that reads for people, and some for the worker and
# webhooks. Writing: one for the worker, and some for writes that do not take the lock of writers.
READING = 8
WRITING = 4
# Longer than any use case takes; shorter than the limit for a database that does not answer (`deadlines.py`).
LOCK_SECONDS = 3

_EXPECTED = "expected sqlite:///FILE or postgresql://USER@HOST/NAME"
_POSTGRESQL_NAMES = ("postgresql", "postgres", "postgresql+psycopg")


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A database as `--database` names it."""

    url: URL
    name: str  # for messages; never holds a password
    file: Path | None = None  # None: PostgreSQL, or SQLite in memory

    @property
    def embedded(self) -> bool:
        """Whether it is SQLite."""
        return self.url.get_backend_name() == "sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """The engines that read and write; both may use the same connections."""

    reading: Engine
    writing: Engine
    deadlines: Deadlines
    probe: Callable[[], None]  # writes; raises while the database does not answer or is locked
    ping: Callable[[], None] = lambda: None  # reads; raises while the database does not answer

    def dispose(self) -> None:
        """Close every connection."""
        self.deadlines.disarm()
        self.reading.dispose()
        self.writing.dispose()


def parse_database(text: str) -> Database:
    """Parse a database's URL."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # The text is not repeated: it may hold a password.
        raise Invalid(f"the database's URL cannot be read: {_EXPECTED}") from None
    if url.drivername == "sqlite":
        return _sqlite(url)
    if url.drivername in _POSTGRESQL_NAMES:
        return _postgresql(url)
    raise Invalid(f"database {url.drivername}://…: {_EXPECTED}")


def without_password(text: str) -> str:
    """Return the URL of a database for messages and logs."""
    return make_url(text).render_as_string(hide_password=True)


def _sqlite(url: URL) -> Database:
    if url.host or url.query:
        raise Invalid(f"database {url.render_as_string()}: {_EXPECTED}, without a host and options")
    if url.database in (None, "", ":memory:"):
        return Database(url=URL.create("sqlite"), name="the database in memory")
    name = str(url.database)
    # Absolute: the working directory may change.
    file = Path(name).expanduser().absolute()
    return Database(url=URL.create("sqlite", database=str(file)), name=name, file=file)


def _postgresql(url: URL) -> Database:
    host = url.host or url.query.get("host") or "localhost"
    return Database(url=url.set(drivername="postgresql+psycopg"), name=f"{url.database} on {host}")


def read_json(text: str | None) -> Any:
    """Read a column of JSON."""
    # Most values are empty, and a fleet has many of them.
    if text == "{}":
        return {}
    if text == "[]":
        return []
    return None if text is None else json.loads(text)


def fail_fast_when_locked(engine: Engine, deadlines: Deadlines) -> None:
    """Fail fast while another process holds the lock."""

    @event.listens_for(engine, "handle_error")
    def note(context: ExceptionContext) -> None:
        if is_locked(context.original_exception):
            deadlines.fail_fast("is being written by another process: try again", reads_too=False)
