"""Memory and processor time of an idle agent that polls once a second."""

import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

from bench.processes import Failed, cpu_seconds, resident, running
from bench.report import Findings, Row
from bench.workplace import Workplace

# The number of polls before the measurement, and during it.
WARM_UP, COUNTED = 5, 60
LONGEST_WAIT = 120.0
MOST_MEMORY = 48 * 1024 * 1024
MOST_CPU = 0.002

DOCUMENT = b'{"DocumentIncarnation":1,"Events":[]}'
INSTANCE = b'{"name":"web-0","vmId":"3c9f0f4a-0000-4000-8000-000000000001"}'
CONFIG = """
[agent]
endpoint = "http://127.0.0.1:{port}"
journal = "agent.journal"
listen = "127.0.0.1:0"

[[handlers]]
name = "tell"
kind = "log"

[[handlers]]
name = "drain"
kind = "exec"
prepare = ["true"]
recover = ["true"]
"""


class Endpoint:
    """An endpoint like Azure's: it answers with a document, then with 304 at once. It ignores `Prefer`."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.polls = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop accepting connections."""
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection: socket.socket) -> None:
        with connection:
            while request := connection.recv(8192):
                connection.sendall(self._answer(request))

    def _answer(self, request: bytes) -> bytes:
        head = f"Date: {formatdate(usegmt=True)}\r\nServer: IMDS/bench\r\n".encode()
        if b"/metadata/instance" in request:
            return _ok(head, INSTANCE)
        self.polls += 1
        if b"if-none-match" in request.lower():
            return b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n' + head + b"\r\n"
        return _ok(head + b'ETag: "1"\r\n', DOCUMENT)


def _ok(head: bytes, body: bytes) -> bytes:
    kind = b"Content-Type: application/json; charset=utf-8\r\n"
    return b"HTTP/1.1 200 OK\r\n" + kind + head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


@contextmanager
def _endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    try:
        yield endpoint
    finally:
        endpoint.close()


def measure(work: Workplace) -> Findings:
    """Run an agent for a minute, and measure its memory and processor time."""
    with _endpoint() as endpoint:
        (work.folder / "agent.toml").write_text(CONFIG.format(port=endpoint.port), encoding="utf-8")
        command = (sys.executable, "-m", "forewarn", "agent", "run", "--config", "agent.toml")
        with running(command, folder=work.folder, log="agent.log") as process:
            _polled(endpoint, WARM_UP, log=work.folder / "agent.log")
            began, used = time.perf_counter(), cpu_seconds([process.pid])
            _polled(endpoint, endpoint.polls + COUNTED, log=work.folder / "agent.log")
            seconds = time.perf_counter() - began
            share = (cpu_seconds([process.pid]) - used) / seconds
            memory = resident(process.pid)
    work.log(f"{share:.3%} of a core, {memory / 2**20:.1f} MiB, {COUNTED} polls in {seconds:.0f} s")
    rows = [
        Row(
            what="agent: memory",
            measured=f"{memory / 2**20:.1f} MiB",
            value=memory,
            target="< 48 MiB",
            met=memory < MOST_MEMORY,
        ),
        Row(
            what="agent: processor, polling once a second",
            measured=f"{share:.2%} of a core",
            value=round(share, 5),
            target="< 0.2 %",
            met=share < MOST_CPU,
        ),
    ]
    return Findings(rows=rows, raw={"polls": COUNTED, "seconds": seconds, "cpu": share, "memory": memory})


def _polled(endpoint: Endpoint, count: int, *, log: Path) -> None:
    deadline = time.monotonic() + LONGEST_WAIT
    while endpoint.polls < count:
        if time.monotonic() > deadline:
            raise Failed(f"the agent does not poll; its log: {log.read_text(encoding='utf-8')[-1000:]}")
        time.sleep(0.05)
