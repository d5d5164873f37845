"""Pushes records to webhooks: a thread and a loop of its own, a task for each webhook.

A webhook that never answers holds up its own records and nothing else. What is delivered is saved now and
then, so after a crash a few records are sent twice, with the same `webhook-id`; none is left out.
"""

import asyncio
import logging
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from forewarn.api.services import RunReading, RunUseCase
from forewarn.clock import monotonic
from forewarn.control.followed_records import FollowedRecords
from forewarn.control.webhook_use_cases import DeliveryState, record_filter
from forewarn.core.errors import LimitReached, Unavailable
from forewarn.core.model.record import Record
from forewarn.core.webhook_rules import Webhook, WebhookId
from forewarn.server.threads.reads import RunRead
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

    first: float = 1.0  # after the first failed try; then twice as long each time
    longest: float = 3600.0
    save: float = 1.0  # how often deliveries are saved while there are many

    def after(self, failures: int) -> float:
        """Return how long to wait after so many failed tries; not the same for all, so that they spread."""
        return self.most_after(failures) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret

    def most_after(self, failures: int) -> float:
        """Return how long to wait at most after so many failed tries."""
        # No more doublings than it takes to reach the longest, whatever it is.
        return min(self.longest, self.first * 2.0 ** min(failures - 1, 60))


@dataclass(frozen=True, slots=True, kw_only=True)
class PushContext:
    """What pushing needs."""

    state: DeliveryState
    records: FollowedRecords
    run: RunUseCase
    read: RunRead
    delivery: "Delivery"
    pace: Pace


class WebhookSender:
    """Serves one webhook. Owner of all its values: the pusher's loop."""

    def __init__(self, webhook: Webhook, context: PushContext) -> None:
        self._webhook = webhook
        self._context = context
        self._records = context.records.disclosed_to(webhook.owner)
        self._reached = webhook.delivered  # nothing that is wanted up to it is left to send
        self._sent = self._saved = webhook.delivered
        self._saved_at = monotonic()
        self._failures = webhook.failures
        self._again = asyncio.Event()

    def retry_now(self) -> None:
        """Try again at once, if it waits."""
        self._again.set()

    async def forever(self) -> None:
        """Send whatever comes."""
        await self._wait_on()
        woken = asyncio.Event()
        with self._context.records.listening(waking(woken)):
            while True:
                woken.clear()
                try:
                    more = await self._send_on()
                except Unavailable as error:
                    log.warning("webhook %s waits for the store: %s", self._webhook.id, error)
                    await asyncio.sleep(STORE_RETRY)
                    continue
                if not more:
                    await woken.wait()

    async def save(self) -> None:
        """Save how far it has come."""
        sent, state = self._sent, self._context.state
        if sent != self._saved:
            await self._context.run(lambda tx: state.delivered(tx, self._webhook.id, sent))
            self._saved, self._saved_at = sent, monotonic()

    async def _send_on(self) -> bool:
        """Send what there is; return whether there may be more."""
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
        """Send a record until it has arrived."""
        while (error := await self._context.delivery.send(self._webhook, record)) is not None:
            await self._failed(error)
        recovered = self._failures > 0
        self._failures = 0
        self._reached = self._sent = record.number
        if recovered or monotonic() - self._saved_at > self._context.pace.save:
            await self.save()

    async def _failed(self, error: str) -> None:
        """Save that a try failed, and wait for the next."""
        self._failures += 1
        wait = self._context.pace.after(self._failures)
        self._again.clear()
        log.warning("webhook %s: %s; next try in %.0f s", self._webhook.id, error, wait)
        await self._save_failure(error, wait)
        await self._wait(wait)

    async def _wait_on(self) -> None:
        """Wait for what is left of the wait that was saved; a clock that was set makes it no longer."""
        left = self._context.state.retry_delay(self._webhook)
        if left and self._failures:
            await self._wait(min(left, self._context.pace.most_after(self._failures)))

    async def _wait(self, wait: float) -> None:
        """Wait, unless there is reason to try again at once."""
        try:
            async with asyncio.timeout(wait):
                await self._again.wait()
        except TimeoutError:
            return

    async def _save_failure(self, error: str, wait: float) -> None:
        sent, state = self._sent, self._context.state
        try:
            await self._context.run(
                lambda tx: state.failed(tx, self._webhook.id, error, number=sent, wait=wait)
            )
            self._saved = sent
        except Unavailable as trouble:
            log.warning("that webhook %s fails cannot be saved: %s", self._webhook.id, trouble)


class Pusher:
    """Serves all webhooks."""

    def __init__(
        self,
        state: DeliveryState,
        records: FollowedRecords,
        *,
        changed: Signal,
        run: RunUseCase,
        read: RunReading,
        delivery: "Callable[[], Delivery]",
    ) -> None:
        """Take a maker of the delivery: it belongs to the loop that is made here."""
        self._state = state
        self._records = records
        self._webhooks_changed = changed
        self._run = run
        self._read = read
        self._make_delivery = delivery
        # Owner: the pusher's loop.
        self._served: dict[WebhookId, tuple[WebhookSender, asyncio.Task[None]]] = {}
        self._tried: set[WebhookId] = set()  # owner: the pusher's loop
        self._known_context: PushContext | None = None  # owner: the pusher's loop
        self._changed = asyncio.Event()  # owner: the pusher's loop
        self._loop: asyncio.AbstractEventLoop | None = None  # owner: the guest loop, which sets it once
        self._stopping = False  # owner: the thread that calls `stop`, which sets it once
        self.supervisor = Supervisor()  # until it is given the server's, before the thread is started
        self._thread = threading.Thread(target=self._serve, name="forewarn-pusher", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._loop = asyncio.new_event_loop()
        self._thread.start()

    def stop(self) -> None:
        """Break off, save what was delivered, and end; the worker must still run."""
        if self._loop is not None:
            self._stopping = True
            with suppress(RuntimeError):  # its loop is closed
                self._loop.call_soon_threadsafe(self._changed.set)
            self._thread.join()

    async def try_out(self, webhook: Webhook) -> str | None:
        """Call a webhook with something that is no record; returns what went wrong.

        LimitReached while it is being tried out already.
        """
        if self._loop is None or self._stopping:
            raise Unavailable("webhooks are not served now: try again in a moment")
        called = asyncio.run_coroutine_threadsafe(self._try_out(webhook), self._loop)
        return await asyncio.wrap_future(called)

    # On its own thread

    def _serve(self) -> None:
        loop = self._loop
        assert loop is not None  # noqa: S101 - made by start
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(self._main())

    async def _main(self) -> None:
        await self.supervisor.run_async(BackgroundTask.WEBHOOKS, self._follow_webhooks)
        await self._end(list(self._served))
        if self._known_context is not None:
            await self._known_context.delivery.close()

    async def _follow_webhooks(self) -> None:
        with self._webhooks_changed.listening(waking(self._changed)):
            while not self._stopping:
                self._changed.clear()
                await self._reload()
                await self._changed.wait()

    async def _reload(self) -> None:
        """Have a task for each webhook, and none for one that is gone."""
        try:
            known = {webhook.id: webhook for webhook in await self._read(self._state.every)}
        except Unavailable as error:
            log.warning("webhooks wait for the store: %s", error)
            asyncio.get_running_loop().call_later(STORE_RETRY, self._changed.set)
            return
        await self._end([id_ for id_ in self._served if id_ not in known])
        for id_ in known.keys() - self._served.keys():
            push = WebhookSender(known[id_], self._context())
            self._served[id_] = push, asyncio.create_task(self._serve_webhook(known[id_], push))

    async def _serve_webhook(self, webhook: Webhook, push: WebhookSender) -> None:
        # Requests rely on no project's webhook: a tenant must not make the service unready.
        await self.supervisor.run_async(
            BackgroundTask.WEBHOOK, push.forever, counts_for_readiness=webhook.owner is None
        )

    async def _end(self, ids: list[WebhookId]) -> None:
        ended = [self._served.pop(id_) for id_ in ids]
        for _, task in ended:
            task.cancel()
        await asyncio.gather(*(task for _, task in ended), return_exceptions=True)
        for push, _ in ended:
            # Not saved means sent once more after the start.
            try:
                await push.save()
            except Unavailable:
                pass
            except Exception:  # the others are still to be saved
                log.exception("how far a webhook has come could not be saved")

    async def _try_out(self, webhook: Webhook) -> str | None:
        # Each costs a connection, and a thread if a name is looked up: several of the same are of no use.
        if webhook.id in self._tried:
            raise LimitReached(f"webhook {webhook.id} is being tried out: wait until that is answered")
        self._tried.add(webhook.id)
        try:
            error = await self._context().delivery.try_out(webhook)
        finally:
            self._tried.discard(webhook.id)
        if error is None and webhook.id in self._served:
            self._served[webhook.id][0].retry_now()
        return error

    def _context(self) -> PushContext:
        # Not before there is a webhook: to read the system's certificates takes a while.
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
