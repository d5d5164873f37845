"""The endpoint that the guest of one machine polls: the private service, and in front of it the faults."""

import asyncio
import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from forewarn.rehearsal import message
from forewarn.rehearsal.ledger import Ledger
from forewarn.rehearsal.message import Garbled, Message
from forewarn.rehearsal.scenario import Fault, FaultKind, Step
from forewarn.rehearsal.stage import Faults, Stage, until
from forewarn.rehearsal.twist import Telling
from forewarn.wire.azure import compact

LOOPBACK = "127.0.0.1"
RETRY = ("Retry-After", "1")
JSON = ("Content-Type", "application/json; charset=utf-8")
SERVER = ("Server", "IMDS/forewarn")

# What the service itself, or what stands before it, answers in trouble.
REFUSALS = {
    FaultKind.TOO_MANY: message.answer(429, b'{ "error": "Too many requests" }', [JSON, SERVER, RETRY]),
    FaultKind.ERROR: message.answer(500, b'{ "error": "Internal server error" }', [JSON, SERVER]),
    FaultKind.UNAVAILABLE: message.answer(503, b'{ "error": "Service unavailable" }', [JSON, SERVER, RETRY]),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What all endpoints of a rehearsal share."""

    service: tuple[str, int]
    stage: Stage
    faults: Faults
    ledger: Ledger


class Endpoint:
    """Listens for one machine's guest."""

    def __init__(self, machine: str, address: str, house: House) -> None:
        """Take the address from which the private service knows the machine."""
        self._machine = machine
        self._address = address
        self._house = house
        self._telling = Telling()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, port: int) -> str:
        """Listen on a port, 0 for any, and return the URL."""
        self._server = await asyncio.start_server(self._serve, LOOPBACK, port)
        host, taken = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{taken}"

    async def close(self) -> None:
        """Hang up."""
        if self._server is not None:
            self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        upstream = _Upstream(self._house.service, self._address)
        try:
            await self._converse(reader, writer, upstream)
        except Garbled:
            writer.write(message.answer(400, headers=[("Connection", "close")]).bytes())
        except OSError:
            pass  # the guest, or the service at the very end, has hung up
        except asyncio.CancelledError:
            pass  # the rehearsal is over; the stream's own callback would log it
        finally:
            upstream.close()
            with contextlib.suppress(OSError):
                writer.close()

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, upstream: "_Upstream"
    ) -> None:
        while (request := await message.read_request(reader, writer)) is not None:
            if request.about_events:
                if request.method != "POST":
                    self._house.ledger.polled(self._machine, now=self._house.stage.now())
                reply = await self._about_events(request, reader, upstream)
            else:
                reply = await upstream.ask(request)
            if reply is None:
                return
            writer.write(reply.bytes())
            await writer.drain()
            if reply.closes or request.closes:
                return

    async def _about_events(
        self, request: Message, reader: asyncio.StreamReader, upstream: "_Upstream"
    ) -> Message | None:
        house = self._house
        met = house.faults.met_by(self._machine)
        kinds = {step.does.kind: step for step in met if isinstance(step.does, Fault)}
        if FaultKind.SLOW in kinds:
            await self._dawdle(kinds[FaultKind.SLOW])
        if FaultKind.HANG in kinds:
            await self._hang(kinds[FaultKind.HANG], reader)
            return None
        for kind in kinds:
            if kind in REFUSALS:
                house.ledger.spoiled(self._machine, f"a {kind}")
                return REFUSALS[kind]
        if request.method == "POST":
            return await self._approve(request, upstream)
        return await self._poll_or_begin_anew(request, reader, upstream, met)

    async def _poll_or_begin_anew(
        self, request: Message, reader: asyncio.StreamReader, upstream: "_Upstream", met: Sequence[Step]
    ) -> Message | None:
        """Poll; a request that the service holds meets the faults that begin meanwhile, too."""
        polling = asyncio.ensure_future(self._poll(request, upstream, met))
        changed = asyncio.ensure_future(self._house.faults.change(self._machine))
        try:
            await asyncio.wait((polling, changed), return_when=asyncio.FIRST_COMPLETED)
            if polling.done():
                return polling.result()
        finally:
            changed.cancel()
            polling.cancel()
        upstream.close()
        return await self._about_events(request, reader, upstream)

    async def _dawdle(self, step: Step) -> None:
        if isinstance(step.does, Fault):
            self._house.ledger.spoiled(self._machine, "a slow answer")
            await self._house.stage.wait(step.does.delay, unless=lambda: self._house.faults.lifted(step))

    async def _hang(self, step: Step, reader: asyncio.StreamReader) -> None:
        self._house.ledger.spoiled(self._machine, "an endpoint that hangs")
        await until(lambda: not self._house.faults.on(step) or reader.at_eof())

    async def _approve(self, request: Message, upstream: "_Upstream") -> Message:
        reply = await upstream.ask(request)
        now = self._house.stage.now()
        if reply.status == 200:  # noqa: PLR2004 - a status
            self._house.ledger.sound(self._machine, now=now)
            wanted = json.loads(request.body)["StartRequests"]
            self._house.ledger.approved(self._machine, [each["EventId"] for each in wanted], now=now)
        else:
            self._house.ledger.spoiled(self._machine, f"a {reply.status} to its approval")
        return reply

    async def _poll(self, request: Message, upstream: "_Upstream", met: Sequence[Step]) -> Message:
        if met or self._telling.twisted:
            # The document is needed, for it may have to be changed.
            reply = await upstream.ask(request.without("if-none-match", "prefer"))
        else:
            reply = await upstream.ask(request)
        if reply.status == 200:  # noqa: PLR2004 - a status
            return self._document(request, reply, met)
        if reply.status == 304:  # noqa: PLR2004 - a status
            self._house.ledger.sound(self._machine, now=self._house.stage.now())
        else:
            self._house.ledger.spoiled(self._machine, f"a {reply.status}")
        return reply

    def _document(self, request: Message, reply: Message, met: Sequence[Step]) -> Message:
        house, now = self._house, self._house.stage.now()
        kinds = {step.does.kind for step in met if isinstance(step.does, Fault)}
        if FaultKind.EMPTY in kinds:
            house.ledger.spoiled(self._machine, "an empty answer")
            return _with_body(reply.without("etag"), b"")
        document = json.loads(reply.body)
        instead = self._telling.tell(document, met, now=now)
        house.ledger.told(
            self._machine, [_named(event) for event in (instead or document)["Events"]], now=now
        )
        if instead is not None:
            reply = _twisted(request, reply, instead)
        if FaultKind.TEXT in kinds:
            house.ledger.spoiled(self._machine, "text/plain")
            plain = reply.without("content-type")
            return replace(plain, headers=(("Content-Type", "text/plain"), *plain.headers))
        house.ledger.sound(self._machine, now=now)
        return reply


def _named(event: dict[str, Any]) -> tuple[str, str]:
    status, names = event["EventStatus"], ", ".join(event["Resources"])
    return event["EventId"], f"{event['EventType']} of {names} ({status}, event {event['EventId'][:8]})"


def _twisted(request: Message, reply: Message, document: Any) -> Message:
    tag = f'"{document["DocumentIncarnation"]}-rehearsal"'
    asked = (request.header("if-none-match") or "").strip('"')
    if asked and asked == tag.strip('"'):
        return message.answer(304, headers=[("ETag", tag), SERVER])
    return _with_body(reply.without("etag"), compact(document), ("ETag", tag))


def _with_body(reply: Message, body: bytes, *headers: tuple[str, str]) -> Message:
    rest = reply.without("content-length")
    length = ("Content-Length", str(len(body)))
    return replace(rest, headers=(*rest.headers, *headers, length), body=body)


class _Upstream:
    """A connection to the private service, as the machine; opened when it is needed."""

    def __init__(self, service: tuple[str, int], address: str) -> None:
        self._service = service
        self._address = address
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: Message) -> Message:
        """Pass a request on, and return the answer."""
        if self._streams is None or self._streams[0].at_eof():
            self.close()
            host, port = self._service
            self._streams = await asyncio.open_connection(host, port, local_addr=(self._address, 0))
        reader, writer = self._streams
        writer.write(request.bytes())
        return await message.read_answer(reader)

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            with contextlib.suppress(OSError):
                self._streams[1].close()
        self._streams = None
