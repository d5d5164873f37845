"""Programs run within bounds: a clean environment, so much time, so much output, and nothing left behind.

A program leads a process group of its own. When it ends, or its time is over, what is left of the group is
ended too. Its output goes to files in memory, not to pipes: a server that is killed does not take the program
with it, and what it was at is then found out by asking. They do not grow beyond a size: one that prints
without end harms nobody, whether somebody looks or not.
"""

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import IO, TypeAlias

from forewarn.wire.text import on_one_line

# What a program is given of the server's own environment: nothing that says who the server is elsewhere.
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR")
# Where the server has no PATH itself.
USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# As much of its output as is read; an answer is far shorter.
MOST_OUTPUT = 64 * 1024
# As much of it as is kept anywhere, of each kind; what is beyond that fails to be written.
MOST_KEPT = 4 * 1024 * 1024
# As much of what it says on stderr as is looked at for its last line.
LAST_OUTPUT = 4 * 1024
LONGEST_LINE = 500
# How often its output is cut, in seconds: a program that writes all it can fills a gigabyte in one.
LOOK_EVERY = 0.1
# The same where the end of a process cannot be waited for.
LOOK_OFTEN = 0.05
# For a program to end when it is asked to, in seconds.
GRACE = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """What is run, and how."""

    words: Sequence[str]
    variables: Mapping[str, str]  # beside what every program is given
    input: bytes = b""
    timeout: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """It ended by itself."""

    code: int  # negative: the signal that ended it
    output: bytes = b""
    last_line: str = ""  # of what it said on stderr


@dataclass(frozen=True, slots=True)
class TimedOut:
    """It was ended, because its time was over or nobody wanted it any more."""


@dataclass(frozen=True, slots=True)
class NotRun:
    """It could not be started."""

    why: str


Outcome: TypeAlias = Exited | TimedOut | NotRun


class ProgramRun:
    """A program that runs, watched by a thread of its own."""

    def __init__(self, invocation: Invocation) -> None:
        """Start it."""
        self.began_at = time.monotonic()
        self._outcome: Outcome | None = None
        self._ended = threading.Event()
        self._unwanted = threading.Event()
        threading.Thread(target=self._watch, args=(invocation,), name="forewarn-program", daemon=True).start()

    def wait(self, seconds: float) -> Outcome | None:
        """Return how it ended; None if it still runs after so many seconds."""
        self._ended.wait(seconds)
        return self._outcome

    def end(self) -> Outcome | None:
        """End it with all that it has started; None if that takes too long."""
        self._unwanted.set()
        return self.wait(LOOK_EVERY + 2 * GRACE)

    def _watch(self, invocation: Invocation) -> None:
        try:
            self._outcome = _run(invocation, self._unwanted)
        except OSError as error:
            self._outcome = NotRun(f"{invocation.words[0]} cannot be run: {error.strerror or error}")
        finally:
            self._ended.set()


def run(invocation: Invocation) -> Outcome:
    """Run a program to its end."""
    try:
        return _run(invocation, threading.Event())
    except OSError as error:
        return NotRun(f"{invocation.words[0]} cannot be run: {error.strerror or error}")


def _run(invocation: Invocation, unwanted: threading.Event) -> Outcome:
    with _file() as given, _output_file() as output, _output_file() as errors:
        given.write(invocation.input)
        given.seek(0)
        process = subprocess.Popen(
            list(invocation.words),
            stdin=given,
            stdout=output,
            stderr=errors,
            cwd="/",
            env=_environment(invocation.variables),
            start_new_session=True,
        )
        until = time.monotonic() + invocation.timeout.total_seconds()
        over = False
        for _ in _looks(process.pid, until):
            _cut(output, errors)
            over = time.monotonic() >= until or unwanted.is_set()
            if over:
                _end_group(process.pid, signal.SIGTERM)
                _wait(process.pid, GRACE)
                break
        # The process itself is not awaited before, so that its number is nobody else's yet.
        _end_group(process.pid, signal.SIGKILL)
        code = process.wait()
        return TimedOut() if over else Exited(code=code, output=_read(output), last_line=_last_line(errors))


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    own = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {"PATH": USUAL_PATH, **own, **variables}


# Ends


def _looks(pid: int, until: float) -> Iterator[None]:
    """Yield now and then and at a moment, as long as a process has not ended."""
    while not _wait(pid, min(LOOK_EVERY, max(until - time.monotonic(), 0.0))):
        yield


def _wait(pid: int, seconds: float) -> bool:
    """Wait for the end of a process, for so long at most; return whether it has ended."""
    if not hasattr(os, "pidfd_open"):
        until = time.monotonic() + seconds
        while not _has_ended(pid) and time.monotonic() < until:
            threading.Event().wait(LOOK_OFTEN)
        return _has_ended(pid)
    watched = os.pidfd_open(pid)
    try:
        waiting = select.poll()
        waiting.register(watched, select.POLLIN)
        return bool(waiting.poll(seconds * 1000))
    finally:
        os.close(watched)


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


# Output


def _file() -> IO[bytes]:
    return tempfile.TemporaryFile(buffering=0)


def _output_file() -> IO[bytes]:
    """Make a file in memory that cannot grow beyond a size: nobody cuts it while the server is dead.

    A limit on the size of files (RLIMIT_FSIZE) would hold for the disks, too, that a program copies.
    """
    if not hasattr(os, "memfd_create"):
        return _file()
    file = os.fdopen(
        os.memfd_create("forewarn-output", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), "w+b", buffering=0
    )
    os.ftruncate(file.fileno(), MOST_KEPT)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)
    return file


def _written(file: IO[bytes]) -> int:
    """Return how much of a file is written: the program writes where its end was set to, as it is shared."""
    return os.lseek(file.fileno(), 0, os.SEEK_CUR)


def _cut(output: IO[bytes], errors: IO[bytes]) -> None:
    """Keep the beginning of one file and the end of the other."""
    if _written(output) > MOST_OUTPUT:
        os.lseek(output.fileno(), MOST_OUTPUT, os.SEEK_SET)
    if _written(errors) > MOST_OUTPUT:
        last = _tail(errors)
        os.lseek(errors.fileno(), len(last), os.SEEK_SET)
        os.pwrite(errors.fileno(), last, 0)


def _read(file: IO[bytes]) -> bytes:
    return os.pread(file.fileno(), min(_written(file), MOST_OUTPUT), 0)


def _tail(file: IO[bytes]) -> bytes:
    end = _written(file)
    start = max(end - LAST_OUTPUT, 0)
    return os.pread(file.fileno(), end - start, start)


def _last_line(errors: IO[bytes]) -> str:
    lines = [line for line in _tail(errors).decode(errors="replace").splitlines() if line.strip()]
    return on_one_line(lines[-1]).strip()[:LONGEST_LINE] if lines else ""
