"""A simulated network between the server and its database: a relay that forwards everything with a delay.

`tc netem` could do the same, but it needs root, iproute2 and a kernel that supports it.
"""

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue

import psycopg

from bench.processes import Failed, free_port, running

START_SECONDS = 10.0
# The relay's own delay in each direction, about. It is subtracted from the pause.
OWN_SECONDS = 0.00005


@contextmanager
def reached(database: str, *, folder: Path, round_trip: float) -> Iterator[str]:
    """Yield the URL of a database behind a network that adds some seconds to each round trip."""
    if not round_trip:
        yield database
        return
    parts = psycopg.conninfo.conninfo_to_dict(database)
    port, each_way = free_port(), max(0.0, round_trip / 2 - OWN_SECONDS)
    target = f"{parts['host']}/.s.PGSQL.{parts.get('port', 5432)}"
    command = (sys.executable, "-m", "bench.network", str(port), target, str(each_way))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with running(command, folder=folder, log="network.log", environment=environment):
        _wait_for(port)
        yield f"postgresql://{parts['user']}@127.0.0.1:{port}/{parts['dbname']}"


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.02)
    raise Failed("the relay in front of PostgreSQL did not start")


def main() -> None:
    """Relay each connection to a Unix socket until the process is stopped."""
    port, target, each_way = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    with socket.create_server(("127.0.0.1", port)) as listener:
        while True:
            near, _ = listener.accept()
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            far = socket.socket(socket.AF_UNIX)
            far.connect(target)
            for source, sink in ((near, far), (far, near)):
                sent: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
                threading.Thread(target=_receive, args=(source, sent, each_way), daemon=True).start()
                threading.Thread(target=_send, args=(sink, sent), daemon=True).start()


def _receive(source: socket.socket, sent: "SimpleQueue[tuple[float, bytes]]", each_way: float) -> None:
    data = b"something"
    while data:
        try:
            data = source.recv(1 << 18)
        except OSError:
            data = b""
        sent.put((time.perf_counter() + each_way, data))


def _send(sink: socket.socket, sent: "SimpleQueue[tuple[float, bytes]]") -> None:
    with suppress(OSError):
        while True:
            due, data = sent.get()
            time.sleep(max(0.0, due - time.perf_counter()))
            if not data:
                sink.shutdown(socket.SHUT_WR)
                return
            sink.sendall(data)


if __name__ == "__main__":
    main()
