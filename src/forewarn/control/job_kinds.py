"""What the worker can be given to do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from forewarn.store.batch import Transact, Transaction
from forewarn.store.foreseen import Foreseen

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Alone(Generic[T]):
    """A use case that does more than save: it is given what commits, not an open transaction."""

    work: Callable[[Transact], T]


@dataclass(frozen=True, slots=True)
class ForeseenUseCase(Generic[T]):
    """A use case whose reads are known in part: those that wait together are loaded together."""

    work: Callable[[Transaction], T]
    foreseen: Foreseen

    def __call__(self, tx: Transaction) -> T:
        """Run it in its transaction."""
        return self.work(tx)
