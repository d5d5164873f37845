"""A failing webhook is not called before its next retry, even after a restart of the server."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from forewarn.control.webhook_use_cases import DeliveryState
from forewarn.core.basic_types import Action
from forewarn.core.model.record import Record
from forewarn.core.webhook_rules import Webhook
from forewarn.server.threads.pusher import Pace, PushContext, WebhookSender
from forewarn.store.batch import Transaction
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service, fleet, machine
from tests.helpers.service.served import Api, app_of

T = TypeVar("T")
HOUR = 3600.0


class Deaf:
    """A receiver that refuses everything, and counts its calls."""

    def __init__(self) -> None:
        self.called = asyncio.Event()

    async def send(self, webhook: Webhook, record: Record) -> str | None:
        self.called.set()
        return "it answered 503"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(fleet(machine("web-0", "host-1")))
    yield service
    service.close()


def failing(service: Service, *, wait: float) -> Webhook:
    """Add a webhook that has failed once and has a record to deliver."""
    added = service.webhooks.add("https://hooks.example/", project=None, kinds=(), secret=None, by="test")
    service.order("web-0", Action.RESTART)
    service.deliveries.failed(added.id, "it answered 503", number=added.delivered, wait=wait)
    return service.deliveries.every()[0]


async def read(job: Callable[[], T], /) -> T:
    return job()


def sender(service: Service, webhook: Webhook, receiver: Deaf, pace: Pace | None = None) -> WebhookSender:
    async def run(job: Callable[[Transaction], T], /) -> T:
        return service.transact(job)

    context = PushContext(
        state=DeliveryState(service.context),
        records=service.records,
        run=run,
        read=read,
        delivery=receiver,  # type: ignore[arg-type]
        pace=pace or Pace(first=HOUR),
    )
    return WebhookSender(webhook, context)


def calls(service: Service, webhook: Webhook, *, pace: Pace | None = None, urged: bool = False) -> bool:
    """Restart, and return whether the webhook is called within the time of a call."""

    async def played() -> bool:
        receiver = Deaf()
        serving = sender(service, webhook, receiver, pace)
        task = asyncio.create_task(serving.forever())
        for _ in range(20):
            await asyncio.sleep(0)
        if urged:
            serving.retry_now()
        if pace is not None or urged:
            await asyncio.wait_for(receiver.called.wait(), 60)
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()
        return receiver.called.is_set()

    return asyncio.run(played())


def test_a_restarted_server_does_not_retry_early(service: Service) -> None:
    webhook = failing(service, wait=HOUR)
    service.restart()
    (saved,) = service.deliveries.every()
    assert saved == webhook
    assert not calls(service, saved)
    service.real += HOUR
    assert calls(service, saved)


def test_a_successful_test_call_ends_the_wait(service: Service) -> None:
    assert calls(service, failing(service, wait=HOUR), urged=True)


def test_a_clock_set_back_does_not_exceed_the_longest_wait(service: Service) -> None:
    webhook = failing(service, wait=86_400 * 365)
    assert calls(service, webhook, pace=Pace(first=0.01, longest=0.01))


def test_a_webhook_without_a_saved_retry_time_is_called_immediately(service: Service) -> None:
    added = service.webhooks.add("https://hooks.example/", project=None, kinds=(), secret=None, by="test")
    service.order("web-0", Action.RESTART)
    assert calls(service, added)


def test_the_next_try_is_shown_from_the_store(service: Service) -> None:
    webhook = failing(service, wait=HOUR)
    assert webhook.next_try == service.real_now() + timedelta(seconds=HOUR)
    service.real += 100
    service.restart()
    api = Api(app_of(service))
    shown = api("GET", f"/v1/webhooks/{webhook.id}").json()["webhook"]
    assert (shown["failures"], shown["next_try_seconds"]) == (1, HOUR - 100)
    service.deliveries.delivered(webhook.id, webhook.delivered + 1)
    assert api("GET", f"/v1/webhooks/{webhook.id}").json()["webhook"]["next_try_seconds"] is None
