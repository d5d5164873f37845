"""A guest endpoint on real sockets, with commands that keep groups in memory, and a raw HTTP client."""

import asyncio
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import uvloop

from forewarn.clock import Clock, ManualClock
from forewarn.core.basic_types import EventId, GroupKind, GroupName, MachineId, MachineName, ProjectName
from forewarn.core.errors import Conflict, NotFound
from forewarn.core.feed import Delta
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine
from forewarn.guest.board.board import Board
from forewarn.guest.http.listeners import Listen
from forewarn.guest.server import GuestServer
from forewarn.guest.settings import EndpointSettings, Limits
from tests.helpers.programs.process import PATIENCE
from tests.unit.documents import event as event

Result = TypeVar("Result")

START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
START_DATE = "Mon, 05 Jan 2026 12:00:00 GMT"
EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
FREE = EndpointSettings(rate=0)  # for tests without a rate limit


def machine(name: str = "web-0", *, group: str = "web", **more: Any) -> Machine:
    if not more.keys() & {"address", "port"}:
        more["address"] = "127.0.0.1"
    return Machine(
        id=MachineId(f"id-of-{name}"),
        name=MachineName(name),
        project=ProjectName("default"),
        group=GroupName(group),
        host=None,
        **more,
    )


def group(name: str = "web", *, enabled: bool = True, **more: Any) -> Group:
    at = START if enabled else None
    kind = more.pop("kind", GroupKind.AVAILABILITY_SET)
    return Group(
        name=GroupName(name), project=ProjectName("default"), kind=kind, enabled_at=at, ready_at=at, **more
    )


@dataclass
class Answer:
    """An answer as a client has read it."""

    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    """A client that sends raw bytes and reads answers one by one."""

    def __init__(self, address: tuple[str, int], source: str | None = None) -> None:
        self.socket = socket.create_connection(
            address, timeout=PATIENCE, source_address=(source, 0) if source is not None else None
        )
        self._received = b""

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def request(
        self, method: str, target: str, *headers: str, body: bytes = b"", host: str = "127.0.0.1"
    ) -> Answer:
        self.send(request(method, target, *headers, body=body, host=host))
        return self.read(head_only=method == "HEAD")

    def get(self, target: str = EVENTS, *headers: str) -> Answer:
        return self.request("GET", target, "Metadata: true", *headers)

    def read(self, *, head_only: bool = False) -> Answer:
        while b"\r\n\r\n" not in self._received:
            self.fill()
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        length = 0 if head_only else int(headers.get("content-length", 0))
        while len(self._received) < length:
            self.fill()
        body, self._received = self._received[:length], self._received[length:]
        assert first.startswith("HTTP/1.1 "), first
        return Answer(int(first.split()[1]), headers, body)

    def is_closed(self) -> bool:
        """Wait until the server closes the connection; fail if it sends anything else."""
        try:
            return self._received == b"" and self.socket.recv(4096) == b""
        except ConnectionResetError:
            return True

    def fill(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise EOFError(self._received)
        self._received += data


def request(method: str, target: str, *headers: str, body: bytes = b"", host: str = "127.0.0.1") -> bytes:
    """Return the bytes of a request."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join((*lines, "", "")).encode() + body


class MemoryDesk:
    """Keeps groups and events in memory, and updates the board before each answer."""

    def __init__(self, groups: Sequence[Group], clock: Clock) -> None:
        self.groups = {each.name: each for each in groups}
        self.events: dict[GroupName, tuple[Event, ...]] = {}
        self.clock = clock
        self.delay = timedelta()
        self.enabled: list[GroupName] = []
        self.approved: list[tuple[MachineId, tuple[EventId, ...], str]] = []
        self.impostors: list[tuple[MachineId, str, str]] = []
        self.failure: Exception | None = None
        self.apply: Callable[[Sequence[Delta]], Awaitable[None]]

    async def enable(self, group: GroupName) -> None:
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        self.enabled.append(group)
        now = self.clock.now()
        self.groups[group] = replace(self.groups[group], enabled_at=now, ready_at=now + self.delay)
        await self.apply([self.delta(group)])

    async def defer(self, machine: MachineId, events: Mapping[EventId, int], *, address: str) -> None:
        raise Conflict("events of this group cannot be deferred")

    async def approve(self, machine: MachineId, events: Sequence[EventId], *, address: str) -> None:
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        known = {each.id for listed in self.events.values() for each in listed}
        for each in events:
            if each not in known:
                raise NotFound(f"event {each} is not known")
        self.approved.append((machine, tuple(events), address))

    async def record_impostor(self, machine: MachineId, *, mac: str, address: str) -> None:
        self.impostors.append((machine, mac, address))

    def delta(self, *names: GroupName) -> Delta:
        groups = tuple(self.groups[name] for name in names)
        return Delta(number=1, groups=groups, events={name: self.events.get(name, ()) for name in names})


class Face:
    """The endpoint on its own loop, for tests on other threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop, groups: Sequence[Group], clock: Clock | None) -> None:
        self.loop = loop
        self.clock = ManualClock(START)
        self._clock = clock or self.clock
        self.board = Board(lineage="test")
        self.desk = MemoryDesk(groups, self._clock)
        self.faults: list[object] = []
        self.server: GuestServer

    async def start(
        self, machines: Sequence[Machine], settings: EndpointSettings, hosts: Sequence[str]
    ) -> None:
        self.loop.set_exception_handler(lambda _, context: self.faults.append(context))
        ids = iter(range(1, 1_000_000))
        self.server = GuestServer(
            self.board,
            self.desk,
            clock=self._clock,
            settings=settings,
            new_id=lambda: f"ABCDEF00-0000-4000-8000-{next(ids):012X}",
        )
        self.desk.apply = self.server.apply
        await self.server.apply([replace(self.desk.delta(*self.desk.groups), machines=tuple(machines))])
        await self.server.start([Listen(host=host, port=0) for host in hosts])

    def run(self, work: Awaitable[Result]) -> Result:
        async def waited() -> Result:
            return await work

        future: Future[Result] = asyncio.run_coroutine_threadsafe(waited(), self.loop)
        return future.result(timeout=PATIENCE)

    def do(self, act: Callable[[], Result]) -> Result:
        async def acted() -> Result:
            return act()

        return self.run(acted())

    def take(self) -> tuple[dict[GroupName, datetime], dict[MachineId, datetime]]:
        """Take the new polls, like the worker."""
        return self.do(lambda: self.board.take(self._clock.now()))

    def connect(self, source: str | None = None, *, place: int = 0, port: int | None = None) -> Client:
        address = self.server.listeners.addresses[place] if port is None else ("127.0.0.1", port)
        return Client(address, source)

    def get(self, target: str = EVENTS, *headers: str, source: str | None = None) -> Answer:
        with self.connect(source) as client:
            return client.get(target, *headers)

    def apply(self, **changes: Any) -> None:
        self.run(self.server.apply([Delta(number=1, events=changes.pop("events", {}), **changes)]))

    def show(self, *events: Event, name: str = "web") -> None:
        """Replace the events of a group."""
        before = self.desk.groups[GroupName(name)]
        self.desk.groups[before.name] = replace(before, incarnation=before.incarnation + 1)
        self.desk.events[before.name] = events
        self.run(self.server.apply([self.desk.delta(before.name)]))

    def waiting(self, count: int) -> None:
        """Wait until this many requests wait."""
        self._until(lambda: len(self.board.waiting) == count)

    def connections(self, count: int) -> None:
        """Wait until this many connections are open."""
        self._until(lambda: len(self.server.connections.connections) == count)

    def _until(self, true: Callable[[], bool]) -> None:
        async def watch() -> None:
            async with asyncio.timeout(5):
                while not true():  # noqa: ASYNC110  # no event signals it
                    await asyncio.sleep(0)

        self.run(watch())


class _Errors(logging.Handler):
    def __init__(self, faults: list[object]) -> None:
        super().__init__(logging.ERROR)
        self.faults = faults

    def emit(self, record: logging.LogRecord) -> None:
        self.faults.append(record.getMessage())


@contextmanager
def serving(
    *machines: Machine,
    groups: Sequence[Group] = (),
    settings: EndpointSettings = FREE,
    hosts: Sequence[str] = ("127.0.0.1",),
    clock: Clock | None = None,
) -> Iterator[Face]:
    """Serve a fleet; fail the test if an error was logged."""
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    face = Face(loop, groups or (group(),), clock)
    errors = _Errors(face.faults)
    logging.getLogger().addHandler(errors)
    try:
        face.run(face.start(machines or (machine(),), settings, hosts))
        yield face
    finally:
        face.run(face.server.stop())  # the loop cannot close with open sockets
        logging.getLogger().removeHandler(errors)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
    assert face.faults == []


def with_limits(**limits: Any) -> EndpointSettings:
    return EndpointSettings(rate=0, limits=Limits(**limits))
