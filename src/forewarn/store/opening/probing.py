"""What a database holds, whatever its schema; nothing is made and nothing changed."""

from collections.abc import Callable

from sqlalchemy import Connection, inspect, literal, select

from forewarn.store import tables
from forewarn.store.opening.database import create_engines, parse_database
from forewarn.store.opening.lock import check_unserved
from forewarn.store.opening.schema import revision


def is_store(url: str) -> bool:
    """Return whether there is a store in a database."""
    return _probe(url, lambda connection: revision(connection) is not None)


def any_token(url: str) -> bool:
    """Return whether a token was ever made in a database."""
    return _probe(url, _has_token)


def _has_token(connection: Connection) -> bool:
    known = inspect(connection).has_table(tables.tokens.name)
    return (
        known
        and connection.execute(select(literal(1)).select_from(tables.tokens).limit(1)).first() is not None
    )


def _probe(url: str, holds: Callable[[Connection], bool]) -> bool:
    database = parse_database(url)
    if database.embedded and (database.file is None or not database.file.exists()):
        return False
    check_unserved(database)
    engines = create_engines(database)
    try:
        with engines.reading.begin() as connection:
            return holds(connection)
    finally:
        engines.dispose()
