"""Sending one webhook its records, one after another, until each has arrived."""

import asyncio
import logging
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from forewarn.api.services import RunRead, RunUseCase
from forewarn.clock import monotonic
from forewarn.control.following.followed_records import FollowedRecords
from forewarn.control.push.delivery_state import DeliveryState
from forewarn.control.push.webhooks import wanted_by
from forewarn.core.errors import Unavailable
from forewarn.core.model.record import Record
from forewarn.core.push import Webhook
from forewarn.signals import waking

if TYPE_CHECKING:
    from forewarn.server.push.delivery import Delivery

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
    """Serves one webhook."""

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
        records, wanted, reached = self._records, wanted_by(self._webhook), self._reached
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
        left = self._context.state.left_alone_for(self._webhook)
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
