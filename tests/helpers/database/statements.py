"""Count the statements and transactions that a store sends to its database.

The counts are exact and the same on every computer, so a test may compare them with a number. `BEGIN` and
`COMMIT` count as transactions, `SAVEPOINT` and `RELEASE` as statements.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, event

from forewarn.store.opening.database import Engines
from forewarn.store.store import Store

_OF_TRANSACTIONS = ("BEGIN", "COMMIT")


class Statements:
    """The statements and transactions of a store."""

    def __init__(self, engines: Engines) -> None:
        self._reading = None if engines.reading is engines.writing else engines.reading
        self.clear()

    def clear(self) -> None:
        """Reset the counts."""
        self.texts: list[str] = []
        self.reads = 0  # read-only transactions
        self.writes = 0  # write transactions, whatever they did
        self.undone = 0  # rollbacks of both kinds

    def __len__(self) -> int:
        return len(self.texts)

    def listed(self) -> str:
        """List the statements, one per line, for a failing test or a reader."""
        lines = (f"{n:3} {' '.join(text.split())[:150]}" for n, text in enumerate(self.texts, 1))
        return "\n".join([f"{len(self)} statements, {self.reads} reads, {self.writes} writes", *lines])

    def executed(self, _: Connection, __: Any, text: str, *___: Any) -> None:
        if not text.startswith(_OF_TRANSACTIONS):
            self.texts.append(text)

    def begun(self, connection: Connection) -> None:
        if connection.engine is self._reading:
            self.reads += 1
        else:
            self.writes += 1

    def rolled_back(self, _: Connection) -> None:
        self.undone += 1


@contextmanager
def counted(store: Store) -> Iterator[Statements]:
    """Count what a store sends, on any thread, until the block ends."""
    engines = store.engines
    seen = Statements(engines)
    # PostgreSQL's read engine is the write engine with options; both call the same listeners.
    listened = {engines.writing.pool: engines.writing, engines.reading.pool: engines.reading}
    if len(listened) == 1:
        listened = {engines.writing.pool: engines.writing}
    heard = {"before_cursor_execute": seen.executed, "begin": seen.begun, "rollback": seen.rolled_back}
    hooks = [(engine, name, hook) for engine in listened.values() for name, hook in heard.items()]
    with listening(hooks):
        yield seen


@contextmanager
def listening(hooks: Sequence[tuple[Engine, str, Callable[..., None]]]) -> Iterator[None]:
    """Register listeners on engines until the block ends."""
    for hook in hooks:
        event.listen(*hook)
    try:
        yield
    finally:
        for hook in hooks:
            event.remove(*hook)
