"""The server's worker without its thread: it runs each job at once, and then the work that becomes due."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from math import inf
from typing import TypeVar

import pytest

from forewarn.control.board_feed import BoardFeed
from forewarn.control.use_case import ExclusiveJob
from forewarn.core.feed import Delta
from forewarn.server.threads import worker as threads_worker
from forewarn.server.threads.jobs import Job, Jobs
from forewarn.server.threads.time_keeping import TimeWatch
from forewarn.store.batch import Transaction
from forewarn.store.saved import Saved
from tests.helpers.service.boards import read_whole
from tests.helpers.service.harness import Service

T = TypeVar("T")


class WorkerByHand:
    """Runs jobs of a service, alone or together, and publishes their changes on its board."""

    def __init__(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        # Work limited by real time is omitted, however slow this computer is.
        for name in ("PROVE_EVERY", "TICK_AT_LEAST_EVERY", "LONGEST_BATCH", "LONGEST_PIECE"):
            monkeypatch.setattr(threads_worker, name, inf)
        self.board = read_whole(service.store, lineage=service.url)
        self._engine = service.engine
        self.feed = BoardFeed(service.store, self._publish, recent=service.recent, number=self.board.number)
        self._worker = threads_worker.Worker(
            Jobs(),
            batches=service.batches,
            engine=service.engine,
            answering=service.use_cases.answering,
            feed=self.feed,
            time=TimeWatch(service.clock, service.engine, present_at=None),
        )
        service.store.saved = self._note
        self.tick()

    async def __call__(self, job: Callable[[Transaction], T] | ExclusiveJob[T], /) -> T:
        (answer,) = self.do(job)
        return answer.result(0)

    async def read(self, job: Callable[[], T], /) -> T:
        return job()

    def do(self, *work: Callable[[Transaction], T] | ExclusiveJob[T]) -> list["Future[T]"]:
        """Run jobs that have waited together, and the work that they make due."""
        jobs: list[Job] = [Job(each, Future()) for each in work]
        left: Sequence[Job] = jobs
        while left:
            left = left[self._worker.do(left) :]
        while self._worker.may_be_due():
            self.tick()
        return [job.answer for job in jobs]

    def tick(self) -> None:
        """Run due work."""
        self._worker.tick()

    def _note(self, saved: Saved) -> None:
        self.feed.note(saved)
        self._engine.note(saved)

    def _publish(self, deltas: Sequence[Delta]) -> None:
        for delta in deltas:
            self.board.apply(delta)
