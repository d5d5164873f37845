"""Tokens made and revoked on the store itself, beside a running server or before there is one."""

import getpass
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from forewarn.api.audit import audit
from forewarn.control.token_use_cases import Tokens
from forewarn.core.access import Grant, Role
from forewarn.core.errors import Conflict, NotFound
from forewarn.server.log_setup import set_up_audit
from forewarn.server.serve import settings_of
from forewarn.server.threads import service_time
from forewarn.server.threads.batches import Batches
from forewarn.server.wiring import new_id, tokens_of
from forewarn.store.batch import Transact
from forewarn.store.opening import lock
from forewarn.store.opening.database import parse_database
from forewarn.store.opening.schema import is_store
from forewarn.store.store import Store, open_store
from forewarn.wire.answers.access_answers import NewTokenAnswer, RevokedTokenAnswer, TokenAnswer
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.coding import write_body

# More than a person reads; a list on the store is answered whole.
ALL = 1_000_000


def create(database: str, wanted: Grant, *, say: Callable[[str], None]) -> dict[str, Any]:
    """Make a token; answers as the API does.

    An operator's may be the first thing in a new store, before anybody serves it. That is said: perhaps
    another one was meant.
    """
    new = not is_store(database)
    if new and wanted.role is not Role.OPERATOR:
        raise _missing(database)
    with _audited(f"token create {wanted.name} ({wanted.role})"), _tokens(database) as (tokens, transact):
        token, secret = transact(lambda tx: tokens.create(tx, wanted, by=_who()))
    if new:
        say(f"There was no store at {_named(database)}: a new one is made there, with this token in it.")
    return write_body(NewTokenAnswer(token=TokenAnswer.like(token), secret=secret))


def list_all(database: str) -> dict[str, Any]:
    """List tokens; answers as the API does."""
    _check_there(database)
    with _tokens(database) as (tokens, _):
        found, after = tokens.list(after=None, limit=ALL)
    return write_body(Page(kind=TokenAnswer, items=[TokenAnswer.like(token) for token in found], next=after))


def revoke(database: str, name: str) -> Mapping[str, Any]:
    """Revoke a token; answers as the API does."""
    _check_there(database)
    with _audited(f"token revoke {name}"), _tokens(database) as (tokens, transact):
        revoked = transact(lambda tx: tokens.revoke(tx, name, by=_who()))
    return write_body(
        RevokedTokenAnswer(token=TokenAnswer.like(revoked.token), warnings=tuple(revoked.warnings))
    )


@contextmanager
def _audited(what: str) -> Iterator[None]:
    """Tell syslog, if it is set, of a change on the store itself."""
    set_up_audit(settings_of({}))
    result = "refused"
    try:
        yield
        result = "done"
    finally:
        audit(who=_who(), where="the store", what=what, result=result)


def _check_there(database: str) -> None:
    """Refuse to look for tokens where there is no store: opening it would make one."""
    if not is_store(database):
        raise _missing(database)


def _missing(database: str) -> NotFound:
    return NotFound(
        f"there is no store at {_named(database)}: check --database; "
        "`forewarn serve` makes a new one, and so does an operator's first token"
    )


def _named(database: str) -> str:
    """Name a database so that a slip can be seen: a file with all its folders."""
    known = parse_database(database)
    return known.name if known.file is None else str(known.file)


@contextmanager
def _tokens(database: str) -> Iterator[tuple[Tokens, Transact]]:
    settings = settings_of({"database": database})
    with _opened(settings.database) as store:
        yield tokens_of(store, service_time.standing(store), settings), Batches(store).transact


@contextmanager
def _opened(database: str) -> Iterator[Store]:
    """Open a store; its schema is brought up to date only if no server runs on it.

    The lock is released after the store is closed: `FileLock` says why.
    """
    with ExitStack() as opened:
        try:
            opened.enter_context(lock.hold(database))
            without_migration = False
        except Conflict:
            without_migration = True
        yield opened.enter_context(closing(open_store(database, new_id=new_id, without_migration=without_migration)))


def _who() -> str:
    """Name the person at the terminal, for the records."""
    try:
        return f"{getpass.getuser()} (on the store)"
    except (KeyError, OSError):
        return "somebody (on the store)"
