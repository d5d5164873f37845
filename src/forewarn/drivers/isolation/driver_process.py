"""A driver's process as the server has it: started when it is first needed, and again when it has died.

One thread starts the process, reads what it sends and sees it end. The kernel ends the process with that
thread. Another thread writes, so that no caller ever waits for the process to read.
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
from forewarn.core.time_formats import format_span
from forewarn.core.text_formats import counted
from forewarn.drivers.isolation import messages
from forewarn.drivers.isolation.messages import Message, MessageTooLong, Received
from forewarn.platform import system
from forewarn.programs.watched_program import has_ended

log = logging.getLogger(__name__)

# A process that has sent nothing is asked whether it is there after so long, in seconds.
ASK_EVERY = 10.0
# One that has answered none of so many questions hangs as a whole: it is ended.
UNANSWERED = 6
# A process that dies once is started again at once. One that dies again soon waits, so that a host that
# crashes it each time does not keep the server busy.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
# One that has lived for so long did not die soon. A host that drops packets crashes libvirt's library about
# once in twenty seconds, for which other hosts must not wait.
LONG_LIFE = 10.0
# For a call that comes while the process starts, which takes a quarter of a second.
START_WITHIN = 20.0
# Lanes and imports make fewer than 150 calls of a driver together, with those that hang.
MOST_CALLS = 512
# For the threads of a process that is ended with the server.
STOP_WITHIN = 5.0
# The service manager takes these as news of the server itself.
_OF_THE_SERVER = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC")


class DriverBroke(Exception):
    """The driver has raised an error; its traceback is a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What the driver is made from."""

    name: str
    entry: str  # the value of its entry point, as module:function
    settings: Mapping[str, Any]  # arguments of DriverSetup


@dataclass(eq=False, slots=True)
class _Life:
    """One process, from its start to its end."""

    connection: socket.socket
    outbox: "queue.SimpleQueue[bytes | None]" = field(default_factory=queue.SimpleQueue)
    calls: dict[int, "Future[bytes]"] = field(default_factory=dict)  # guarded by the driver process's `_news`
    unusable: str = ""  # why the driver cannot be made; the process's thread has it

    def send(self, message: Message) -> None:
        """Have a message written; never waits."""
        self.outbox.put(messages.framed(message))


class DriverProcess:
    """Runs one driver in a process of its own, and starts it again when that has died."""

    def __init__(
        self,
        origin: Origin,
        *,
        monotonic: Callable[[], float],
        wake: Callable[[MachineId], None],
        restarted: Callable[[], object],
    ) -> None:
        """Take who gets the driver's news, and who is called when another process has taken over."""
        self._origin = origin
        self._monotonic = monotonic
        self._wake = wake
        self._restarted = restarted
        self._news = threading.Condition()  # guards the rest, and the calls of a life
        self._thread: threading.Thread | None = None
        self._life: _Life | None = None  # that takes calls
        self._connection: socket.socket | None = None  # of a process, also of one that is being started
        self._down = ""  # why there is none, while it is not being started either
        self._numbers = 0
        self._stopped = False
        self.crashes = 0  # the process's thread counts; others only read

    # Any thread

    def call(self, method: str, args: tuple[Any, ...]) -> Any:
        """Return what a method of the driver returns; Unavailable if its process dies meanwhile."""
        with self._news:
            life = self._reached()
            if len(life.calls) >= MOST_CALLS:
                raise Unavailable(f"{MOST_CALLS} calls of driver {self._origin.name} have not returned")
            self._numbers += 1
            number = self._numbers
            life.send(("call", number, method, args))
            answer = life.calls[number] = Future()
        return messages.read_answer(answer.result())

    def note(self, method: str, args: tuple[Any, ...]) -> None:
        """Tell the driver something, if its process runs; never waits."""
        with self._news:
            if self._life is not None:
                self._life.send(("note", method, args))

    def stop(self) -> None:
        """End the process."""
        with self._news:
            self._stopped = True
            self._news.notify_all()
            thread = self._thread
            if self._connection is not None:
                _shut(self._connection)
        if thread is not None:
            thread.join(STOP_WITHIN)

    def _reached(self) -> _Life:
        """Return the process that takes calls, started if it was not; with the lock held."""
        if self._stopped:
            raise Unavailable(f"the server stops, and driver {self._origin.name} is not called any more")
        if self._thread is None:
            name = f"forewarn-driver-{self._origin.name}"
            thread = threading.Thread(target=self._supervise, name=name, daemon=True)
            thread.start()
            self._thread = thread
        self._news.wait_for(lambda: self._life or self._down or self._stopped, START_WITHIN)
        if self._life is None:
            why = self._down or "is being started"
            raise Unavailable(f"the process of driver {self._origin.name} {why}")
        return self._life

    # The thread of the process

    def _supervise(self) -> None:
        pause = 0.0
        while not self._stopped:
            began = self._monotonic()
            try:
                ended = self._live()
            except Exception as error:  # without this thread the driver would be gone for the server's life
                log.exception("the process of driver %s is not looked after", self._origin.name)
                ended = f"is not looked after: {error!r}"
            if self._stopped:
                return
            if self._monotonic() - began >= LONG_LIFE:
                pause = 0.0
            self._wait(ended, pause)
            pause = min(max(pause * 2, FIRST_PAUSE), LONGEST_PAUSE)

    def _wait(self, ended: str, pause: float) -> None:
        """Count the end of a process, and pause before the next one is started."""
        again = f"started again in {format_span(pause)}" if pause else "started again"
        log.error("the process of driver %s %s, and is %s", self._origin.name, ended, again)
        with self._news:
            self.crashes += 1
            if pause:
                self._down = f"{ended}, and is {again}"
                self._news.notify_all()
                self._news.wait_for(lambda: self._stopped, pause)
                self._down = ""

    def _live(self) -> str:
        """Start a process, and take what it sends until it ends; return how it has ended."""
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
            return self._see_through(_Life(ours), process)

    def _see_through(self, life: _Life, process: "subprocess.Popen[bytes]") -> str:
        """Take what a process sends until it ends; neither it nor a call is left behind, whatever happens."""
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
            self._close(life)
            code = _killed(process)
            ended = ended or life.unusable or _said(code)
            left_open = self._leave_open(life, ended)
        life.outbox.put(None)
        writer.join()
        return f"{ended} with {counted(left_open, 'call')} under way" if left_open else ended

    def _read(self, life: _Life, process: "subprocess.Popen[bytes]") -> str:
        """Take the messages of a process until it ends; return why it has to be ended, if it has."""
        origin, level = self._origin, logging.getLogger().getEffectiveLevel()
        life.send(("make", origin.entry, dict(origin.settings), list(sys.path), level))
        _time_out(life.connection, ASK_EVERY)
        received, unanswered = Received(life.connection), 0
        while True:
            try:
                message = received.next()
            except BlockingIOError:
                if has_ended(process.pid):  # what it has started may hold its socket
                    return ""
                if unanswered >= UNANSWERED:
                    return f"has not answered for {format_span(ASK_EVERY * UNANSWERED)}"
                unanswered += 1
                life.send(("ping",))
                continue
            except OSError:
                return ""
            except (MessageTooLong, pickle.UnpicklingError) as error:
                return f"has sent what is no message: {error}"
            if message is None:
                return ""
            unanswered = 0
            self._take(life, message)

    def _take(self, life: _Life, message: Message) -> None:
        match message:
            case ("ready",):
                self._open(life)
            case ("unusable", str(why)):
                life.unusable = f"cannot make the driver ({why})"
            case ("answer", int(number), bytes(value)):
                self._settle(life, number, value)
            case ("refusal", int(number), str(kind), str(text)):
                self._settle(life, number, messages.read_refusal(kind, text))
            case ("error", int(number), str(text), str(trace)):
                broke = DriverBroke(text)
                broke.add_note(trace)
                self._settle(life, number, broke)
            case ("wake", str(machine)):
                self._tell(partial(self._wake, MachineId(machine)))
            case ("log", str(name), int(level), str(text)):
                logging.getLogger(name).log(level, "%s", text)
            case _:
                pass  # a pong: that it has come is all that it says

    def _open(self, life: _Life) -> None:
        """Let calls in."""
        with self._news:
            self._life = life
            self._news.notify_all()
        if self.crashes:
            self._tell(self._restarted)

    def _tell(self, news: Callable[[], object]) -> None:
        try:
            news()
        except Exception:  # the thread that reads is every call's
            log.exception("news of driver %s could not be passed on", self._origin.name)

    def _settle(self, life: _Life, number: int, came: bytes | Exception) -> None:
        with self._news:
            answer = life.calls.pop(number, None)
        if answer is None:
            return
        if isinstance(came, Exception):
            answer.set_exception(came)
        else:
            answer.set_result(came)

    def _close(self, life: _Life) -> None:
        """Let no more calls in."""
        with self._news:
            self._life = self._connection = None
        _shut(life.connection)

    def _leave_open(self, life: _Life, ended: str) -> int:
        """Say of the calls of a process that is gone that they have no answer; return how many those are."""
        calls = list(life.calls)
        for number in calls:
            self._settle(life, number, Unavailable(f"the process of driver {self._origin.name} {ended}"))
        return len(calls)


def _started(connection: socket.socket) -> "subprocess.Popen[bytes]":
    environment = {name: value for name, value in os.environ.items() if name not in _OF_THE_SERVER}
    # `-P`: nothing is imported from the folder that the server was started in.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "forewarn.drivers.isolation.child", f"{os.getpid()}"],
        stdin=connection.fileno(),
        stdout=subprocess.DEVNULL,
        close_fds=True,  # it has no socket, file or lock of the server's but this one
        env=environment,
        **system.own_group(),  # a Ctrl-C is for the server
    )


def _write(life: _Life) -> None:
    with suppress(OSError):  # the reader sees that it is gone
        while (frame := life.outbox.get()) is not None:
            life.connection.sendall(frame)


def _time_out(connection: socket.socket, seconds: float) -> None:
    """Let reading take no longer; writing, by another thread, may."""
    whole = int(seconds)
    bound = struct.pack("ll", whole, round((seconds - whole) * 1e6))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bound)


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _killed(process: "subprocess.Popen[bytes]") -> int:
    """End a process with all that it has started, such as an ssh to a host; return its exit code.

    It may have ended by itself: as long as it is not waited for, its number is no other's.
    """
    system.end_tree(process.pid, force=True)
    return process.wait()


def _said(code: int) -> str:
    if code >= 0:
        return f"has ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal
        return f"was killed by signal {-code}"
