"""Counting what a store asks its database: statements, and the transactions they are in.

Counts are exact and the same on every computer, so that a test may hold them against a number. `BEGIN` and
`COMMIT` are counted as transactions, `SAVEPOINT` and `RELEASE` as statements.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, event

from forewarn.store.opening.database import Engines
from forewarn.store.store import Store

_OF_TRANSACTIONS = ("BEGIN", "COMMIT")


class Statements:
    """What was asked of a database."""

    def __init__(self, engines: Engines) -> None:
        self._reading = None if engines.reading is engines.writing else engines.reading
        self.clear()

    def clear(self) -> None:
        """Count anew."""
        self.texts: list[str] = []
        self.reads = 0  # transactions that could only read
        self.writes = 0  # transactions that could write, whatever they did
        self.undone = 0  # of both

    def __len__(self) -> int:
        return len(self.texts)

    def listed(self) -> str:
        """List the statements, a line for each, for a test that fails or a person that looks."""
        lines = (f"{n:3} {' '.join(text.split())[:150]}" for n, text in enumerate(self.texts, 1))
        return "\n".join([f"{len(self)} statements, {self.reads} reads, {self.writes} writes", *lines])

    def executed(self, _: Connection, __: Any, text: str, *___: Any) -> None:
        """Count a statement."""
        if not text.startswith(_OF_TRANSACTIONS):
            self.texts.append(text)

    def begun(self, connection: Connection) -> None:
        """Count a transaction."""
        if connection.engine is self._reading:
            self.reads += 1
        else:
            self.writes += 1

    def rolled_back(self, _: Connection) -> None:
        """Count a transaction that was undone."""
        self.undone += 1


@contextmanager
def counted(store: Store) -> Iterator[Statements]:
    """Count what a store asks, on any thread, as long as the block lasts."""
    engines = store.engines
    seen = Statements(engines)
    # PostgreSQL's reading engine is the writing one with options: it tells the same listeners.
    listened = {engines.writing.pool: engines.writing, engines.reading.pool: engines.reading}
    if len(listened) == 1:
        listened = {engines.writing.pool: engines.writing}
    heard = {"before_cursor_execute": seen.executed, "begin": seen.begun, "rollback": seen.rolled_back}
    hooks = [(engine, name, hook) for engine in listened.values() for name, hook in heard.items()]
    with listening(hooks):
        yield seen


@contextmanager
def listening(hooks: Sequence[tuple[Engine, str, Callable[..., None]]]) -> Iterator[None]:
    """Have functions told of what engines do, as long as the block lasts."""
    for hook in hooks:
        event.listen(*hook)
    try:
        yield
    finally:
        for hook in hooks:
            event.remove(*hook)
