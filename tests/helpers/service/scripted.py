"""An endpoint on a real socket that sends exactly the bytes the test chooses, however wrong."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO


@dataclass
class Scripted:
    """Answers, and the received requests. Each answer is used once, except the last."""

    answers: list[bytes]
    url: str = ""
    requests: list[str] = field(default_factory=list)
    connections: list[socket.socket] = field(default_factory=list)

    def next_answer(self) -> bytes:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def answer(status: int, body: bytes = b"", *headers: str) -> bytes:
    """Write an answer."""
    lines = [f"HTTP/1.1 {status} Because", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@contextmanager
def scripted(*answers: bytes) -> Iterator[Scripted]:
    """Listen on a free port. An empty answer closes the connection."""
    script = Scripted(list(answers))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        script.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=_listen, args=(listener, script))
        thread.start()
        try:
            yield script
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for each in script.connections:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextmanager
def dripping() -> Iterator[str]:
    """Listen on a free port, and send a header byte by byte for five seconds."""
    over = threading.Event()

    def serve(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with suppress(OSError), connection:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
                    for _ in range(250):
                        if over.wait(0.02):
                            return
                        connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _listen(listener: socket.socket, script: Scripted) -> None:
    threads = []
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            script.connections.append(connection)
            threads.append(threading.Thread(target=_converse, args=(connection, script)))
            threads[-1].start()
    for each in threads:
        each.join()


def _converse(connection: socket.socket, script: Scripted) -> None:
    with suppress(OSError), connection, connection.makefile("rb") as stream:
        while head := _read_head(stream):
            lines = head.lower().splitlines()
            length = next((int(line.split()[1]) for line in lines if line.startswith("content-length:")), 0)
            script.requests.append(head + stream.read(length).decode())
            said = script.next_answer()
            if not said:
                return
            connection.sendall(said)


def _read_head(stream: BinaryIO) -> str:
    lines = []
    while (line := stream.readline()) not in (b"", b"\r\n"):
        lines.append(line)
    return b"".join(lines).decode()
