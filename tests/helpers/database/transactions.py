"""Run use cases one by one, each in its own transaction."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from forewarn.core.scope import EVERYTHING, Scope
from forewarn.store.batch import ScopedTransaction, Transact, Transaction
from forewarn.store.store import Store


@contextmanager
def writing(to: Store | Transaction) -> Iterator[Transaction]:
    """Open a transaction and commit it when the block ends, or continue the open one."""
    if isinstance(to, Transaction):
        yield to
    else:
        with to.batch() as batch, batch.savepoint() as tx:
            yield tx


@contextmanager
def holding(store: Store) -> Iterator[None]:
    """Hold the write lock until the block ends."""
    with writing(store) as tx:
        tx.records.newest()
        yield


@contextmanager
def writing_as(to: Store | Transaction, scope: Scope) -> Iterator[Transaction | ScopedTransaction]:
    """Open the transaction with the view of a scope."""
    with writing(to) as tx:
        yield tx.scoped(scope)


class InTransactions:
    """Use cases for direct calls: a method that takes a transaction gets one, which is then committed."""

    def __init__(self, use_cases: Any, transact: Transact, scope: Scope = EVERYTHING) -> None:
        self._use_cases = use_cases
        self._transact = transact
        self._scope = scope

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._use_cases, name)
        return self._committing(found) if inspect.ismethod(found) else found

    def _committing(self, method: Callable[..., Any]) -> Callable[..., Any]:
        takes = list(inspect.signature(method).parameters)[:2]

        @wraps(method)
        def call(*given: Any, **named: Any) -> Any:
            match takes:
                case ["tx", *_]:
                    return self._transact(lambda tx: method(tx.scoped(self._scope), *given, **named))
                case ["transact", "scope"]:
                    return method(self._transact, self._scope, *given, **named)
                case ["transact", *_]:
                    return method(self._transact, *given, **named)
                case _:
                    return method(*given, **named)

        return call
