"""Idempotency keys: the response to a call is saved in the transaction of the call.

A retry gets the same response, even after a crash, and changes nothing. Responses may contain secrets that
are shown only once. They are therefore encrypted with the caller's key, and the store has only a digest of
the key.
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
# Per caller; the oldest are removed. Most responses have some hundred bytes.
MOST_ANSWERS = 10_000
LARGEST_ANSWER = 64 * 1024  # compressed
# A few milliseconds of work, for which use cases may have to wait.
BATCH = 500
PRUNE_EVERY = timedelta(minutes=1)
# How far a caller may exceed the limit until the next pruning.
PRUNE_AFTER = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotentCall:
    """A call with an idempotency key."""

    caller: str
    key: str
    method: str
    path: str  # with its query
    body: bytes

    @property
    def saved_as(self) -> tuple[str, str]:
        """The caller and a digest of the key, by which the response is found."""
        return self.caller, _digest(self.key.encode())

    @property
    def request(self) -> str:
        """A digest of the request."""
        return _digest(self.method.encode(), self.path.encode(), self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotentResponse:
    """A response to a call."""

    status: int
    body: bytes
    again: bool = False  # whether it repeats an earlier response


class IdempotentCalls(UseCase):
    """Executes each call once, and repeats its response to retries."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        # In real time, because service time may run faster, or jump. Owner of both values: the worker.
        self._prune_at = self._real_now()
        self._unpruned: dict[str, int] = {}  # responses saved since the last pruning, by caller

    def answer(
        self, tx: Transaction, call: IdempotentCall, work: Callable[[], IdempotentResponse]
    ) -> IdempotentResponse:
        """Execute a call and save its response in the same transaction, or repeat the saved response.

        Conflict if the key was used for a different request. A call that raises is not saved: it has changed
        nothing.
        """
        now = self._real_now()
        if (repeated := self.find(tx, call)) is not None:
            return repeated
        answered = work()
        tx.answers.save(self._sealed(call, answered, now))
        tx.after_commit(lambda: self._count(call.caller))
        return answered

    def find(self, tx: Transaction, call: IdempotentCall) -> IdempotentResponse | None:
        """Return the saved response to a call; Conflict if the key was used for a different request."""
        saved = tx.answers.find(*call.saved_as)
        if saved is None or saved.saved_at <= self._real_now() - KEPT_FOR:
            return None
        return _repeated(call, saved)

    def prune(self, transact: Transact) -> bool:
        """Remove a batch of old responses if it is time; return whether there may be more."""
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
            "use a new key for each request"
        )
    if saved.body is None:
        raise Conflict("the first request with this key succeeded; its response was too large to save")
    body = zlib.decompress(_sealed(saved.body, call.key, saved.salt))
    return IdempotentResponse(status=saved.status, body=body, again=True)


def _sealed(data: bytes, key: str, salt: str) -> bytes:
    """Encrypt data with a key, or decrypt it. Never use a salt twice."""
    pad = hashlib.shake_256(f"{salt} {key}".encode()).digest(len(data))
    return (int.from_bytes(data) ^ int.from_bytes(pad)).to_bytes(len(data))


def _digest(*parts: bytes) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8))
        whole.update(part)
    return whole.hexdigest()
