"""Calls that are carried out once: what a caller's key was answered is saved with what the call has changed.

A retry gets the same answer, also after a crash, and changes nothing. Answers may hold secrets that are shown
once, so they are kept sealed by the caller's key, of which the store has a digest alone.
"""

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from forewarn.control.use_case import Context, UseCase
from forewarn.core.errors import Conflict
from forewarn.store.batch import Transact, Transaction
from forewarn.store.queries.callers import SavedAnswer

KEPT_FOR = timedelta(hours=24)
# For each caller; the oldest go. An answer has a few hundred bytes, that of a large rollout some thousands.
MOST_ANSWERS = 10_000
LARGEST_ANSWER = 64 * 1024  # compressed
# A few milliseconds of work, for which a use case may have to wait.
BATCH = 500
PRUNE_EVERY = timedelta(minutes=1)
# So many more than the most a caller may have for a moment.
PRUNE_AFTER = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotentCall:
    """A call that its caller may repeat."""

    caller: str
    key: str
    method: str
    path: str  # with its query
    body: bytes

    @property
    def saved_as(self) -> tuple[str, str]:
        """Whose answer it has, and a digest of its key."""
        return self.caller, _digest(self.key.encode())

    @property
    def request(self) -> str:
        """A digest of what is asked for."""
        return _digest(self.method.encode(), self.path.encode(), self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotentResponse:
    """An answer as it is sent."""

    status: int
    body: bytes
    again: bool = False  # whether it was given before


class IdempotentCalls(UseCase):
    """Carries out each call once, and answers it as often as it is repeated."""

    def __init__(self, context: Context, *, real_now: Callable[[], datetime]) -> None:
        """Take a reader of real time: service time may be turned, or run fast."""
        super().__init__(context)
        self._real_now = real_now
        # Owner of both: the worker.
        self._prune_at = real_now()
        self._unpruned: dict[str, int] = {}  # answers saved since old ones were last removed, by caller

    def answer(self, tx: Transaction, call: IdempotentCall, work: Callable[[], IdempotentResponse]) -> IdempotentResponse:
        """Carry out a call and save its answer in the same transaction, or answer it as before.

        Conflict if the key was used for something else. A call that raises is not remembered: it has
        changed nothing.
        """
        now = self._real_now()
        saved = tx.answers.find(*call.saved_as)
        if saved is not None and saved.saved_at > now - KEPT_FOR:
            return _repeated(call, saved)
        answered = work()
        tx.answers.save(self._sealed(call, answered, now))
        tx.after_commit(lambda: self._count(call.caller))
        return answered

    def find(self, tx: Transaction, call: IdempotentCall) -> IdempotentResponse | None:
        """Find what a call was answered; Conflict if the key was used for something else."""
        saved = tx.answers.find(*call.saved_as)
        if saved is None or saved.saved_at <= self._real_now() - KEPT_FOR:
            return None
        return _repeated(call, saved)

    def prune(self, transact: Transact) -> bool:
        """Remove a batch of old answers if it is time; return whether there may be more."""
        now = self._real_now()
        if now < self._prune_at and max(self._unpruned.values(), default=0) < PRUNE_AFTER:
            return False
        gone = self._removable(now - KEPT_FOR)
        if gone:
            transact(lambda tx: tx.answers.remove(gone))
        if len(gone) == BATCH:
            return True
        self._unpruned.clear()
        self._prune_at = now + PRUNE_EVERY
        return False

    def _count(self, caller: str) -> None:
        self._unpruned[caller] = self._unpruned.get(caller, 0) + 1

    def _removable(self, before: datetime) -> list[tuple[str, str]]:
        with self._store.read() as snapshot:
            gone = list(snapshot.answers.old(before, limit=BATCH))
            for caller in self._unpruned:
                left = BATCH - len(gone)
                gone += snapshot.answers.surplus(caller, keep=MOST_ANSWERS, limit=left) if left else ()
        return gone

    def _sealed(self, call: IdempotentCall, answered: IdempotentResponse, now: datetime) -> SavedAnswer:
        salt, compressed = self._new_id(), zlib.compress(answered.body)
        return SavedAnswer(
            caller=call.caller,
            key=_digest(call.key.encode()),
            request=call.request,
            status=answered.status,
            salt=salt,
            body=_sealed(compressed, call.key, salt) if len(compressed) <= LARGEST_ANSWER else None,
            saved_at=now,
        )


def _repeated(call: IdempotentCall, saved: SavedAnswer) -> IdempotentResponse:
    if saved.request != call.request:
        raise Conflict(
            "the Idempotency-Key was used for another request (method, path, query or body) within 24 h: "
            "use a new one for each thing to be done"
        )
    if saved.body is None:
        raise Conflict("this was done when it was first sent; the answer was too large to be kept")
    body = zlib.decompress(_sealed(saved.body, call.key, saved.salt))
    return IdempotentResponse(status=saved.status, body=body, again=True)


def _sealed(data: bytes, key: str, salt: str) -> bytes:
    """Seal something with a key, or open it: the same salt is never used for two things."""
    pad = hashlib.shake_256(f"{salt} {key}".encode()).digest(len(data))
    return (int.from_bytes(data) ^ int.from_bytes(pad)).to_bytes(len(data))


def _digest(*parts: bytes) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8))
        whole.update(part)
    return whole.hexdigest()
