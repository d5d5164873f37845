"""The databases' errors as core's: what is wrong, and what to do about it."""

from collections.abc import Callable

from sqlalchemy import Engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    InternalError,
    OperationalError,
)

from forewarn.core.errors import Conflict, ForewarnError, Invalid, Unavailable

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

# By PostgreSQL's codes, where there is something to advise: https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRESQL = {
    # What a standby answers to BEGIN READ WRITE; nothing else that is used here is ever unsupported.
    "0A000": "is read-only: connect to the primary",
    "25006": "is read-only: connect to the primary",
    "42501": "refuses this user: grant it all rights on the database",
    "53100": "cannot grow, the disk is full: free some space",
    "53300": "has no connection left: raise its max_connections",
    "55P03": "is being written by another process: try again",
}

_TROUBLE = (OperationalError, InternalError, InterfaceError)


_LOCKED_SQLITE = (5, 6)
_LOCKED_POSTGRESQL = "55P03"


def is_locked(error: BaseException) -> bool:
    """Return whether a database was waited for in vain, because another process has locked it."""
    if (code := getattr(error, "sqlite_errorcode", None)) is not None:
        return code & 0xFF in _LOCKED_SQLITE
    return getattr(error, "sqlstate", None) == _LOCKED_POSTGRESQL


def translate_failures(engine: Engine, name: str) -> None:
    """Have every failure of an engine raised as one of core's errors."""
    event.listen(engine, "handle_error", _translator(name))


def _translator(name: str) -> Callable[[ExceptionContext], ForewarnError | None]:
    def translate(context: ExceptionContext) -> ForewarnError | None:
        # The pool asks whether a connection lives, and deals with the answer itself.
        return None if context.is_pre_ping else _translation(context, name)

    return translate


def _translation(context: ExceptionContext, name: str) -> ForewarnError | None:
    original = context.original_exception
    if isinstance(original, UnicodeEncodeError | OverflowError):
        return Invalid(f"{name} cannot keep such a value: {original}")
    match context.sqlalchemy_exception:
        case IntegrityError():
            return Conflict(_not_unique(str(original)))
        case DataError():
            return Invalid(f"{name} cannot keep such a value: {_first_line(original)}")
        case DBAPIError() as error:
            return _by_code(original, name) or (_trouble(error, name))
        case _:
            return None


def _not_unique(text: str) -> str:
    for constraint, columns, meaning in _NOT_UNIQUE:
        if constraint in text or text.endswith(columns):
            return meaning
    return "somebody else saved the same thing first: try again"


def _by_code(error: BaseException, name: str) -> ForewarnError | None:
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF in _SQLITE:
        kind, advice = _SQLITE[code & 0xFF]
        return kind(f"{name} {advice}")
    advice = _POSTGRESQL.get(getattr(error, "sqlstate", None) or "", "")
    return Unavailable(f"{name} {advice}") if advice else None


def _trouble(error: DBAPIError, name: str) -> ForewarnError | None:
    if not isinstance(error, _TROUBLE):
        return None
    return Unavailable(f"{name} cannot be used, check that it is up: {_first_line(error.orig)}")


def _first_line(error: object) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
