"""Run the real program, `forewarn serve`, as a process."""

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from subprocess import Popen

from bench.operators import Operator
from bench.processes import Failed, free_port, running

START_SECONDS = 60.0
# A limit that no caller reaches, but that the server still checks for each request.
RATE = "1000000"
FOREWARN = (sys.executable, "-m", "forewarn")


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A running server."""

    pid: int
    port: int  # the guest endpoint's
    operator: Operator
    started_in: float  # seconds from its start until /healthz answered


@contextmanager
def serving(
    folder: Path,
    *options: str,
    database: Path | str,
    program: Sequence[str] = FOREWARN,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Serving]:
    """Run this version or another while the block lasts. The block begins when /healthz answers."""
    guest, operator = free_port(), free_port()
    command = (
        *(*program, "serve", *options),
        *("--database", database if isinstance(database, str) else f"sqlite:///{database}"),
        *("--guest", f"127.0.0.1:{guest}", "--operator", f"127.0.0.1:{operator}"),
    )
    began = time.perf_counter()
    environment = {**_environment(), **(settings or {})}
    with running(command, folder=folder, log="serve.log", environment=environment) as process:
        _wait_for(process, operator, log=folder / "serve.log")
        started_in = time.perf_counter() - began
        caller = Operator(operator)
        try:
            yield Serving(pid=process.pid, port=guest, operator=caller, started_in=started_in)
        finally:
            caller.close()


def _environment() -> dict[str, str]:
    """Return the environment without the user's own forewarn settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FOREWARN_")}
    return {**kept, "FOREWARN_GUEST_RATE": RATE}


def _wait_for(process: "Popen[bytes]", port: int, *, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _is_healthy(port):
        if process.poll() is not None or time.monotonic() > deadline:
            raise Failed(f"forewarn serve did not start: {log.read_text(encoding='utf-8')[-1000:]}")
        time.sleep(0.02)


def _is_healthy(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=START_SECONDS)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
