"""Guests as raw sockets: each connects from its machine's address, and sends the same bytes as curl."""

import socket
from collections.abc import Iterable, Sequence

from bench.processes import Failed

# Linux option: choose the local port at connect, so that it must be unique only for that peer.
BIND_ADDRESS_NO_PORT = 24
TIMEOUT = 60.0
END_OF_HEAD = b"\r\n\r\n"


def poll(port: int, *headers: str) -> bytes:
    """Return a poll with the same bytes as the curl command in Azure's documentation."""
    lines = (
        "GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "User-Agent: curl/7.88.1",
        "Accept: */*",
        "Metadata: true",
        *headers,
    )
    return "\r\n".join((*lines, "", "")).encode()


def approval(port: int, body: str) -> bytes:
    """Return the request of a guest's approval."""
    lines = (
        "POST /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Metadata: true",
        "Content-Type: application/json",
        f"Content-Length: {len(body.encode())}",
    )
    return "\r\n".join((*lines, "", body)).encode()


def call(port: int, *, source: str = "127.0.0.1") -> socket.socket:
    """Connect from a machine's address."""
    caller = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    caller.settimeout(TIMEOUT)
    caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    caller.setsockopt(socket.IPPROTO_IP, BIND_ADDRESS_NO_PORT, 1)
    caller.bind((source, 0))
    caller.connect(("127.0.0.1", port))
    return caller


def hang_up(callers: Iterable[socket.socket]) -> None:
    """Reset connections, so that a hundred thousand of them leave no sockets in TIME_WAIT."""
    for caller in callers:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        caller.close()


def answer(caller: socket.socket) -> bytes:
    """Read one complete answer."""
    received = b""
    while END_OF_HEAD not in received:
        received += _more(caller)
    head, _, body = received.partition(END_OF_HEAD)
    while len(body) < _length(head):
        body += _more(caller)
    return head + END_OF_HEAD + body


def ask(caller: socket.socket, request: bytes) -> bytes:
    """Send a request, and read its answer."""
    caller.sendall(request)
    return answer(caller)


def header(response: bytes, name: str) -> str:
    """Return a header of an answer."""
    for line in response.partition(END_OF_HEAD)[0].decode("latin-1").split("\r\n")[1:]:
        key, _, value = line.partition(":")
        if key.lower() == name.lower():
            return value.strip()
    raise Failed(f"no {name} in {response[:200]!r}")


def poll_once(port: int, sources: Sequence[str], *, at_once: int = 500) -> None:
    """Poll once for each machine, then disconnect."""
    request = poll(port)
    for start in range(0, len(sources), at_once):
        callers = [call(port, source=source) for source in sources[start : start + at_once]]
        for caller in callers:
            caller.sendall(request)
        for caller in callers:
            if not answer(caller).startswith(b"HTTP/1.1 200"):
                raise Failed("a poll was refused")
        hang_up(callers)


def _more(caller: socket.socket) -> bytes:
    received = caller.recv(65536)
    if not received:
        raise Failed("the server closed the connection")
    return received


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line[15:])
    return 0
