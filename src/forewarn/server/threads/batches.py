"""The only code that commits: for the worker, for the start before it, and for local commands."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeVar

from forewarn.control.unsaved_activity import UnsavedNotices
from forewarn.core.errors import ForewarnError
from forewarn.store.batch import Batch, Transaction
from forewarn.store.prefetch import Prefetch
from forewarn.store.store import Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result or the error of one job of a batch."""

    result: Any = None
    error: BaseException | None = None


class Batches:
    """Runs jobs in batches. Only one thread may use it at a time."""

    def __init__(self, store: Store, notices: UnsavedNotices | None = None) -> None:
        """Take the notices that guests were sent, if guests are served: each transaction saves them first."""
        self._store = store
        self._notices = notices
        self._running = False  # owner: the thread that uses this

    def run_jobs(
        self,
        jobs: Sequence[Callable[[Transaction], Any]],
        *,
        prefetches: Sequence[Prefetch] = (),
        enough: Callable[[int], bool] = lambda _done: False,
    ) -> list[Outcome]:
        """Run jobs in one batch, each in its own savepoint; everything is durable when this returns.

        A job that raises is rolled back alone. The batch ends early when `enough` returns True for the
        number of jobs done. If the commit fails, nothing of the batch is saved and each job that ran gets the
        error: `Uncertain` if the database did not answer the commit.
        """
        if self._running:
            raise RuntimeError("a job must not commit: its batch commits the transaction that it was given")
        outcomes: list[Outcome] = []
        self._running = True
        try:
            # The batch commits when this block ends.
            with self._store.batch() as batch:
                if prefetches:
                    batch.prefetch(prefetches)
                for number, job in enumerate(jobs, start=1):
                    outcomes.append(self._run_one(batch, job))
                    if enough(number):
                        break
        except BaseException as error:  # noqa: BLE001 - the callers get it
            return [Outcome(error=_copy(error)) for _ in outcomes] or [Outcome(error=error)]
        finally:
            self._running = False
        return outcomes

    def _run_one(self, batch: Batch, job: Callable[[Transaction], Any]) -> Outcome:
        try:
            with batch.savepoint() as tx:
                if self._notices is not None:
                    tx.lock()  # first, so that notices sent while this waits for the lock are saved too
                    self._notices.save(tx)
                return Outcome(job(tx))
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            return Outcome(error=error)

    def transact(self, work: Callable[[Transaction], T], /) -> T:
        """Run work in a batch of its own; return its result when it is durable."""
        (outcome,) = self.run_jobs([work])
        if outcome.error is not None:
            raise outcome.error
        result: T = outcome.result
        return result


def _copy(error: BaseException) -> BaseException:
    """Copy the exception for each waiter, because each waiter raises it in its own task."""
    return copy(error) if isinstance(error, ForewarnError) else error
