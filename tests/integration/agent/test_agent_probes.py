"""The agent's probe port with clients that never finish their requests."""

import asyncio
from collections.abc import Callable
from http import HTTPStatus

import pytest

from forewarn.agent.probes import MOST_CONNECTIONS, REQUEST_SECONDS, ProbePage, ProbeServer
from tests.helpers.programs.process import PATIENCE

HALF_OPEN = 300
BUSY = b"busy " * 1_000_000  # more than the buffers of a connection

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def serving(*, request_seconds: float = REQUEST_SECONDS) -> tuple[ProbeServer, int]:
    pages = {
        "/healthz": lambda: ProbePage(HTTPStatus.OK, b"{}"),
        "/busy": lambda: ProbePage(HTTPStatus.OK, BUSY),
    }
    server = ProbeServer(pages, request_seconds=request_seconds)
    _, port = await server.start("127.0.0.1", 0)
    return server, port


async def half_open(port: int, *, sent: bytes) -> Stream:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    return reader, writer


async def probed(port: int) -> bytes:
    reader, writer = await half_open(port, sent=b"GET /healthz HTTP/1.1\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer.partition(b"\r\n")[0]


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\n"])
def test_half_open_connections_give_way_to_a_probe(sent: bytes) -> None:
    async def attack() -> None:
        server, port = await serving()
        streams = [await half_open(port, sent=sent) for _ in range(HALF_OPEN)]
        async with asyncio.timeout(PATIENCE):
            assert await probed(port) == b"HTTP/1.1 200 OK"
            # The oldest connections were closed without an answer.
            for reader, _ in streams[: HALF_OPEN - MOST_CONNECTIONS]:
                assert await ended(reader) == b""
        for _, writer in streams:
            writer.close()
        await server.stop()

    asyncio.run(attack())


def test_a_half_open_connection_ends_by_itself() -> None:
    async def attack() -> None:
        server, port = await serving(request_seconds=0.1)
        reader, writer = await half_open(port, sent=b"GET /healthz HTTP/1.1\r\n")
        async with asyncio.timeout(PATIENCE):
            assert await ended(reader) == b""
        writer.close()
        await server.stop()

    asyncio.run(attack())


def test_an_unread_answer_does_not_keep_a_connection_open() -> None:
    async def attack() -> None:
        server, port = await serving(request_seconds=0.1)
        reader, writer = await half_open(port, sent=b"GET /busy HTTP/1.1\r\n\r\n")
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # a transport of a socket
        async with asyncio.timeout(PATIENCE):
            await until(lambda: server.connections == 1)
            await until(lambda: server.connections == 0)
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        async with asyncio.timeout(PATIENCE):
            assert len(await ended(reader)) < len(BUSY)
        writer.close()
        await server.stop()

    asyncio.run(attack())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - the server shows no event for it
        await asyncio.sleep(0)


async def ended(reader: asyncio.StreamReader) -> bytes:
    """Read to the end of a connection."""
    taken = b""
    try:
        while piece := await reader.read(65536):
            taken += piece
    except OSError:
        pass
    return taken
