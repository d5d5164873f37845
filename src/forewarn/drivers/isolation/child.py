"""The process of one driver: it creates the driver, runs the server's calls and ends with the server.

The server starts it with `python -m forewarn.drivers.isolation.child PID`. Its stdin is a socket to the
server. Each call runs in a thread of its own, and the server limits their number.
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
_LONGEST_LOG_LINE = 8 * 1024


class DriverServer:
    """Serves the calls of the server with the driver."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()  # held while one thread sends a message
        self._driver: Driver | None = None  # set before the server makes the first call

    def run(self) -> None:
        """Serve until the server closes the socket."""
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
                    log.error("unknown message from the server: %s", message[0])

    def _make(self, value: str, settings: dict[str, Any]) -> None:
        entry = EntryPoint(settings["name"], value, "forewarn.drivers")
        try:
            self._driver = entry.load()(DriverSetup(**settings, monotonic=monotonic, wake=self._wake))
        except Exception as error:
            log.debug("cannot create driver %s", settings["name"], exc_info=True)
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
            self._send(("error", number, f"the answer is too long: {error}", ""))
        except BaseException as error:  # noqa: BLE001 - the server logs it
            self._send(("error", number, str(error) or type(error).__name__, traceback.format_exc()))

    def _note(self, method: str, args: tuple[Any, ...]) -> None:
        try:
            getattr(self._driver, method)(*args)
        except Exception:
            log.exception("the driver raised an error in %s", method)

    def _send(self, message: Message) -> None:
        frame = messages.framed(message)
        try:
            with self._sending:
                self._connection.sendall(frame)
        except OSError:  # the server has ended
            os._exit(0)


class _ToServer(logging.Handler):
    """Sends log lines to the server, which writes them in its own format."""

    def __init__(self, send: Callable[[Message], None]) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        """Send a log line."""
        self._send(("log", record.name, record.levelno, self.format(record)[:_LONGEST_LOG_LINE]))


def _thread(work: Callable[..., None], *args: Any) -> None:
    threading.Thread(target=work, args=args, name="forewarn-driver-call", daemon=True).start()


def _end_with(server: int) -> None:
    """Make the kernel end this process with its parent thread; C code may block Python's own threads."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:  # the server has ended already
        os._exit(0)


def main() -> NoReturn:
    """Serve until the server closes the socket."""
    _end_with(int(sys.argv[1]))
    # The server decides when this process ends. Programs that a library starts, such as ssh, would inherit
    # SIG_IGN; they do not inherit a handler.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
        signal.siginterrupt(number, False)  # noqa: FBT003 - as it is declared
    connection = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        DriverServer(connection).run()
    except ConnectionError:
        pass
    except Exception:
        log.exception("the process of a driver has failed")
        os._exit(1)
    os._exit(0)  # threads may hang, so do not wait for them


if __name__ == "__main__":
    main()
