"""How answers are kept that calls with an Idempotency-Key were given."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedAnswer:
    """What a call was answered, as it is kept."""

    caller: str
    key: str  # a digest
    request: str  # a digest of what was asked for
    status: int
    salt: str
    body: bytes | None  # sealed; None: it was too large to be kept
    saved_at: datetime  # in real time


class AnswerQueries(Protocol):
    """Reads saved answers."""

    def find(self, caller: str, key: str) -> SavedAnswer | None:
        """Find what a call was answered."""
        ...

    def old(self, before: datetime, *, limit: int) -> Sequence[tuple[str, str]]:
        """List callers and keys of answers saved before a moment, the oldest first."""
        ...

    def surplus(self, caller: str, *, keep: int, limit: int) -> Sequence[tuple[str, str]]:
        """List a caller's answers but for the newest, in no order; each with its caller and key."""
        ...


class AnswerChanges(AnswerQueries, Protocol):
    """Reads, saves and forgets answers."""

    def save(self, answer: SavedAnswer) -> None:
        """Save what a call was answered; an older answer to the same key is replaced."""
        ...

    def remove(self, answers: Sequence[tuple[str, str]]) -> None:
        """Forget answers, by caller and key."""
        ...
