"""Tokens made and revoked on the store itself, beside a running server or before there is one."""

import getpass
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from forewarn.clock import clock_of
from forewarn.config import Settings
from forewarn.control.tokens import Tokens
from forewarn.core.access import Grant
from forewarn.core.errors import Conflict
from forewarn.server.program import settings_of
from forewarn.server.wiring import new_id, tokens_of
from forewarn.store import lock
from forewarn.store.sql import SqlStore, open_store
from forewarn.wire import operator

# More than anybody reads; a list on the store is answered whole.
ALL = 1_000_000


def create(database: str, wanted: Grant) -> dict[str, Any]:
    """Make a token; answers as the API does."""
    with _tokens(database) as tokens:
        token, secret = tokens.create(wanted, by=_who())
    return {"token": operator.token(token), "secret": secret}


def list_all(database: str) -> dict[str, Any]:
    """List tokens; answers as the API does."""
    with _tokens(database) as tokens:
        found, after = tokens.list(after=None, limit=ALL)
    return {"tokens": [operator.token(token) for token in found], "next": after}


def revoke(database: str, name: str) -> Mapping[str, Any]:
    """Revoke a token; answers as the API does."""
    with _tokens(database) as tokens:
        revoked = tokens.revoke(name, by=_who())
    return {"token": operator.token(revoked.token), "warnings": list(revoked.warnings)}


@contextmanager
def _tokens(database: str) -> Iterator[Tokens]:
    settings = settings_of({"database": database})
    clock = clock_of(settings.clock)
    store = _opened(settings)
    try:
        with store.read() as snapshot:
            reached = snapshot.reached()
        if reached is not None:
            clock.start_from(reached)
        yield tokens_of(store, clock)
    finally:
        store.close()


def _opened(settings: Settings) -> SqlStore:
    """Open a store; its schema is brought up to date only if no server runs on it."""
    try:
        with lock.hold(settings.database):
            return open_store(settings.database, new_id=new_id)
    except Conflict:
        return open_store(settings.database, new_id=new_id, as_it_is=True)


def _who() -> str:
    """Name whoever types this, for the records."""
    try:
        return f"{getpass.getuser()} (on the store)"
    except (KeyError, OSError):
        return "somebody (on the store)"
