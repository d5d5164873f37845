"""What is known of a use case before it is run: what it will ask the store for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from forewarn.core.words import ProjectName

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """What a call will ask for; it may ask for more, or for something else."""

    machine: str  # by its name
    project: ProjectName | None = None  # whose machines alone the caller finds; None: all
    answer: tuple[str, str] | None = None  # what it was answered before, by caller and key


@dataclass(frozen=True, slots=True)
class ForeseenUseCase(Generic[T]):
    """A use case of which something is known: those that wait together are loaded together."""

    work: Callable[[], T]
    foreseen: Foreseen

    def __call__(self) -> T:
        """Run it."""
        return self.work()
