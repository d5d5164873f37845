"""Both clients read every framing of HTTP answers, and reuse connections."""

import asyncio
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from forewarn import AsyncGuestClient, Closed, EndpointUnavailable
from forewarn.sdk.transport import endpoint_urls
from forewarn.sdk.transport.asyncio_driver import AsyncioConnection
from forewarn.sdk.transport.exchange import HANGS_UP, LONGEST_HEAD, Reply
from tests.helpers.programs.guests import BOTH
from tests.helpers.programs.process import PATIENCE
from tests.helpers.service.scripted import answer, scripted

Connect = Callable[..., Any]


def document(incarnation: int) -> bytes:
    return b'{"DocumentIncarnation":%d,"Events":[]}' % incarnation


@contextmanager
def answering(*parts: bytes, tls: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[bytes]]]:
    """Listen on a free port. Read one request per connection, answer in pieces, and close it.

    Yield the URL and the received data: requests, and without an answer also the data after each request.
    """
    came: list[bytes] = []

    def serve(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with suppress(OSError), connection:
                    secured = connection if tls is None else tls.wrap_socket(connection, server_side=True)
                    came.append(secured.recv(65536))
                    for part in parts:
                        secured.sendall(part)
                    if not parts:
                        came.append(secured.recv(65536))
                    with suppress(OSError):
                        secured.unwrap() if isinstance(secured, ssl.SSLSocket) else None
                    secured.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            scheme = "http" if tls is None else "https"
            yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}", came
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
SEVENTH = document(7)


def chunk(part: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(part), part)


FORMS: dict[str, Sequence[bytes]] = {
    "whole": [answer(200, SEVENTH)],
    "by the byte": [bytes([byte]) for byte in answer(200, SEVENTH)],
    "in chunks": [CHUNKED, chunk(SEVENTH[:5]), chunk(SEVENTH[5:]) + b"0\r\n\r\n"],
    "in chunks with a trailer": [CHUNKED, chunk(SEVENTH), b"0\r\nX-Sum: 1\r\n\r\n"],
    "until it hangs up": [HEAD + b"\r\n", SEVENTH],
    "as HTTP/1.0": [b"HTTP/1.0 200 OK\r\n\r\n" + SEVENTH],
    "after a continue": [b"HTTP/1.1 100 Continue\r\n\r\n", answer(200, SEVENTH)],
    "after hints": [b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + answer(200, SEVENTH)],
    "with headers twice": [answer(200, SEVENTH, "X-A: 1", "X-A: 2")],
}


@BOTH
@pytest.mark.parametrize("parts", FORMS.values(), ids=FORMS)
def test_every_framing_of_an_answer_is_read(connect: Connect, parts: Sequence[bytes]) -> None:
    with answering(*parts) as (url, _), connect(url, persistence=0) as client:
        assert client.events().incarnation == 7


CUT: dict[str, bytes] = {
    "in the head": HEAD + b"Content-Len",
    "in the body": HEAD + b"Content-Length: 99\r\n\r\n" + document(7),
    "in a chunk": CHUNKED + b"99\r\n" + document(7),
    "at once": b"\0",
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "a head without end": HEAD + b"X: " + b"x" * 2 * LONGEST_HEAD,
}


@BOTH
@pytest.mark.parametrize("said", CUT.values(), ids=CUT)
def test_a_truncated_answer_is_unavailable(connect: Connect, said: bytes) -> None:
    with (
        answering(said) as (url, _),
        connect(url, persistence=0) as client,
        pytest.raises(EndpointUnavailable, match=url),
    ):
        client.events()


@BOTH
def test_a_closed_connection_is_reported(connect: Connect) -> None:
    with scripted(b"") as mute, connect(mute.url, persistence=0) as client:
        says = re.escape(f"no metadata endpoint answers at {mute.url}: {HANGS_UP}")
        with pytest.raises(EndpointUnavailable, match=f"{says}$"):
            client.events()


@BOTH
def test_a_server_that_closes_after_each_answer_is_supported(connect: Connect) -> None:
    with answering(answer(200, document(7))) as (url, _), connect(url, persistence=0) as client:
        assert {client.events().incarnation for _ in range(100)} == {7}


@BOTH
def test_a_connection_is_closed_when_the_server_asks_for_it(connect: Connect) -> None:
    kept, closed = answer(200, document(1)), answer(200, document(2), "Connection: close")
    with scripted(kept, kept, closed, kept) as azure, connect(azure.url) as client:
        assert [client.events().incarnation for _ in range(4)] == [1, 1, 2, 1]
        assert len(azure.connections) == 2


@BOTH
def test_unrequested_data_is_not_the_next_answer(connect: Connect) -> None:
    smuggled = answer(200, document(1)) + answer(200, document(666))
    with scripted(smuggled, answer(200, document(2))) as azure, connect(azure.url) as client:
        assert [client.events().incarnation for _ in range(2)] == [1, 2]
        assert len(azure.connections) == 2


def test_data_on_an_idle_connection_closes_it() -> None:
    async def main() -> None:
        with scripted(answer(200, document(1))) as azure:
            async with AsyncGuestClient(azure.url) as client:
                await client.events()
                azure.connections[0].sendall(answer(200, document(666)))
                # Whenever it arrives, the client closes the connection and uses another one.
                async with asyncio.timeout(PATIENCE):
                    while len(azure.connections) == 1:
                        await asyncio.sleep(0.01)
                        assert (await client.events()).incarnation == 1

    asyncio.run(main())


def test_a_cancelled_request_ends_its_connection() -> None:
    async def main() -> None:
        with answering() as (url, came):
            async with AsyncGuestClient(url) as client, asyncio.timeout(PATIENCE):
                asking = asyncio.create_task(client.events())
                while not came:  # noqa: ASYNC110 - the server sends no notification of received data
                    await asyncio.sleep(0.01)
                asking.cancel()
                while len(came) == 1:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.01)
        assert came[1] == b""

    asyncio.run(main())


def test_a_request_cancelled_as_its_answer_arrives_ends_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        with scripted(answer(200, document(1))) as azure:
            async with AsyncGuestClient(azure.url) as client, asyncio.timeout(PATIENCE):
                asking = asyncio.create_task(client.events())
                end_with = AsyncioConnection.end_with

                def end_too_late(self: AsyncioConnection, reply: Reply | None) -> None:
                    end_with(self, reply)
                    asking.cancel()

                monkeypatch.setattr(AsyncioConnection, "end_with", end_too_late)
                with pytest.raises(asyncio.CancelledError):
                    await asking
                while azure.connections[0].fileno() >= 0:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.01)

    asyncio.run(main())


def test_close_ends_an_open_request() -> None:
    async def main() -> None:
        with answering() as (url, came):
            client = AsyncGuestClient(url)
            async with asyncio.timeout(PATIENCE):
                asking = asyncio.create_task(client.events())
                while not came:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.01)
                await client.aclose()
                with pytest.raises(Closed):
                    await asking
                while len(came) == 1:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.01)
                with pytest.raises(Closed):
                    await client.events()
        assert came == [came[0], b""]

    asyncio.run(main())


def test_an_answer_during_close_leaves_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        with scripted(answer(200, document(1))) as azure:
            client = AsyncGuestClient(azure.url)
            end_with = AsyncioConnection.end_with

            def end_and_close(self: AsyncioConnection, reply: Reply | None) -> None:
                end_with(self, reply)
                with pytest.raises(StopIteration):  # it waits for nothing
                    client.aclose().send(None)

            monkeypatch.setattr(AsyncioConnection, "end_with", end_and_close)
            async with asyncio.timeout(PATIENCE):
                assert (await client.events()).incarnation == 1
                while azure.connections[0].fileno() >= 0:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.01)

    asyncio.run(main())


def test_a_watch_ends_when_another_task_closes_the_client() -> None:
    async def main() -> None:
        with scripted(answer(200, document(1)), b"") as azure:
            client = AsyncGuestClient(azure.url)
            closing: list[asyncio.Task[None]] = []

            def close(error: EndpointUnavailable | None) -> None:
                closing.append(asyncio.create_task(client.aclose()))

            async with asyncio.timeout(PATIENCE):
                assert [each.incarnation async for each in client.watch(trouble=close)] == [1]

    asyncio.run(main())


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes certificates, is not installed")
    made = ["-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2"]
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(["openssl", "req", "-x509", *made, *names], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path / "cert.pem"


@BOTH
@pytest.mark.parametrize("trusts", [True, False])
def test_https_needs_a_trusted_certificate(
    connect: Connect, certificate: Path, trusts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.load_cert_chain(certificate, certificate.with_name("key.pem"))
    if trusts:
        context = ssl.create_default_context(cafile=str(certificate))
        monkeypatch.setattr(endpoint_urls, "tls_context", lambda url: context)
    with answering(answer(200, document(7)), tls=shown) as (url, _), connect(url, persistence=0) as client:
        if trusts:
            assert client.events().incarnation == 7
        else:
            with pytest.raises(EndpointUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
                client.events()


def test_agent_and_clients_do_not_import_httpx() -> None:
    """httpx would take a third of the memory of an agent."""
    loaded = "forewarn.agent.daemon, forewarn.sdk.async_client, forewarn.sdk.blocking_client"
    code = f"import sys, {loaded}; print('httpx' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
