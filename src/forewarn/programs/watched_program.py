"""Programs whose answer the caller waits for: within a time, with bounded output, and nothing left behind.

When a program ends, or its time is over, what is left of its process group is ended too. It prints to
pipes, of which the server keeps a part. A drain, a process beside each program, reads them on if the server
dies: the program then neither breaks nor waits, and is asked about later. The server reaps drains itself, as
it may be process 1 of a container: no other process would.
"""

import contextlib
import logging
import os
import select
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TypeAlias

from forewarn.clock import monotonic
from forewarn.platform import system
from forewarn.programs.keeper import START_ERRORS, why_not_run
from forewarn.programs.program import (
    GRACE_SECONDS,
    Exited,
    Invocation,
    NotRun,
    Outcome,
    TimedOut,
    Unwatched,
    last_line_of,
)

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
# How often a program is looked at whose caller may no longer want it, in seconds.
LOOK_EVERY = 0.1
# The same where the end of a process cannot be waited for.
LOOK_OFTEN = 0.05
# What a pipe holds at most: what a program has printed before its end is read at once then.
PIPE = 64 * 1024
# Reads both pipes on once the server has closed the first descriptor, or is dead. It reaps its own child.
DRAIN = "read nothing < /dev/fd/$1; cat /dev/fd/$2 & cat /dev/fd/$3; wait"

# Waits for the end of a program for so many seconds at most; returns whether it has ended.
Wait: TypeAlias = Callable[[float], bool]


def clean_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return what a program is given: a little of the server's own environment, and these variables."""
    own = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {"PATH": USUAL_PATH, **own, **variables}


class WatchedProgram:
    """A program that runs, watched by a thread of its own; any thread may wait for it and end it."""

    def __init__(
        self, invocation: Invocation, *, timeout: timedelta, ending: "WatchedProgram | None" = None
    ) -> None:
        """Start it, once the one that it follows has been ended."""
        self.began_at = monotonic()
        self._outcome: Outcome | None = None  # the watching thread's, and read only once `_ended` is set
        self._ended = threading.Event()
        self._unwanted = threading.Event()
        watching = threading.Thread(
            target=self._watch, args=(invocation, timeout, ending), name="forewarn-program", daemon=True
        )
        try:
            watching.start()
        except RuntimeError as error:  # the process may have no more threads
            self._outcome = NotRun(why_not_run(invocation.words, error))
            self._ended.set()

    def wait(self, seconds: float) -> Outcome | None:
        """Return how it ended; None if it still runs after so many seconds."""
        return self._outcome if self._ended.wait(seconds) else None

    def end(self) -> Outcome | None:
        """End it with all that it has started; None if that takes too long."""
        self._unwanted.set()
        return self.wait(LOOK_EVERY + 2 * GRACE_SECONDS)

    def _watch(self, invocation: Invocation, timeout: timedelta, ending: "WatchedProgram | None") -> None:
        try:
            if ending is not None:
                ending.end()
            self._outcome = _run(invocation, timeout, self._unwanted)
        except BaseException as error:
            log.exception("%s cannot be watched", invocation.words[0])
            self._outcome = _unwatched(invocation, error)
        finally:
            self._ended.set()


def run(invocation: Invocation, *, timeout: timedelta) -> Outcome:
    """Run a program to its end."""
    return _run(invocation, timeout, threading.Event())


def _run(invocation: Invocation, timeout: timedelta, unwanted: threading.Event) -> Outcome:
    until = monotonic() + timeout.total_seconds()
    with contextlib.ExitStack() as opened:
        try:
            given = opened.enter_context(tempfile.TemporaryFile(buffering=0))
            given.write(invocation.input)
            given.seek(0)
            pipes = opened.enter_context(_Pipes())
            options = {"cwd": "/", **invocation.how, **system.own_group()}
            process = subprocess.Popen(
                list(invocation.words), stdin=given, stdout=pipes.stdout, stderr=pipes.stderr, **options
            )
        except START_ERRORS as error:
            return NotRun(why_not_run(invocation.words, error))
        # From here on it runs: whatever goes wrong, it is watched to its end.
        try:
            pipes.leave_to(process)
            over = _ended(process, pipes.wait, until, unwanted)
            code = process.wait()
            pipes.read_rest()
        except Exception as error:
            log.exception("%s cannot be watched any more", invocation.words[0])
            pipes.close()  # or it might wait for its output to be read
            _ended(process, lambda seconds: _has_ended_within(process, seconds), until, unwanted)
            process.wait()
            return _unwatched(invocation, error)
        return TimedOut() if over else Exited(code=code, output=pipes.beginning, last_line=pipes.last_line)


def _unwatched(invocation: Invocation, error: BaseException) -> Unwatched:
    return Unwatched(f"how {invocation.words[0]} ended is not known: {error}")


def _ended(process: "subprocess.Popen[bytes]", wait: Wait, until: float, unwanted: threading.Event) -> bool:
    """Wait for the end of a program; return whether it was ended, as its time is over or it is unwanted."""
    over = False
    while not over and not wait(min(LOOK_EVERY, max(until - monotonic(), 0.0))):
        over = monotonic() >= until or unwanted.is_set()
    if over:
        system.end_tree(process.pid, force=False)
        wait(GRACE_SECONDS)
    if process.returncode is None:  # it was not reaped: its number is no other's yet
        system.end_tree(process.pid, force=True)
    return over


def _has_ended_within(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return process.returncode is not None


class _Drains:
    """Drains whose programs have left a job in the background: each is reaped when that job has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: list[subprocess.Popen[bytes]] = []  # guarded by the lock

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
    """The pipes that a program prints to: the beginning of one and the end of the other are kept.

    They belong to the thread that watches the program.
    """

    def __init__(self) -> None:
        """Open them, and start what reads them if the server dies."""
        self._opened: list[int] = []
        self._kept = b""
        self._complaints = b""
        self._drain: subprocess.Popen[bytes] | None = None
        self._waiting = select.poll()
        self._reading: set[int] = set()
        self._pid = 0
        self._tells_its_end = False
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

    def leave_to(self, process: "subprocess.Popen[bytes]") -> None:
        """Close the ends that a program has now, and read the others."""
        self._pid = process.pid
        for end in (self._output, self._errors):
            self._reading.add(end)
            self._waiting.register(end, select.POLLIN)
        for end in (self.stdout, self.stderr):
            self._opened.remove(end)
            os.close(end)
        with contextlib.suppress(OSError, AttributeError):  # no descriptor is left, or none can tell
            ended = os.pidfd_open(process.pid)
            self._opened.append(ended)
            self._waiting.register(ended, select.POLLIN)
            self._tells_its_end = True

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
            env=clean_environment({}),
            pass_fds=ends,
            **system.own_group(),
        )

    # What is read

    def wait(self, seconds: float) -> bool:
        """Read what the program prints until it ends, for so long at most; return whether it has ended."""
        until = monotonic() + seconds
        while not (ended := has_ended(self._pid)) and (left := until - monotonic()) > 0:
            ready = self._waiting.poll((left if self._tells_its_end else min(left, LOOK_OFTEN)) * 1000)
            for end in self._reading.intersection(each for each, _ in ready):
                self._read(end)
        return ended

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
        return last_line_of(self._complaints, longest=LONGEST_LINE)


def has_ended(pid: int) -> bool:
    """Return whether a process has ended, and leave it to be reaped."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
