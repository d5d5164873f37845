"""Creating, listing and revoking tokens directly in the store, with or without a running server."""

import getpass
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from forewarn.api.audit import audit
from forewarn.control.token_use_cases import Tokens
from forewarn.core.access import Grant, Role
from forewarn.core.errors import Conflict, NotFound
from forewarn.server.log_setup import set_up_audit
from forewarn.server.preparation import context_of, new_id, new_secret
from forewarn.server.serve import settings_of
from forewarn.server.threads import time_keeping
from forewarn.server.threads.batches import Batches
from forewarn.store.batch import Transact
from forewarn.store.opening import lock
from forewarn.store.opening.database import parse_database
from forewarn.store.opening.schema import is_store
from forewarn.store.store import Store, open_store
from forewarn.wire.answers.access_answers import NewTokenAnswer, RevokedTokenAnswer, TokenAnswer
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.coding import write_body

# Lists are not split into pages.
ALL = 1_000_000


def create(database: str, wanted: Grant, *, say: Callable[[str], None]) -> dict[str, Any]:
    """Create a token; return the API's answer.

    An operator's token may create a new store. A message then names the store, in case of a typing error.
    """
    new = not is_store(database)
    if new and wanted.role is not Role.OPERATOR:
        raise _missing(database)
    with _audited(f"token create {wanted.name} ({wanted.role})"), _tokens(database) as (tokens, transact):
        token, secret = transact(lambda tx: tokens.create(tx, wanted, by=_who()))
    if new:
        say(f"There was no store at {_named(database)}: this command has created one with this token.")
    return write_body(NewTokenAnswer(token=TokenAnswer.like(token), secret=secret))


def list_all(database: str) -> dict[str, Any]:
    """List tokens; return the API's answer."""
    _check_there(database)
    with _tokens(database) as (tokens, _):
        found, after = tokens.list(after=None, limit=ALL)
    return write_body(Page(kind=TokenAnswer, items=[TokenAnswer.like(token) for token in found], next=after))


def revoke(database: str, name: str) -> Mapping[str, Any]:
    """Revoke a token; return the API's answer."""
    _check_there(database)
    with _audited(f"token revoke {name}"), _tokens(database) as (tokens, transact):
        revoked = transact(lambda tx: tokens.revoke(tx, name, by=_who()))
    return write_body(
        RevokedTokenAnswer(token=TokenAnswer.like(revoked.token), warnings=tuple(revoked.warnings))
    )


@contextmanager
def _audited(what: str) -> Iterator[None]:
    """Report a change to syslog, if configured, with its result."""
    set_up_audit(settings_of({}))
    result = "refused"
    try:
        yield
        result = "done"
    finally:
        audit(who=_who(), where="the store", what=what, result=result)


def _check_there(database: str) -> None:
    """Raise NotFound if there is no store, because opening it would create one."""
    if not is_store(database):
        raise _missing(database)


def _missing(database: str) -> NotFound:
    return NotFound(
        f"there is no store at {_named(database)}: check --database; "
        "`forewarn serve` and the first operator token create a new one"
    )


def _named(database: str) -> str:
    """Name a database; a file with its full path, so that a typing error is visible."""
    known = parse_database(database)
    return known.name if known.file is None else str(known.file)


@contextmanager
def _tokens(database: str) -> Iterator[tuple[Tokens, Transact]]:
    settings = settings_of({"database": database})
    with _opened(settings.database) as store:
        context = context_of(store, time_keeping.standing(store), settings)
        yield Tokens(context, new_secret=new_secret), Batches(store).transact


@contextmanager
def _opened(database: str) -> Iterator[Store]:
    """Open a store; migrate its schema only if no server runs on it.

    The lock is released after the store is closed; `FileLock` states the reason.
    """
    with ExitStack() as opened:
        try:
            opened.enter_context(lock.hold(database))
            without_migration = False
        except Conflict:
            without_migration = True
        yield opened.enter_context(
            closing(open_store(database, new_id=new_id, without_migration=without_migration))
        )


def _who() -> str:
    """Name the user of the terminal, for records."""
    try:
        return f"{getpass.getuser()} (on the store)"
    except (KeyError, OSError):
        return "unknown user (on the store)"
