"""Pushes records to webhooks: a thread and a loop of its own, a task for each webhook.

A webhook that never answers holds up its own records and nothing else. What is delivered is saved now and
then, so after a crash a few records are sent twice, with the same `webhook-id`; none is left out.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from forewarn.api.services import RunRead, RunUseCase
from forewarn.control.following.followed_records import FollowedRecords
from forewarn.control.push.delivery_state import DeliveryState
from forewarn.core.errors import LimitReached, Unavailable
from forewarn.core.push import Webhook, WebhookId
from forewarn.server.push.webhook_sender import STORE_RETRY, Pace, PushContext, WebhookSender
from forewarn.signals import Signal, waking
from forewarn.supervision import BackgroundTask, Supervisor

if TYPE_CHECKING:
    from forewarn.server.push.delivery import Delivery

log = logging.getLogger(__name__)


class Pusher:
    """Serves all webhooks."""

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
        """Take a maker of the delivery: it belongs to the loop that is made here."""
        self._state = state
        self._records = records
        self._webhooks_changed = changed
        self._run = run
        self._read = read
        self._make_delivery = delivery
        self._served: dict[WebhookId, tuple[WebhookSender, asyncio.Task[None]]] = {}
        self._tried: set[WebhookId] = set()
        self._known_context: PushContext | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = False
        self._changed = asyncio.Event()
        self.supervisor = Supervisor()  # until it is given the server's
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
