"""Start, measure and stop programs, always by their process id."""

import os
import resource
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

# How long a program may take to end after SIGTERM. Then it is killed.
STOP_SECONDS = 20.0


class Failed(Exception):
    """A measured program failed."""


@contextmanager
def running(
    command: Sequence[str], *, folder: Path, log: str, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program while the block lasts. Its output goes to a file in the folder."""
    with (folder / log).open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def pin(pid: int, core: int) -> None:
    """Pin a process and all its threads to one core."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), {core})


def family(pid: int) -> list[int]:
    """Return the ids of a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [pid, *map(int, children.split())]


def cpu_seconds(pids: Sequence[int]) -> float:
    """Return the processor time of processes, user and system, of all threads.

    /proc/PID/stat has the same value in hundredths of a second, which is too coarse for short rounds.
    """
    return sum(time.clock_gettime(_cpu_clock(pid)) for pid in pids)


class ProcessorTime:
    """The processor time of processes since the creation of this object. Processes that end do not count."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._before = _each_alive(pids)

    def since(self) -> float:
        """Return the processor time in seconds."""
        now = _each_alive(list(self._before))
        return sum(now[pid] - self._before[pid] for pid in now)


def _each_alive(pids: Sequence[int]) -> dict[int, float]:
    found = {}
    for pid in pids:
        with suppress(OSError):
            found[pid] = cpu_seconds([pid])
    return found


def _cpu_clock(pid: int) -> int:
    """Return the clock of another process, as clock_getcpuclockid(3) does on Linux."""
    return (~pid << 3) | 2


def resident(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * resource.getpagesize()


def allow_many_files() -> int:
    """Raise the limit of open files for this process and its children; return the new limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def free_port() -> int:
    """Return a free port on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
