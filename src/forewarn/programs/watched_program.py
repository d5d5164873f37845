"""Programs whose answer the caller waits for, with a timeout and bounded output.

When a program ends or times out, the rest of its process group is ended, too. The program prints to pipes,
and the server keeps a part of the output. Next to each program runs a drain process. It reads the pipes if
the server dies, so that the program neither fails nor blocks; a later `check` asks about it. The server reaps
drains itself, because in a container it may be process 1.
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

# The variables that a program inherits from the server: none of the server's secrets and settings.
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR")
# If the server has no PATH.
USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# How much of stdout is kept; an answer is far shorter.
MOST_OUTPUT = 64 * 1024
# How much of the end of stderr is kept, for its last line.
LAST_OUTPUT = 4 * 1024
LONGEST_LINE = 500
# How often to check whether the caller has ended the program, in seconds.
LOOK_EVERY = 0.1
# How often to check whether the program has ended, if the system has no pidfd.
LOOK_OFTEN = 0.05
# The capacity of a pipe.
PIPE = 64 * 1024
# Waits until the server closes the first descriptor or dies, then reads both pipes to their end.
DRAIN = "read nothing < /dev/fd/$1; cat /dev/fd/$2 & cat /dev/fd/$3; wait"

# Waits at most this many seconds for the end of a program; returns whether it has ended.
Wait: TypeAlias = Callable[[float], bool]


def clean_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program: the inherited variables and these."""
    own = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {"PATH": USUAL_PATH, **own, **variables}


class WatchedProgram:
    """A program with a thread that watches it; any thread may wait for it and end it."""

    def __init__(
        self, invocation: Invocation, *, timeout: timedelta, ending: "WatchedProgram | None" = None
    ) -> None:
        """End the program `ending`, if given, and then start this one."""
        self.began_at = monotonic()
        self._outcome: Outcome | None = None  # owner: the watching thread; read only after `_ended` is set
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
        """Return its outcome; None if it still runs after this many seconds."""
        return self._outcome if self._ended.wait(seconds) else None

    def end(self) -> Outcome | None:
        """End it and its process group; return None if that takes too long."""
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
        # The program runs now, so it must be watched to its end whatever fails here.
        try:
            pipes.hand_over(process)
            over = _ended(process, pipes.wait, until, unwanted)
            code = process.wait()
            pipes.read_rest()
        except Exception as error:
            log.exception("%s cannot be watched any longer", invocation.words[0])
            pipes.close()  # otherwise the program may block on a full pipe
            _ended(process, lambda seconds: _has_ended_within(process, seconds), until, unwanted)
            process.wait()
            return _unwatched(invocation, error)
        return TimedOut() if over else pipes.exited(code)


def _unwatched(invocation: Invocation, error: BaseException) -> Unwatched:
    return Unwatched(f"the result of {invocation.words[0]} is unknown: {error}")


def _ended(process: "subprocess.Popen[bytes]", wait: Wait, until: float, unwanted: threading.Event) -> bool:
    """Wait for the end of a program, and end it after its timeout or if unwanted; return whether it was."""
    over = False
    while not over and not wait(min(LOOK_EVERY, max(until - monotonic(), 0.0))):
        over = monotonic() >= until or unwanted.is_set()
    if over:
        system.end_tree(process.pid, force=False)
        wait(GRACE_SECONDS)
    if process.returncode is None:  # not reaped yet, so no other process can have its pid
        system.end_tree(process.pid, force=True)
    return over


def _has_ended_within(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return process.returncode is not None


# The drains of programs that have left background jobs; each ends with the last of these jobs.
_drains: "list[subprocess.Popen[bytes]]" = []  # lock: _drains_lock
_drains_lock = threading.Lock()


def _reap_drains() -> None:
    with _drains_lock:
        _drains[:] = [drain for drain in _drains if drain.poll() is None]


class _Pipes:
    """The pipes of a program: keeps the beginning of stdout and the end of stderr.

    Owner of all its values: the thread that watches the program.
    """

    def __init__(self) -> None:
        """Open the pipes and start the drain."""
        self._opened: list[int] = []
        self._stdout_kept = b""
        self._stderr_kept = b""
        self._drain: subprocess.Popen[bytes] | None = None
        self._waiting = select.poll()
        self._reading: set[int] = set()
        self._pid = 0
        self._has_pidfd = False
        _reap_drains()
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
        """Close the pipes, and end the drain unless a background job may still print."""
        drain, self._drain = self._drain, None
        if drain is not None and not self._reading:
            drain.kill()  # it still waits for the first descriptor, so it has no child
            drain.wait()
        elif drain is not None:
            with _drains_lock:
                _drains.append(drain)
        while self._opened:
            os.close(self._opened.pop())

    def hand_over(self, process: "subprocess.Popen[bytes]") -> None:
        """Close the ends that the program has inherited, and start to read the others."""
        self._pid = process.pid
        for end in (self._output, self._errors):
            self._reading.add(end)
            self._waiting.register(end, select.POLLIN)
        for end in (self.stdout, self.stderr):
            self._opened.remove(end)
            os.close(end)
        with contextlib.suppress(OSError, AttributeError):  # out of descriptors, or the system has no pidfd
            ended = os.pidfd_open(process.pid)
            self._opened.append(ended)
            self._waiting.register(ended, select.POLLIN)
            self._has_pidfd = True

    def _pipe(self) -> tuple[int, int]:
        pair = os.pipe()
        self._opened += pair
        return pair

    def _start_drain(self) -> "subprocess.Popen[bytes]":
        held, _ = self._pipe()  # the other end closes when the server ends
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

    # Reading

    def wait(self, seconds: float) -> bool:
        """Read until the program ends, at most this many seconds; return whether it has ended."""
        until = monotonic() + seconds
        while not (ended := has_ended(self._pid)) and (left := until - monotonic()) > 0:
            ready = self._waiting.poll((left if self._has_pidfd else min(left, LOOK_OFTEN)) * 1000)
            for end in self._reading.intersection(each for each, _ in ready):
                self._read(end)
        return ended

    def read_rest(self) -> None:
        """Read the rest after the program has ended, at most a full pipe: background jobs may never stop."""
        for end in tuple(self._reading):
            left = select.poll()
            left.register(end, select.POLLIN)
            read = 0
            while read < PIPE and end in self._reading and left.poll(0):
                read += self._read(end)

    def _read(self, end: int) -> int:
        data = os.read(end, PIPE)
        if not data:
            self._reading.remove(end)
            self._waiting.unregister(end)
        elif end == self._output:
            self._stdout_kept = (self._stdout_kept + data)[:MOST_OUTPUT]
        else:
            self._stderr_kept = (self._stderr_kept + data)[-LAST_OUTPUT:]
        return len(data)

    def exited(self, code: int) -> Exited:
        """Return the outcome with the output that was kept."""
        last = last_line_of(self._stderr_kept, longest=LONGEST_LINE)
        return Exited(code=code, output=self._stdout_kept, last_line=last)


def has_ended(pid: int) -> bool:
    """Whether a child process has ended; it can still be reaped."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
