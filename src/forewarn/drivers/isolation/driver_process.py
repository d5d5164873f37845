"""The server's side of a driver's process: it starts the process on first use and replaces it if it dies.

One thread starts the process, reads its messages and waits for its end. The kernel ends the process with that
thread. A second thread writes, so that no caller waits for the process to read.
"""

import logging
import os
import pickle
import queue
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from forewarn.core.basic_types import MachineId
from forewarn.core.errors import Unavailable
from forewarn.core.text_formats import counted
from forewarn.core.time_formats import format_span
from forewarn.drivers.isolation import messages
from forewarn.drivers.isolation.messages import Message, MessageTooLong, Received
from forewarn.platform import system
from forewarn.programs.watched_program import has_ended

log = logging.getLogger(__name__)

# The server pings a process that has sent nothing for this many seconds.
PING_SECONDS = 10.0
# A process that leaves this many pings unanswered hangs: the server kills it.
MAX_UNANSWERED_PINGS = 6
# A process that dies is replaced at once. If the next one dies soon too, the server pauses, so that a host
# that crashes the library each time does not keep the server busy.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
# A process that has lived for this long did not die soon. A host that drops packets crashes libvirt's library
# about every twenty seconds, and other hosts must not wait for that.
LONG_LIFE = 10.0
# The wait of a call while the process starts, which takes a quarter of a second.
START_WITHIN = 20.0
# Lanes and imports make fewer than 150 concurrent calls, including calls that hang.
MOST_CALLS = 512
# The wait for the process and its threads when the server stops.
STOP_WITHIN = 5.0
# The process must not talk to the service manager on behalf of the server.
_SERVER_VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC")


class DriverBroke(Exception):
    """The driver raised an error; a note of this exception has the traceback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the driver comes from."""

    name: str
    entry: str  # the value of its entry point, such as module:function
    settings: Mapping[str, Any]  # arguments of DriverSetup


@dataclass(eq=False, slots=True)
class _Life:
    """One process, from its start to its end."""

    connection: socket.socket
    outbox: "queue.SimpleQueue[bytes | None]" = field(default_factory=queue.SimpleQueue)
    calls: dict[int, "Future[bytes]"] = field(default_factory=dict)  # guarded by the driver process's `_news`
    unusable: str = ""  # why the driver cannot be created; owned by the process's thread

    def send(self, message: Message) -> None:
        """Queue a message; never waits."""
        self.outbox.put(messages.framed(message))


class DriverProcess:
    """Runs one driver in a process of its own and replaces the process if it dies."""

    def __init__(
        self,
        origin: Origin,
        *,
        monotonic: Callable[[], float],
        wake: Callable[[MachineId], None],
        restarted: Callable[[], object],
    ) -> None:
        """Take a callback for the driver's wake-ups, and one for a process that replaces another."""
        self._origin = origin
        self._monotonic = monotonic
        self._wake = wake
        self._restarted = restarted
        self._news = threading.Condition()  # guards the rest, and the calls of a `_Life`
        self._thread: threading.Thread | None = None
        self._life: _Life | None = None  # the process, once it accepts calls
        self._connection: socket.socket | None = None  # to the process, also while it starts
        self._down = ""  # why no process runs during a pause
        self._numbers = 0
        self._stopped = False
        self.crashes = 0  # written by the process's thread

    # Any thread

    def call(self, method: str, *args: Any) -> Any:
        """Call a method of the driver; raise Unavailable if its process dies during the call."""
        with self._news:
            life = self._reached()
            if len(life.calls) >= MOST_CALLS:
                raise Unavailable(f"{MOST_CALLS} calls of driver {self._origin.name} have not returned yet")
            self._numbers += 1
            number = self._numbers
            life.send(("call", number, method, args))
            answer = life.calls[number] = Future()
        return messages.read_answer(answer.result())

    def note(self, method: str, *args: Any) -> None:
        """Notify the driver if its process runs; never waits."""
        with self._news:
            if self._life is not None:
                self._life.send(("note", method, args))

    def stop(self) -> None:
        """Stop the process."""
        with self._news:
            self._stopped = True
            self._news.notify_all()
            thread = self._thread
            if self._connection is not None:
                _shut(self._connection)
        if thread is not None:
            thread.join(STOP_WITHIN)

    def _reached(self) -> _Life:
        """Return the running process; start it if needed. The caller holds the lock."""
        if self._stopped:
            raise Unavailable(f"the server is stopping and does not call driver {self._origin.name} any more")
        if self._thread is None:
            name = f"forewarn-driver-{self._origin.name}"
            thread = threading.Thread(target=self._supervise, name=name, daemon=True)
            thread.start()
            self._thread = thread
        self._news.wait_for(lambda: self._life or self._down or self._stopped, START_WITHIN)
        if self._life is None:
            why = self._down or "is starting"
            raise Unavailable(f"the process of driver {self._origin.name} {why}")
        return self._life

    # The thread of the process

    def _supervise(self) -> None:
        pause = 0.0
        while not self._stopped:
            began = self._monotonic()
            try:
                ended = self._live()
            except Exception as error:  # this thread must survive, or the driver is lost until a restart
                log.exception("the process of driver %s cannot be supervised", self._origin.name)
                ended = f"cannot be supervised: {error!r}"
            if self._stopped:
                return
            if self._monotonic() - began >= LONG_LIFE:
                pause = 0.0
            self._wait(ended, pause)
            pause = min(max(pause * 2, FIRST_PAUSE), LONGEST_PAUSE)

    def _wait(self, ended: str, pause: float) -> None:
        """Count a crash and pause before the next start."""
        again = f"restarts in {format_span(pause)}" if pause else "restarts now"
        log.error("the process of driver %s %s and %s", self._origin.name, ended, again)
        with self._news:
            self.crashes += 1
            if pause:
                self._down = f"{ended} and {again}"
                self._news.notify_all()
                self._news.wait_for(lambda: self._stopped, pause)
                self._down = ""

    def _live(self) -> str:
        """Run a process until it ends; return how it ended."""
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            return f"cannot be started: {error}"
        with ours:
            try:
                with theirs:
                    process = _started(theirs)
            except OSError as error:
                return f"cannot be started: {error}"
            return self._run(_Life(ours), process)

    def _run(self, life: _Life, process: "subprocess.Popen[bytes]") -> str:
        """Handle the messages of a process until it ends; always kill it and settle its calls."""
        with self._news:
            self._connection = life.connection
            if self._stopped:
                _shut(life.connection)
        ended = ""
        try:
            writer = threading.Thread(target=_write, args=(life,), name="forewarn-driver-writer", daemon=True)
            writer.start()
            ended = self._read(life, process)
        finally:
            with self._news:  # no more calls
                self._life = self._connection = None
            _shut(life.connection)
            code = _killed(process)
            ended = ended or life.unusable or _exit_reason(code)
            open_calls = list(life.calls)
            for number in open_calls:
                self._settle(life, number, Unavailable(f"the process of driver {self._origin.name} {ended}"))
        life.outbox.put(None)
        writer.join()
        return f"{ended} during {counted(len(open_calls), 'call')}" if open_calls else ended

    def _read(self, life: _Life, process: "subprocess.Popen[bytes]") -> str:
        """Read the messages of a process until it ends; return a reason to kill it, if there is one."""
        origin, level = self._origin, logging.getLogger().getEffectiveLevel()
        life.send(("make", origin.entry, dict(origin.settings), list(sys.path), level))
        _time_out(life.connection, PING_SECONDS)
        received, unanswered = Received(life.connection), 0
        while True:
            try:
                message = received.next()
            except BlockingIOError:
                if has_ended(process.pid):  # a child of it may hold the socket
                    return ""
                if unanswered >= MAX_UNANSWERED_PINGS:
                    return f"has not answered for {format_span(PING_SECONDS * MAX_UNANSWERED_PINGS)}"
                unanswered += 1
                life.send(("ping",))
                continue
            except OSError:
                return ""
            except (MessageTooLong, pickle.UnpicklingError) as error:
                return f"has sent an invalid message: {error}"
            if message is None:
                return ""
            unanswered = 0
            self._take(life, message)

    def _take(self, life: _Life, message: Message) -> None:
        match message:
            case ("ready",):
                self._accept_calls(life)
            case ("unusable", str(why)):
                life.unusable = f"cannot create the driver ({why})"
            case ("answer", int(number), bytes(value)):
                self._settle(life, number, value)
            case ("refusal", int(number), str(kind), str(text)):
                self._settle(life, number, messages.read_refusal(kind, text))
            case ("error", int(number), str(text), str(trace)):
                broke = DriverBroke(text)
                broke.add_note(trace)
                self._settle(life, number, broke)
            case ("wake", str(machine)):
                self._notify(partial(self._wake, MachineId(machine)))
            case ("log", str(name), int(level), str(text)):
                logging.getLogger(name).log(level, "%s", text)
            case _:
                pass  # a pong

    def _accept_calls(self, life: _Life) -> None:
        with self._news:
            self._life = life
            self._news.notify_all()
        if self.crashes:
            self._notify(self._restarted)

    def _notify(self, callback: Callable[[], object]) -> None:
        try:
            callback()
        except Exception:  # the reading thread must survive, because it serves every call
            log.exception("a callback of driver %s failed", self._origin.name)

    def _settle(self, life: _Life, number: int, result: bytes | Exception) -> None:
        with self._news:
            answer = life.calls.pop(number, None)
        if answer is None:
            return
        if isinstance(result, Exception):
            answer.set_exception(result)
        else:
            answer.set_result(result)


def _started(connection: socket.socket) -> "subprocess.Popen[bytes]":
    environment = {name: value for name, value in os.environ.items() if name not in _SERVER_VARIABLES}
    # `-P`: import nothing from the working directory.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "forewarn.drivers.isolation.child", f"{os.getpid()}"],
        stdin=connection.fileno(),
        stdout=subprocess.DEVNULL,
        close_fds=True,  # no other socket, file or lock of the server
        env=environment,
        **system.own_group(),  # Ctrl-C reaches the server only
    )


def _write(life: _Life) -> None:
    with suppress(OSError):  # the reading thread sees the end too
        while (frame := life.outbox.get()) is not None:
            life.connection.sendall(frame)


def _time_out(connection: socket.socket, seconds: float) -> None:
    """Set the timeout of reads alone; `settimeout` would affect the writing thread too."""
    whole = int(seconds)
    bound = struct.pack("ll", whole, round((seconds - whole) * 1e6))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bound)


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _killed(process: "subprocess.Popen[bytes]") -> int:
    """Kill a process and its children, such as an ssh to a host; return the exit code.

    The process may have ended already. Until it is reaped, no other process has its id.
    """
    system.end_tree(process.pid, force=True)
    return process.wait()


def _exit_reason(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal
        return f"was killed by signal {-code}"
