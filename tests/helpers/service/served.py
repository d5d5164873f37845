"""The operator API over the service of the harness, called directly or served on a free port."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx
import uvicorn
from starlette.types import ASGIApp

from forewarn.api.app import create_app
from forewarn.api.limits import CallerLimits
from forewarn.api.services import ApiDependencies, ApiSettings, Services
from forewarn.control.use_case import ExclusiveJob
from forewarn.core.basic_types import Priority
from forewarn.core.model.declaration import FleetSpec
from forewarn.core.scope import EVERYTHING
from forewarn.core.webhook_rules import Webhook
from forewarn.server.threads.inventories import DriverInventories
from forewarn.store.batch import Transaction
from forewarn.wire.answers.answer import ApiAnswer
from forewarn.wire.answers.coding import read_body, read_page, write_body
from tests.helpers.service.harness import Service, fleet, group, machine

T = TypeVar("T")


class Health:
    """Probes with results that the test sets."""

    unwell: str | None = None

    def unhealthy(self) -> str | None:
        return self.unwell

    def unready(self) -> str | None:
        return self.unwell

    def writable(self) -> bool:
        return self.unwell is None

    def silences(self) -> int:
        return 0


class NoDeliveries:
    """A sender that delivers nothing."""

    async def send_test(self, webhook: Webhook, /) -> str | None:
        return "no sender"


class Worker:
    """Runs each use case immediately, and then the work that it makes due. It can fail on request."""

    def __init__(self, service: Service, fault: Exception | None = None) -> None:
        self._service = service
        self._fault = fault
        self._published = -1

    async def __call__(self, job: Callable[[Transaction], T] | ExclusiveJob[T], /) -> T:
        if self._fault is not None:
            raise self._fault
        transact = self._service.transact
        answer = job.work(transact) if isinstance(job, ExclusiveJob) else transact(job)
        self._service.tick()
        # Like the feed, which publishes only changes: a reading follower must not wake itself.
        newest = self._service.records.newest()
        if newest != self._published:
            self._published = newest
            self._service.recent.catch_up()
        return answer

    async def read(self, job: Callable[[], T], /) -> T:
        if self._fault is not None:
            raise self._fault
        return job()


def app_of(
    service: Service,
    *,
    health: Health | None = None,
    names: tuple[str, ...] = (),
    fault: Exception | None = None,
    settings: ApiSettings | None = None,
    turns: list[str] | None = None,
    jobs: list[str] | None = None,
    worker: Any = None,
) -> ASGIApp:
    """Create the API. `turns` gets the name of each caller whose turn was used.

    `jobs` gets it only for jobs of the worker.
    """
    worker = worker or Worker(service, fault)

    def run_for(caller: str) -> Callable[..., Any]:
        def run(job: Any) -> Any:
            for told in (turns, jobs):
                if told is not None:
                    told.append(caller)
            return worker(job)

        return run

    def read_for(caller: str, _at_once: int) -> Callable[..., Any]:
        def read(job: Callable[[], T]) -> Any:
            if turns is not None:
                turns.append(caller)
            return worker.read(job)

        return read

    services = Services(
        ApiDependencies(
            use_cases=service.use_cases,
            run=worker,
            run_for=run_for,
            read=worker.read,
            read_for=read_for,
            pushing=NoDeliveries(),
            inventories=DriverInventories(service.drivers),
            timekeeper=service.time,
            probes=health or Health(),
            guest_counters=lambda: {"polls": 7},
        ),
        EVERYTHING,
    )
    # Tests call more often than people do.
    return create_app(services, settings or ApiSettings(names=names, limits=CallerLimits(rate=0)))


class Api:
    """A client of an app in the same process."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, method: str, path: str, **more: Any) -> httpx.Response:
        return asyncio.run(self._send(method, path, **more))

    async def _send(self, method: str, path: str, **more: Any) -> httpx.Response:
        transport = httpx.ASGITransport(app=self._app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8170") as client:
            return await client.request(method, path, **more)


def check_answer(kind: type[ApiAnswer], body: dict[str, Any]) -> None:
    """Assert that a body has exactly the keys of an answer, with values of their types."""
    assert write_body(read_body(kind, body)) == body


def check_page(kind: type[ApiAnswer], body: dict[str, Any]) -> None:
    """Assert the same of a page of answers."""
    assert write_body(read_page(kind, body)) == body


def sample() -> FleetSpec:
    """An availability set on three hosts, a spot machine and a standalone one."""
    web = (machine(f"web-{n}", f"host-{n % 3 + 1}", group="web", domain=n % 3) for n in range(6))
    return fleet(
        group("web"),
        *web,
        machine("spot-0", "host-1", priority=Priority.SPOT),
        machine("db", "host-2", address="10.0.0.9"),
    )


@contextmanager
def serving(app: ASGIApp) -> Iterator[str]:
    """Serve an app on a free loopback port, and yield its URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
