"""Limits of the operator port: the number of connections, timeouts, and the size of requests."""

import asyncio
import logging
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from forewarn.guest.http.refusals import Limit, Refusals
from forewarn.server import addresses
from forewarn.server.threads.acceptor import Caps
from forewarn.server.threads.operator_connection import HEAD_BYTES, HEADERS, PortCounts, Timeouts
from forewarn.server.threads.operator_server import OperatorServer, Tls
from forewarn.supervision import Supervisor
from tests.helpers.programs import certificates
from tests.helpers.programs.process import until
from tests.integration.guest.guest_face import Client, request

ROOMY = Caps(whole=100, per_address=100)
GET = request("GET", "/")
HALF = GET[:-2]
CHUNKED = request("POST", "/", "Transfer-Encoding: chunked")
OTHER = "127.0.0.9"
# Longer than a busy computer delays a client, in seconds.
A_WHILE = 0.5


class HoldingApp:
    """Answers at once; /held waits for the test, and /endless streams until the client disconnects."""

    def __init__(self) -> None:
        self.held = self.ended = 0
        self.let_go, self.let_go_again = threading.Event(), threading.Event()
        self.asked: list[tuple[str, str]] = []  # the scheme and the source address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._answer(scope, receive, send)
        finally:
            self.ended += 1

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked.append((scope["scheme"], scope["client"][0]))
        if scope["path"] == "/held":
            self.held += 1
            await asyncio.to_thread(self.let_go.wait)
        if scope["path"] == "/held-again":
            self.held += 1
            await asyncio.to_thread(self.let_go_again.wait)
        if scope["method"] == "POST":
            while (await receive()).get("more_body"):
                pass
        length = [] if scope["path"] == "/endless" else [(b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 200, "headers": length})
        if scope["path"] == "/endless":
            await self._go_on(receive, send)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _go_on(self, receive: Receive, send: Send) -> None:
        await receive()
        gone = asyncio.ensure_future(receive())  # the next message is the disconnect
        while not gone.done():
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
            await asyncio.sleep(0)  # sending to a disconnected client does not block


class Port:
    """An operator port that serves the app."""

    def __init__(self, caps: Caps, timeouts: Timeouts, tls: Tls | None) -> None:
        self.app = HoldingApp()
        self.counts = PortCounts(Refusals("operator"))
        self._bound = addresses.bound("127.0.0.1", 0)
        self.address: tuple[str, int] = self._bound.getsockname()
        self.server = OperatorServer(
            self.app,
            [self._bound],
            caps=caps,
            counts=self.counts,
            timeouts=timeouts,
            tls=tls and tls.context(),
        )

    def connect(self, source: str | None = None) -> Client:
        return Client(self.address, source)

    def hold(self) -> Client:
        """Begin a request that the app answers when the test releases it."""
        before, client = self.app.held, self.connect()
        client.send(request("GET", "/held"))
        until(lambda: self.app.held > before, what="the request to arrive")
        return client


@contextmanager
def serving(caps: Caps = ROOMY, timeouts: Timeouts | None = None, tls: Tls | None = None) -> Iterator[Port]:
    port = Port(caps, timeouts or Timeouts(), tls)
    port.server.start(Supervisor())
    try:
        yield port
    finally:
        port.app.let_go.set()
        port.app.let_go_again.set()
        port.server.stop()


def halves(port: Port, count: int, source: str | None = None) -> list[Client]:
    """Open connections with incomplete requests."""
    clients = [port.connect(source) for _ in range(count)]
    for client in clients:
        client.send(HALF)
    return clients


def close(*clients: Client) -> None:
    for client in clients:
        client.socket.close()


def status_of(answer_to: Client) -> int:
    with answer_to as client:
        return client.request("GET", "/").status


# The number of connections


def test_connections_to_all_addresses_share_one_limit() -> None:
    bound = [addresses.bound("127.0.0.1", 0) for _ in range(2)]
    app, caps = HoldingApp(), Caps(whole=2, per_address=2)
    server = OperatorServer(app, bound, caps=caps, counts=PortCounts(Refusals("operator")))
    server.start(Supervisor())
    try:
        held = [Client(each.getsockname(), None) for each in bound]
        for client in held:
            client.send(request("GET", "/held"))
        until(lambda: app.held == 2, what="the requests to arrive")
        one_more = Client(bound[0].getsockname(), None)
        assert one_more.is_closed()
        close(*held, one_more)
    finally:
        app.let_go.set()
        server.stop()


def test_a_connection_replaces_the_oldest_idle_one_of_its_address() -> None:
    with serving(Caps(whole=100, per_address=2)) as port:
        oldest, younger = halves(port, 2)
        assert status_of(port.connect()) == 200
        assert oldest.is_closed()
        younger.send(b"\r\n")
        assert younger.read().status == 200
        close(oldest, younger)
        assert port.counts.refusals.counts[Limit.ADDRESS] == 1


def test_an_address_with_many_connections_takes_none_from_others() -> None:
    with serving(Caps(whole=3, per_address=2)) as port:
        other = halves(port, 1, source=OTHER)[0]
        mine = [halves(port, 1)[0] for _ in range(5)]
        assert all(client.is_closed() for client in mine[:3])
        other.send(b"\r\n")
        assert other.read().status == 200
        close(other, *mine)


def test_without_room_the_oldest_idle_connection_is_replaced() -> None:
    with serving(Caps(whole=2, per_address=100)) as port:
        halved = halves(port, 2, source=OTHER)
        assert [status_of(port.connect()) for _ in range(5)] == [200] * 5
        assert halved[0].is_closed()
        close(*halved)
        assert port.counts.refusals.counts[Limit.WHOLE] >= 1


def test_a_connection_with_an_open_request_is_never_replaced() -> None:
    with serving(Caps(whole=2, per_address=2)) as port:
        busy = [port.hold(), port.hold()]
        with port.connect() as one_more:
            assert one_more.is_closed()
        port.app.let_go.set()
        assert [client.read().status for client in busy] == [200, 200]
        close(*busy)


def test_a_connection_that_ends_makes_room_for_another() -> None:
    with serving(Caps(whole=1, per_address=1)) as port:
        for _ in range(10):
            client = port.hold()
            port.app.let_go.set()
            assert client.read().status == 200
            port.app.let_go.clear()
            close(client)


# Timeouts


def test_an_incomplete_request_is_closed_after_the_timeout() -> None:
    with serving(timeouts=Timeouts(head=A_WHILE)) as port:
        (half,) = halves(port, 1)
        assert half.is_closed()
        close(half)
        with port.connect() as silent:
            assert silent.is_closed()
        with port.connect() as client:
            assert client.request("GET", "/").status == 200
            client.send(HALF)
            assert client.is_closed()


def test_an_incomplete_body_is_closed_after_the_timeout() -> None:
    with serving(timeouts=Timeouts(body=0.05)) as port, port.connect() as client:
        client.send(request("POST", "/", "Content-Length: 10") + b"12345")
        assert client.is_closed()


def test_a_request_that_waits_for_its_answer_does_not_time_out() -> None:
    with serving(timeouts=Timeouts(head=A_WHILE, body=A_WHILE)) as port:
        client = port.hold()
        halved = halves(port, 1)[0]
        assert halved.is_closed()  # so the timeout has passed
        port.app.let_go.set()
        assert client.read().status == 200
        close(client, halved)


def test_an_answer_that_the_client_does_not_read_is_aborted() -> None:
    with serving(Caps(whole=1, per_address=1), Timeouts(reading=0.05)) as port, port.connect() as client:
        client.send(request("GET", "/endless"))
        until(lambda: _is_answered(port), what="the place to be free")


def _is_answered(port: Port) -> bool:
    try:
        return status_of(port.connect()) == 200
    except (EOFError, OSError):
        return False


# Clients that disconnect


def reset(client: Client) -> None:
    """Reset the connection."""
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()


@pytest.mark.parametrize("hang_up", [close, reset])
@pytest.mark.parametrize("more", [b"", HALF], ids=["", "half"])
def test_a_client_that_disconnects_before_its_answer_is_counted_and_not_logged(
    more: bytes, hang_up: Callable[[Client], None], caplog: pytest.LogCaptureFixture
) -> None:
    with serving() as port:
        client = port.hold()
        client.send(more)
        hang_up(client)
        until(lambda: port.counts.hang_ups, what="the server to notice")
        port.app.let_go.set()
        until(lambda: port.app.ended == 1, what="the app to answer")
        assert status_of(port.connect()) == 200
    assert port.counts.hang_ups == 1
    assert caplog.messages == []


@pytest.mark.parametrize("hang_up", [close, reset])
def test_all_pipelined_requests_learn_that_their_client_has_disconnected(
    hang_up: Callable[[Client], None], caplog: pytest.LogCaptureFixture
) -> None:
    with serving() as port:
        client = port.connect()
        client.send(request("GET", "/held") + request("GET", "/held-again") + GET * 200)
        until(lambda: port.app.held == 1, what="the request to arrive")
        hang_up(client)
        port.app.let_go.set()  # until then the server does not read further
        until(lambda: port.counts.hang_ups, what="the server to notice")
        port.app.let_go_again.set()
        until(lambda: port.app.ended == port.app.held, what="the app to answer")
        assert status_of(port.connect()) == 200
    assert port.counts.hang_ups == 1
    assert caplog.messages == []


@pytest.mark.parametrize("sent", [HALF, b"G", CHUNKED + b"5\r\nhel"], ids=["half", "a byte", "half a body"])
def test_a_client_that_disconnects_within_its_request_is_counted_and_not_logged(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with serving() as port:
        client = port.connect()
        client.send(sent)
        close(client)
        until(lambda: port.counts.hang_ups == 1, what="the server to notice")
    assert caplog.messages == []


def test_a_connection_that_is_replaced_while_it_opens_gets_no_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving(Caps(whole=2, per_address=2)) as port:
        for _ in range(300):
            client = port.connect()
            with suppress(OSError):
                client.send(GET)
            close(client)
        until(lambda: _is_answered(port), what="a place to be free")
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


def test_a_disconnect_between_requests_or_in_a_stream_is_not_counted() -> None:
    with serving() as port:
        with port.connect() as client:
            assert client.request("GET", "/").status == 200
        with port.connect() as client:
            client.send(request("GET", "/endless"))
            client.socket.recv(1)
        with port.connect() as client:
            client.send(b"no HTTP\r\n\r\n")
            assert client.read().status == 400
        until(lambda: port.app.ended == 2, what="the server to notice")
        assert port.counts.hang_ups == 0


# The size of requests


@pytest.mark.parametrize(
    "data",
    [
        GET[:-2] + b"X: " + b"x" * 4_000_000,
        b"GET /" + b"x" * (HEAD_BYTES + 1),
        GET[:-2] + b"X: y\r\n" * HEADERS + b"\r\n",
        CHUNKED + b"0\r\n" + b"X: yyyyyyy\r\n" * (HEAD_BYTES // 8),
        CHUNKED + b"1\r\nx\r\n0\r\nX: " + b"x" * 4_000_000,
        CHUNKED + b"1;" + b"x" * 4_000_000,
    ],
    ids=["headers", "target", "many headers", "trailers", "one trailer", "an extension of a chunk"],
)
def test_a_head_that_is_too_large_is_refused_and_closed(data: bytes) -> None:
    with serving() as port, port.connect() as client:
        with suppress(ConnectionError):
            client.send(data)
        answer = client.read()
        assert (answer.status, answer.headers["connection"]) == (431, "close")
        assert b'"TooLarge"' in answer.body
        assert client.is_closed()


def test_a_large_body_and_a_body_of_many_small_chunks_are_accepted() -> None:
    small = b"".join(b"1\r\nx\r\n" for _ in range(100_000)) + b"0\r\n\r\n"
    with serving() as port, port.connect() as client:
        assert client.request("POST", "/", body=b"x" * 20_000_000).status == 200
        client.send(CHUNKED + small)
        assert client.read().status == 200


@pytest.mark.parametrize("data", [GET.replace(b"HTTP/1.1", b"HTTP/2.0"), b"\x16\x03\x01\x02\r\n\r\n"])
def test_data_that_is_not_http_is_refused_and_closed(data: bytes) -> None:
    with serving() as port, port.connect() as client:
        client.send(data)
        answer = client.read()
        assert (answer.status, answer.headers["connection"]) == (400, "close")
        assert b'"BadRequest"' in answer.body
        assert client.is_closed()


def test_forwarding_headers_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    said = ("X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https", "Forwarded: for=192.0.2.7;proto=https")
    with serving() as port, port.connect(OTHER) as client:
        assert client.request("GET", "/", *said).status == 200
        assert port.app.asked == [("http", OTHER)]


# TLS


@pytest.fixture
def tls(tmp_path: Path) -> Tls:
    return certificates.made(tmp_path)


def answered_over_tls(port: Port) -> bool:
    url = f"https://127.0.0.1:{port.address[1]}/"
    return httpx.get(url, verify=False, trust_env=False).status_code == 200


def test_an_incomplete_handshake_counts_as_a_connection_and_can_be_replaced(tls: Tls) -> None:
    with serving(Caps(whole=2, per_address=2), tls=tls) as port:
        silent = [port.connect() for _ in range(2)]
        assert answered_over_tls(port)
        assert silent[0].is_closed()
        close(*silent)


def test_an_incomplete_handshake_is_closed_after_the_timeout(tls: Tls) -> None:
    with serving(Caps(whole=1, per_address=1), Timeouts(handshake=A_WHILE), tls=tls) as port:
        for _ in range(3):
            with port.connect() as silent:
                assert silent.is_closed()
        with port.connect() as rubbish:
            rubbish.send(b"\x16" + GET)
            with pytest.raises((EOFError, OSError)):
                rubbish.read()
        assert port.counts.refusals.counts[Limit.WHOLE] == 0
        assert answered_over_tls(port)


def test_plain_http_on_a_port_with_tls_is_answered_with_an_error(tls: Tls) -> None:
    with serving(Caps(whole=1, per_address=1), tls=tls) as port:
        for _ in range(3):
            with port.connect() as client:
                client.send(GET)
                answer = client.read()
                assert (answer.status, answer.headers["connection"]) == (400, "close")
                assert b"use an https:// address" in answer.body
                assert client.is_closed()
        assert port.app.asked == []
        assert answered_over_tls(port)


def test_an_incomplete_request_over_tls_is_closed_after_the_timeout(tls: Tls) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        serving(timeouts=Timeouts(head=A_WHILE), tls=tls) as port,
        context.wrap_socket(socket.create_connection(port.address)) as client,
    ):
        client.sendall(HALF)
        assert client.recv(100) == b""
