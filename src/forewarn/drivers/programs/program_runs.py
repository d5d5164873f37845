"""Programs run within bounds: a clean environment, so much time, so much output, and nothing left behind.

A program leads a process group of its own. When it ends, or its time is over, what is left of the group is
ended too. It prints to pipes, of which the server keeps a part. A drain, a process beside each program, reads
them on if the server dies: the program then neither breaks nor waits, and is asked about later. The server
reaps drains itself, as it may be process 1 of a container: no other process would.
"""

import contextlib
import logging
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
from typing import TypeAlias

from forewarn.core.spelling import on_one_line

log = logging.getLogger(__name__)

# What a program is given of the server's own environment: nothing that says who the server is elsewhere.
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR")
# Where the server has no PATH itself.
USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# As much of its output as is read; an answer is far shorter.
MOST_OUTPUT = 64 * 1024
# As much of what it says on stderr as is looked at for its last line.
LAST_OUTPUT = 4 * 1024
LONGEST_LINE = 500
# How often a program is looked at that nobody may want any more, in seconds.
LOOK_EVERY = 0.1
# The same where the end of a process cannot be waited for.
LOOK_OFTEN = 0.05
# What a pipe holds at most: what a program has printed before its end is read at once then.
PIPE = 64 * 1024
# Reads both pipes on once the server has closed the first descriptor, or is dead. It reaps its own child.
DRAIN = "read nothing < /dev/fd/$1; cat /dev/fd/$2 & cat /dev/fd/$3; wait"
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


@dataclass(frozen=True, slots=True)
class Unwatched:
    """It was started, and how it ended cannot be told."""

    why: str


Outcome: TypeAlias = Exited | TimedOut | NotRun | Unwatched


class ProgramRun:
    """A program that runs, watched by a thread of its own."""

    def __init__(self, invocation: Invocation, *, ending: "ProgramRun | None" = None) -> None:
        """Start it, once the one that it follows has been ended."""
        self.began_at = time.monotonic()
        self._outcome: Outcome | None = None
        self._ended = threading.Event()
        self._unwanted = threading.Event()
        watching = threading.Thread(
            target=self._watch, args=(invocation, ending), name="forewarn-program", daemon=True
        )
        try:
            watching.start()
        except RuntimeError as error:  # the process may have no more threads
            self._outcome = NotRun(f"{invocation.words[0]} cannot be run: {error}")
            self._ended.set()

    def wait(self, seconds: float) -> Outcome | None:
        """Return how it ended; None if it still runs after so many seconds."""
        self._ended.wait(seconds)
        return self._outcome

    def end(self) -> Outcome | None:
        """End it with all that it has started; None if that takes too long."""
        self._unwanted.set()
        return self.wait(LOOK_EVERY + 2 * GRACE)

    def _watch(self, invocation: Invocation, ending: "ProgramRun | None") -> None:
        try:
            if ending is not None:
                ending.end()
            self._outcome = _run(invocation, self._unwanted)
        except BaseException as error:
            log.exception("%s cannot be watched", invocation.words[0])
            self._outcome = _unwatched(invocation, error)
        finally:
            self._ended.set()


def run(invocation: Invocation) -> Outcome:
    """Run a program to its end."""
    return _run(invocation, threading.Event())


def _run(invocation: Invocation, unwanted: threading.Event) -> Outcome:
    until = time.monotonic() + invocation.timeout.total_seconds()
    with contextlib.ExitStack() as opened:
        try:
            given = opened.enter_context(tempfile.TemporaryFile(buffering=0))
            given.write(invocation.input)
            given.seek(0)
            pipes = opened.enter_context(_Pipes())
            process = subprocess.Popen(
                list(invocation.words),
                stdin=given,
                stdout=pipes.stdout,
                stderr=pipes.stderr,
                cwd="/",
                env=_environment(invocation.variables),
                start_new_session=True,
            )
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else None
            return NotRun(f"{invocation.words[0]} cannot be run: {why or error}")
        # From here on it runs: whatever goes wrong, it is watched to its end.
        try:
            pipes.leave_to_program()
            return _watched(process, pipes, until, unwanted)
        except Exception as error:
            log.exception("%s cannot be watched any more", invocation.words[0])
            pipes.close()  # or it might wait for its output to be read
            _await_end(process, until, unwanted)
            return _unwatched(invocation, error)


def _unwatched(invocation: Invocation, error: BaseException) -> Unwatched:
    return Unwatched(f"how {invocation.words[0]} ended is not known: {error}")


def _watched(
    process: "subprocess.Popen[bytes]", pipes: "_Pipes", until: float, unwanted: threading.Event
) -> Outcome:
    over = False
    for _ in _looks(process.pid, pipes, until):
        over = time.monotonic() >= until or unwanted.is_set()
        if over:
            _end_group(process.pid, signal.SIGTERM)
            _wait(process.pid, pipes, GRACE)
            break
    # The process itself is not awaited before, so that its number is nobody else's yet.
    _end_group(process.pid, signal.SIGKILL)
    code = process.wait()
    pipes.read_rest()
    return TimedOut() if over else Exited(code=code, output=pipes.beginning, last_line=pipes.last_line)


def _await_end(process: "subprocess.Popen[bytes]", until: float, unwanted: threading.Event) -> None:
    """Wait for a program that cannot be watched, and end it once its time is over or it is unwanted."""
    while process.poll() is None:
        if time.monotonic() < until and not unwanted.wait(min(LOOK_OFTEN, until - time.monotonic())):
            continue
        _end_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
            return
        _end_group(process.pid, signal.SIGKILL)
        process.wait()


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    own = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {"PATH": USUAL_PATH, **own, **variables}


# Ends


def _looks(pid: int, pipes: "_Pipes", until: float) -> Iterator[None]:
    """Yield now and then and at a moment, as long as a process has not ended."""
    while not _wait(pid, pipes, min(LOOK_EVERY, max(until - time.monotonic(), 0.0))):
        yield


def _wait(pid: int, pipes: "_Pipes", seconds: float) -> bool:
    """Read what a process prints until it ends, for so long at most; return whether it has ended."""
    until = time.monotonic() + seconds
    with _watching(pid) as watched:
        while True:
            left = max(until - time.monotonic(), 0.0)
            pipes.wait(left if watched is not None else min(left, LOOK_OFTEN), watched)
            if _has_ended(pid) or time.monotonic() >= until:
                return _has_ended(pid)


@contextlib.contextmanager
def _watching(pid: int) -> Iterator[int | None]:
    """Open what tells that a process has ended; None where no descriptor is left, or none can tell."""
    try:
        watched = os.pidfd_open(pid)
    except (OSError, AttributeError):
        yield None
        return
    try:
        yield watched
    finally:
        os.close(watched)


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


# Output


class _Drains:
    """Drains whose programs have left a job in the background: each ends with that job, and is reaped then.

    The lock guards the list.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: list[subprocess.Popen[bytes]] = []

    def leave(self, drain: "subprocess.Popen[bytes]") -> None:
        """Keep a drain until it ends."""
        with self._lock:
            self._left.append(drain)

    def reap(self) -> None:
        """Reap the drains that have ended."""
        with self._lock:
            self._left = [drain for drain in self._left if drain.poll() is None]


_drains = _Drains()


class _Pipes:
    """The pipes that a program prints to: the beginning of one and the end of the other are kept."""

    def __init__(self) -> None:
        """Open them, and start what reads them if the server dies."""
        self._opened: list[int] = []
        self._kept = b""
        self._complaints = b""
        self._drain: subprocess.Popen[bytes] | None = None
        self._waiting = select.poll()
        self._reading: set[int] = set()
        _drains.reap()
        try:
            self._output, self.stdout = self._pipe()
            self._errors, self.stderr = self._pipe()
            self._drain = self._start_drain()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "_Pipes":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all, and end the drain unless a job in the background may still print."""
        drain, self._drain = self._drain, None
        if drain is not None and not self._reading:
            drain.kill()  # it waits for a descriptor to be closed, and has no child yet
            drain.wait()
        elif drain is not None:
            _drains.leave(drain)
        while self._opened:
            os.close(self._opened.pop())

    def leave_to_program(self) -> None:
        """Close the ends that the program has now, and read the others."""
        for end in (self._output, self._errors):
            self._reading.add(end)
            self._waiting.register(end, select.POLLIN)
        for end in (self.stdout, self.stderr):
            self._opened.remove(end)
            os.close(end)

    def _pipe(self) -> tuple[int, int]:
        pair = os.pipe()
        self._opened += pair
        return pair

    def _start_drain(self) -> "subprocess.Popen[bytes]":
        held, _ = self._pipe()  # the other end is closed with the server, however that ends
        ends = (held, self._output, self._errors)
        return subprocess.Popen(
            ["/bin/sh", "-c", DRAIN, "drain", *map(str, ends)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=_environment({}),
            pass_fds=ends,
            start_new_session=True,
        )

    # What is read

    def wait(self, seconds: float, watched: int | None) -> None:
        """Read what comes, or wait for that or the end of a process for so long at most."""
        if watched is not None:
            self._waiting.register(watched, select.POLLIN)
        try:
            ready = [end for end, _ in self._waiting.poll(seconds * 1000)]
        finally:
            if watched is not None:
                self._waiting.unregister(watched)
        for end in self._reading.intersection(ready):
            self._read(end)

    def read_rest(self) -> None:
        """Read what a program that has ended has left: jobs in the background may print without end."""
        for end in tuple(self._reading):
            left = select.poll()
            left.register(end, select.POLLIN)
            read = 0
            while read < PIPE and end in self._reading and left.poll(0):
                read += self._read(end)

    def _read(self, end: int) -> int:
        said = os.read(end, PIPE)
        if not said:
            self._reading.remove(end)
            self._waiting.unregister(end)
        elif end == self._output:
            self._kept = (self._kept + said)[:MOST_OUTPUT]
        else:
            self._complaints = (self._complaints + said)[-LAST_OUTPUT:]
        return len(said)

    @property
    def beginning(self) -> bytes:
        """The beginning of what it printed on stdout."""
        return self._kept

    @property
    def last_line(self) -> str:
        """The last line that it printed on stderr."""
        lines = [line for line in self._complaints.decode(errors="replace").splitlines() if line.strip()]
        return on_one_line(lines[-1]).strip()[:LONGEST_LINE] if lines else ""
