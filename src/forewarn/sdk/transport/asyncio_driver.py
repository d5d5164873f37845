"""The asyncio driver: performs steps in an event loop."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from forewarn.sdk.transport.connection_reuse import TOO_LATE, Connect, Pause, Steps, Transfer, unreachable
from forewarn.sdk.transport.exchange import Exchange, NoAnswer, Reply

Result = TypeVar("Result")


async def run(steps: Steps[Result], *, pause: Callable[[float], Awaitable[object]]) -> Result:
    """Perform steps one by one, and return their result."""
    with contextlib.closing(steps):
        try:
            step = next(steps)
            while True:
                match step:
                    case Pause(seconds):
                        step = steps.send(await pause(seconds))
                    case Connect():
                        step = steps.send(await connect(step))
                    case Transfer(connection, data, seconds):
                        step = steps.send(await connection.transfer(data, seconds))
        except StopIteration as end:
            result: Result = end.value
            return result


async def connect(step: Connect) -> "AsyncioConnection | NoAnswer":
    """Open a connection."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(step.seconds):
            _, made = await loop.create_connection(AsyncioConnection, step.host, step.port, ssl=step.tls)
    except OSError as error:
        return unreachable(error)
    return made


class AsyncioConnection(asyncio.Protocol):
    """A connection of the asyncio driver."""

    def __init__(self) -> None:
        self.exchange = Exchange()
        self._transport: asyncio.Transport | None = None
        self._reply: asyncio.Future[Reply] | None = None  # while one is awaited

    @property
    def is_reusable(self) -> bool:
        """Whether it is open; unrequested data would have closed it."""
        return self._transport is not None and not self._transport.is_closing()

    async def transfer(self, data: bytes, seconds: float) -> Reply:
        """Send bytes, and receive until the reply is complete."""
        if self._transport is None or self._transport.is_closing():
            return self.exchange.lost()  # writing to it would report no error
        self._reply = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                self._transport.write(data)
                return await self._reply
        except TimeoutError:
            return TOO_LATE
        finally:
            self._reply = None

    def hang_up(self) -> None:
        """Abort the connection."""
        if self._transport is not None:
            self._transport.abort()

    close = hang_up

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Receive data; unrequested data closes the connection, or it would look like the next answer."""
        if self._reply is None or self._reply.done():
            self.hang_up()
        else:
            self.end_with(self.exchange.receive(data))

    def eof_received(self) -> None:
        """Receive the end of the stream, which may complete an answer."""
        if self._reply is not None and not self._reply.done():
            self.end_with(self.exchange.receive(b""))

    def connection_lost(self, error: Exception | None) -> None:
        """End the wait for a reply."""
        self.end_with(self.exchange.lost(error))

    def end_with(self, reply: Reply | None) -> None:
        """Set the reply of the request; None: it is not complete yet."""
        if reply is not None and self._reply is not None and not self._reply.done():
            self._reply.set_result(reply)
