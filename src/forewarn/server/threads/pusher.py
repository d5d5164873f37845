"""Sends records to webhooks, on its own thread and loop, with one task for each webhook.

A webhook that never answers delays only its own records. The position of each webhook is saved at intervals,
so after a crash a few records are sent twice, with the same `webhook-id`. No record is skipped.
"""

import asyncio
import logging
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from forewarn.api.services import RunRead, RunUseCase
from forewarn.clock import monotonic
from forewarn.control.followed_records import FollowedRecords
from forewarn.control.webhook_use_cases import DeliveryState, record_filter
from forewarn.core.errors import LimitReached, Unavailable
from forewarn.core.model.record import Record
from forewarn.core.webhook_rules import Webhook, WebhookId
from forewarn.signals import Signal, waking
from forewarn.supervision import BackgroundTask, Supervisor

if TYPE_CHECKING:
    from forewarn.server.threads.webhook_delivery import Delivery

log = logging.getLogger(__name__)

T = TypeVar("T")

PAGE = 100
# After a fault of the store.
STORE_RETRY = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long to wait, in real seconds."""

    first: float = 1.0  # after the first failure; each further failure doubles it
    longest: float = 3600.0
    save: float = 1.0  # how often the position of a busy webhook is saved

    def after(self, failures: int) -> float:
        """Return how long to wait after this many failures, with jitter."""
        return self.most_after(failures) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret

    def most_after(self, failures: int) -> float:
        """Return the longest wait after this many failures."""
        # 60 doublings exceed any useful `longest`; without a bound the power overflows.
        return min(self.longest, self.first * 2.0 ** min(failures - 1, 60))


@dataclass(frozen=True, slots=True, kw_only=True)
class PushContext:
    """The dependencies of webhook senders."""

    state: DeliveryState
    records: FollowedRecords
    run: RunUseCase
    read: RunRead
    delivery: "Delivery"
    pace: Pace


class WebhookSender:
    """Sends the records of one webhook. Owner of all its values: the pusher's loop."""

    def __init__(self, webhook: Webhook, context: PushContext) -> None:
        self._webhook = webhook
        self._context = context
        self._records = context.records.disclosed_to(webhook.owner)
        self._reached = webhook.delivered  # every wanted record up to this number has been sent
        self._sent = self._saved = webhook.delivered
        self._saved_at = monotonic()
        self._failures = webhook.failures
        self._again = asyncio.Event()

    def retry_now(self) -> None:
        """End the wait after a failure."""
        self._again.set()

    async def forever(self) -> None:
        """Send the existing records and every new one."""
        await self._finish_saved_wait()
        woken = asyncio.Event()
        with self._context.records.listening(waking(woken)):
            while True:
                woken.clear()
                try:
                    more = await self._send_page()
                except Unavailable as error:
                    log.warning("webhook %s waits for the store: %s", self._webhook.id, error)
                    await asyncio.sleep(STORE_RETRY)
                    continue
                if not more:
                    await woken.wait()

    async def save(self) -> None:
        """Save the number of the last record that was sent."""
        sent, state = self._sent, self._context.state
        if sent != self._saved:
            await self._context.run(lambda tx: state.delivered(tx, self._webhook.id, sent))
            self._saved, self._saved_at = sent, monotonic()

    async def _send_page(self) -> bool:
        """Send a page of records; return whether there may be more."""
        records, wanted, reached = self._records, record_filter(self._webhook), self._reached
        found = records.recent(reached, wanted)
        if found is None:
            found = await self._context.read(lambda: records.page(reached, wanted, limit=PAGE))
        for record in found.records:
            await self._send(record)
        self._reached = found.number
        await self.save()
        return found.more

    async def _send(self, record: Record) -> None:
        """Send a record and retry until the receiver accepts it."""
        while (error := await self._context.delivery.send(self._webhook, record)) is not None:
            await self._failed(error)
        recovered = self._failures > 0
        self._failures = 0
        self._reached = self._sent = record.number
        if recovered or monotonic() - self._saved_at > self._context.pace.save:
            await self.save()

    async def _failed(self, error: str) -> None:
        """Save a failure, and wait before the next try."""
        self._failures += 1
        wait = self._context.pace.after(self._failures)
        self._again.clear()
        log.warning("webhook %s: %s; next try in %.0f s", self._webhook.id, error, wait)
        sent, state = self._sent, self._context.state
        try:
            await self._context.run(
                lambda tx: state.failed(tx, self._webhook.id, error, number=sent, wait=wait)
            )
            self._saved = sent
        except Unavailable as trouble:
            log.warning("cannot save the failure of webhook %s: %s", self._webhook.id, trouble)
        await self._wait(wait)

    async def _finish_saved_wait(self) -> None:
        """Wait for the rest of the saved wait, limited in case the clock has changed."""
        left = self._context.state.retry_delay(self._webhook)
        if left and self._failures:
            await self._wait(min(left, self._context.pace.most_after(self._failures)))

    async def _wait(self, wait: float) -> None:
        """Wait until the time is over or `retry_now` is called."""
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._again.wait()


class Pusher:
    """Runs a sender for each webhook."""

    def __init__(
        self,
        state: DeliveryState,
        records: FollowedRecords,
        *,
        changed: Signal,
        run: RunUseCase,
        read: RunRead,
        delivery: "Callable[[], Delivery]",
    ) -> None:
        """Take `delivery`, which makes the HTTP client on the pusher's loop."""
        self._state = state
        self._records = records
        self._webhooks_changed = changed
        self._run = run
        self._read = read
        self._make_delivery = delivery
        # Owner of the next four: the pusher's loop.
        self._served: dict[WebhookId, tuple[WebhookSender, asyncio.Task[None]]] = {}
        self._tried: set[WebhookId] = set()
        self._known_context: PushContext | None = None
        self._changed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None  # owner: the guest loop, which sets it once
        self._stopping = False  # owner: the thread that calls `stop`, which sets it once
        self._thread: threading.Thread | None = None  # owner: the guest loop

    def start(self, supervisor: Supervisor) -> None:
        """Start the thread."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._serve, args=(self._loop, supervisor), name="forewarn-pusher", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Cancel calls, save the position of each webhook, and end; the worker must still run."""
        if self._loop is not None and self._thread is not None:
            self._stopping = True
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._changed.set)
            self._thread.join()

    async def send_test(self, webhook: Webhook) -> str | None:
        """Send a test message to a webhook; return the error, or None on success.

        Raise LimitReached while another test of the webhook runs.
        """
        if self._loop is None or self._stopping:
            raise Unavailable("webhooks are not served now: try again in a moment")
        called = asyncio.run_coroutine_threadsafe(self._try_out(webhook), self._loop)
        return await asyncio.wrap_future(called)

    # On the pusher's thread

    def _serve(self, loop: asyncio.AbstractEventLoop, supervisor: Supervisor) -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(self._main(supervisor))

    async def _main(self, supervisor: Supervisor) -> None:
        await supervisor.run_async(BackgroundTask.WEBHOOKS, partial(self._follow_webhooks, supervisor))
        await self._end(list(self._served))
        if self._known_context is not None:
            await self._known_context.delivery.close()

    async def _follow_webhooks(self, supervisor: Supervisor) -> None:
        with self._webhooks_changed.listening(waking(self._changed)):
            while not self._stopping:
                self._changed.clear()
                await self._reload(supervisor)
                await self._changed.wait()

    async def _reload(self, supervisor: Supervisor) -> None:
        """Start a task for each new webhook and end the tasks of removed ones."""
        try:
            known = {webhook.id: webhook for webhook in await self._read(self._state.every)}
        except Unavailable as error:
            log.warning("webhooks wait for the store: %s", error)
            asyncio.get_running_loop().call_later(STORE_RETRY, self._changed.set)
            return
        await self._end([id_ for id_ in self._served if id_ not in known])
        for id_ in known.keys() - self._served.keys():
            sender = WebhookSender(known[id_], self._context())
            # A webhook of a project must not make the server unready: no request depends on it.
            serving = supervisor.run_async(
                BackgroundTask.WEBHOOK, sender.forever, counts_for_readiness=known[id_].owner is None
            )
            self._served[id_] = sender, asyncio.create_task(serving)

    async def _end(self, ids: list[WebhookId]) -> None:
        ended = [self._served.pop(id_) for id_ in ids]
        for _, task in ended:
            task.cancel()
        await asyncio.gather(*(task for _, task in ended), return_exceptions=True)
        for sender, _ in ended:
            # A record whose delivery is not saved is sent again after the next start.
            try:
                await sender.save()
            except Unavailable:
                pass
            except Exception:  # the other webhooks must still be saved
                log.exception("cannot save the position of a webhook")

    async def _try_out(self, webhook: Webhook) -> str | None:
        # Each test takes a connection, and a thread to resolve the name: one at a time is enough.
        if webhook.id in self._tried:
            raise LimitReached(f"webhook {webhook.id} is being tested: wait for the answer")
        self._tried.add(webhook.id)
        try:
            error = await self._context().delivery.send_test(webhook)
        finally:
            self._tried.discard(webhook.id)
        if error is None and webhook.id in self._served:
            self._served[webhook.id][0].retry_now()
        return error

    def _context(self) -> PushContext:
        # Made for the first webhook, because reading the system's certificates takes time.
        if self._known_context is None:
            self._known_context = PushContext(
                state=self._state,
                records=self._records,
                run=self._run,
                read=self._read,
                delivery=self._make_delivery(),
                pace=Pace(),
            )
        return self._known_context
