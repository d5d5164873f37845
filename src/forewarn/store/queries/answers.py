"""What calls with an Idempotency-Key were answered."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, bindparam, delete, select

from forewarn.store import tables
from forewarn.store.reads.loading import SELECT_ANSWERS
from forewarn.store.reads.reader import Reader
from forewarn.store.rows.mapping import Row
from forewarn.store.rows.times import micros, moment
from forewarn.store.writes.writer import put_rows

_A = tables.answers.c
_KEYS = select(_A.caller, _A.key)
_REMOVE = delete(tables.answers).where(_A.caller == bindparam("of"), _A.key == bindparam("for"))


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


class AnswerQueries(Reader):
    """What can be asked about saved answers."""

    def find(self, caller: str, key: str) -> SavedAnswer | None:
        """Find what a call was answered."""
        loaded = self._transaction.loaded.answers
        if (caller, key) in loaded:
            return next(map(_answer, loaded[caller, key]), None)
        return self._find(_answer, SELECT_ANSWERS.where(_A.caller == caller, _A.key == key))

    def old(self, before: datetime, *, limit: int) -> Sequence[tuple[str, str]]:
        """List callers and keys of answers saved before a moment, the oldest first."""
        return self._keys(_KEYS.where(_A.saved_at < micros(before)).order_by(_A.saved_at).limit(limit))

    def surplus(self, caller: str, *, keep: int, limit: int) -> Sequence[tuple[str, str]]:
        """List a caller's answers but for the newest; each with its caller and key."""
        newest_first = _KEYS.where(_A.caller == caller).order_by(_A.saved_at.desc(), _A.key.desc())
        return self._keys(newest_first.offset(keep).limit(limit))

    def _keys(self, query: Select[Any]) -> Sequence[tuple[str, str]]:
        return [(row[0], row[1]) for row in self._all(query)]


class AnswerChanges(AnswerQueries):
    """The same, and what can be changed."""

    def save(self, answer: SavedAnswer) -> None:
        """Save what a call was answered; an older answer to the same key is replaced."""
        row = asdict(answer) | {"saved_at": micros(answer.saved_at)}
        self._transaction.loaded.answers.pop((answer.caller, answer.key), None)
        put_rows(self._connection, tables.answers, [row])

    def remove(self, answers: Sequence[tuple[str, str]]) -> None:
        """Remove answers, by caller and key."""
        if answers:
            rows = [{"of": caller, "for": key} for caller, key in answers]
            self._connection.execute(_REMOVE, rows)


def _answer(row: Row) -> SavedAnswer:
    written = dict(zip(tables.answers.columns.keys(), row, strict=True))
    return SavedAnswer(**written | {"saved_at": moment(written["saved_at"])})
