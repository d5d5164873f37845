"""The blocking driver: performs steps in a thread, on sockets with a deadline."""

import contextlib
import socket
from collections.abc import Callable
from typing import TypeVar

from forewarn.clock import monotonic
from forewarn.sdk.transport.connection_reuse import TOO_LATE, Connect, Pause, Steps, Transfer, unreachable
from forewarn.sdk.transport.exchange import Exchange, NoAnswer, Reply

PIECE = 64 * 1024

Result = TypeVar("Result")


def run(steps: Steps[Result], *, pause: Callable[[float], object]) -> Result:
    """Perform steps one by one, and return their result."""
    with contextlib.closing(steps):
        try:
            step = next(steps)
            while True:
                match step:
                    case Pause(seconds):
                        step = steps.send(pause(seconds))
                    case Connect():
                        step = steps.send(connect(step))
                    case Transfer(connection, data, seconds):
                        step = steps.send(connection.transfer(data, seconds))
        except StopIteration as end:
            result: Result = end.value
            return result


def connect(step: Connect) -> "BlockingConnection | NoAnswer":
    """Open a connection."""
    try:
        made = socket.create_connection((step.host, step.port), step.seconds)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return BlockingConnection(step.tls.wrap_socket(made, server_hostname=step.host) if step.tls else made)
    except OSError as error:
        return unreachable(error)


class BlockingConnection:
    """A connection of the blocking driver."""

    def __init__(self, made: socket.socket) -> None:
        self.exchange = Exchange()
        self._socket = made

    @property
    def is_reusable(self) -> bool:
        """Whether it is open and has received no unrequested data."""
        self._socket.settimeout(0)
        try:
            # On the plain socket: TLS has no check that does not block.
            socket.socket.recv(self._socket, 1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def transfer(self, data: bytes, seconds: float) -> Reply:
        """Send bytes, and receive until the reply is complete."""
        deadline = monotonic() + seconds
        try:
            self._socket.settimeout(seconds)
            self._socket.sendall(data)
            while (left := deadline - monotonic()) > 0:
                self._socket.settimeout(left)
                reply = self.exchange.receive(self._socket.recv(PIECE))
                if reply is not None:
                    return reply
        except TimeoutError:
            pass
        except OSError as error:
            return self.exchange.lost(error)
        return TOO_LATE

    def hang_up(self) -> None:
        """Wake the waiting thread, which then closes the socket.

        Closing it here would free its file descriptor for reuse while that thread still uses it.
        """
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
