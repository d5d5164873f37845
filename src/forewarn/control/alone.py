"""Use cases that are not saved together with others."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Alone(Generic[T]):
    """A use case that does more than save, between transactions of its own: whoever runs it opens none."""

    work: Callable[[], T]

    def __call__(self) -> T:
        """Run it."""
        return self.work()
