"""The process of one driver: makes the driver, carries out the server's calls, and ends with the server.

The server starts it as `python -m forewarn.drivers.isolation.child PID`. Its stdin is a socket to the server,
the only one that it has. Each call runs in a thread of its own: the server bounds how many there are.
"""

import ctypes
import logging
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any, NoReturn

from forewarn.clock import monotonic
from forewarn.control.driver import Driver
from forewarn.core.basic_types import MachineId
from forewarn.core.errors import ForewarnError
from forewarn.drivers.driver_setup import DriverSetup
from forewarn.drivers.isolation import messages
from forewarn.drivers.isolation.messages import Message, MessageTooLong, Received

log = logging.getLogger(__name__)

_PR_SET_PDEATHSIG = 1
# As much of a line of the log as is sent.
_LONGEST_LINE = 8 * 1024


class DriverEnd:
    """The driver, and the socket to the server."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()  # held while one thread sends a message
        self._driver: Driver | None = None  # set before the server makes the first call

    def run(self) -> None:
        """Do what the server asks; returns when the server is gone."""
        received = Received(self._connection, known=None)
        while (message := received.next()) is not None:
            match message:
                case ("call", int(number), str(method), args):
                    _thread(self._answer, number, method, args)
                case ("note", str(method), args):
                    _thread(self._note, method, args)
                case ("ping",):
                    self._send(("pong",))
                case ("make", str(value), settings, list(path), int(level)):
                    sys.path[:] = path
                    logging.getLogger().setLevel(level)
                    logging.getLogger().addHandler(_ToServer(self._send))
                    self._make(value, settings)
                case _:
                    log.error("the server asks for what this version does not know: %s", message[0])

    def _make(self, value: str, settings: dict[str, Any]) -> None:
        entry = EntryPoint(settings["name"], value, "forewarn.drivers")
        try:
            self._driver = entry.load()(DriverSetup(**settings, monotonic=monotonic, wake=self._wake))
        except Exception as error:
            log.debug("driver %s cannot be made", settings["name"], exc_info=True)
            self._send(("unusable", f"{type(error).__name__}: {error}"))
            os._exit(1)
        self._send(("ready",))

    def _wake(self, machine: MachineId) -> None:
        self._send(("wake", str(machine)))

    def _answer(self, number: int, method: str, args: tuple[Any, ...]) -> None:
        try:
            self._send(("answer", number, messages.packed(getattr(self._driver, method)(*args))))
        except ForewarnError as error:
            self._send(("refusal", number, type(error).__name__, str(error)))
        except MessageTooLong as error:
            self._send(("error", number, f"its answer is too long: {error}", ""))
        except BaseException as error:  # noqa: BLE001 - the server logs it
            self._send(("error", number, str(error) or type(error).__name__, traceback.format_exc()))

    def _note(self, method: str, args: tuple[Any, ...]) -> None:
        try:
            getattr(self._driver, method)(*args)
        except Exception:
            log.exception("the driver broke in %s", method)

    def _send(self, message: Message) -> None:
        frame = messages.framed(message)
        try:
            with self._sending:
                self._connection.sendall(frame)
        except OSError:  # the server is gone
            os._exit(0)


class _ToServer(logging.Handler):
    """Has the server write the log, in its own format."""

    def __init__(self, send: Callable[[Message], None]) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        """Send a line."""
        self._send(("log", record.name, record.levelno, self.format(record)[:_LONGEST_LINE]))


def _thread(work: Callable[..., None], *args: Any) -> None:
    threading.Thread(target=work, args=args, name="forewarn-driver-call", daemon=True).start()


def _end_with(server: int) -> None:
    """Have the kernel end this process with the thread that has started it: C code may hold up Python's."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:  # it was gone before
        os._exit(0)


def main() -> NoReturn:
    """Serve until the server is gone."""
    _end_with(int(sys.argv[1]))
    # The server says when this process ends. Handled, not ignored: programs that a library starts, such as
    # ssh, would inherit that these signals are ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
        signal.siginterrupt(number, False)  # noqa: FBT003 - as it is declared
    connection = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        DriverEnd(connection).run()
    except ConnectionError:
        pass
    except Exception:
        log.exception("the process of a driver is broken")
        os._exit(1)
    os._exit(0)  # without waiting for threads, some of which may hang


if __name__ == "__main__":
    main()
