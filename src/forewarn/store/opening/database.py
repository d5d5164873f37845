"""Which database is meant, and what is common to connections to SQLite and to PostgreSQL."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, event, make_url
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import ArgumentError

from forewarn.core.errors import Invalid
from forewarn.store.opening.deadlines import Deadlines
from forewarn.store.opening.failures import is_locked

# How many connections there are at most: to read, one for each thread that reads for people and some for the
# worker and those who call webhooks; to write, the worker's and those of what it does apart.
READING = 8
WRITING = 4
# Longer than any use case takes; shorter than a silent database is waited for (`deadlines.py`).
LOCK_SECONDS = 3

_EXPECTED = "expected sqlite:///FILE or postgresql://USER@HOST/NAME"
_POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg")


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A database as `--database` names it."""

    url: URL
    name: str  # what messages call it; never holds a password
    file: Path | None = None  # None: PostgreSQL, or SQLite in memory

    @property
    def embedded(self) -> bool:
        """Whether it is SQLite."""
        return self.url.get_backend_name() == "sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """How to read and how to write; both may draw on the same connections."""

    reading: Engine
    writing: Engine
    deadlines: Deadlines
    probe: Callable[[], None]  # writes something, and raises while the database is silent or locked
    lives: Callable[[], None] = lambda: None  # asks something, and raises while it is silent

    def serve(self) -> None:
        """Wait for no answer longer than callers do, from now on."""
        self.deadlines.arm(self.probe, lives=self.lives)

    def check(self, engine: Engine) -> None:
        """Refuse to ask a database that does not answer."""
        self.deadlines.check(reading=engine is not self.writing)

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
    if url.drivername in _POSTGRESQL:
        return _postgresql(url)
    raise Invalid(f"database {url.drivername}://…: {_EXPECTED}")


def without_password(text: str) -> str:
    """Return a database's URL as it may be shown and logged."""
    return make_url(text).render_as_string(hide_password=True)


def _sqlite(url: URL) -> Database:
    if url.host or url.query:
        raise Invalid(f"database {url.render_as_string()}: {_EXPECTED}, without a host and options")
    if url.database in (None, "", ":memory:"):
        return Database(url=URL.create("sqlite"), name="the database in memory")
    name = str(url.database)
    # Absolute, so that it stays the same file if the working directory changes.
    file = Path(name).expanduser().absolute()
    return Database(url=URL.create("sqlite", database=str(file)), name=name, file=file)


def _postgresql(url: URL) -> Database:
    host = url.host or url.query.get("host") or "localhost"
    return Database(url=url.set(drivername="postgresql+psycopg"), name=f"{url.database} on {host}")


def read_json(text: str | None) -> Any:
    """Read a column of JSON."""
    # Most of what is kept so is empty, and a fleet has much of it.
    if text == "{}":
        return {}
    if text == "[]":
        return []
    return None if text is None else json.loads(text)


def note_locked(engine: Engine, deadlines: Deadlines) -> None:
    """Let those who come next not wait too for what another process has locked."""

    @event.listens_for(engine, "handle_error")
    def note(context: ExceptionContext) -> None:
        if is_locked(context.original_exception):
            deadlines.fell_silent("is being written by another process: try again", reads_too=False)
