"""The sockets guests call: some for everybody, and one for each machine that has a port of its own."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from forewarn.core.errors import Conflict
from forewarn.core.words import MachineId
from forewarn.guest.board import Board
from forewarn.guest.endpoint import Endpoint
from forewarn.guest.http import Connection

log = logging.getLogger(__name__)

# A fleet that comes back from an outage calls all at once.
BACKLOG = 4096
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """An address to listen on, and the network whose machines call there."""

    host: str
    port: int
    network: str = ""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Listeners:
    """Opens sockets, and keeps the machines' own in step with the board."""

    def __init__(self, endpoint: Endpoint, board: Board) -> None:
        self._endpoint = endpoint
        self._board = board
        self._shared: list[asyncio.Server] = []
        self._own: dict[int, asyncio.Server] = {}
        self._failed: set[int] = set()  # said once, not at every change of the fleet
        self._turn = asyncio.Lock()
        self._open = False
        self.addresses: list[tuple[str, int]] = []

    async def start(self, listen: Sequence[Listen]) -> None:
        """Open everything; Conflict names what cannot be opened."""
        self._open = True
        try:
            for place in listen:
                await self._open_shared(place)
            for port in self._missing():
                await self._open_own(port)
        except Conflict:
            self.close()
            raise

    async def follow(self) -> None:
        """Open and close machines' own sockets as the board has it; what fails is tried again next time."""
        async with self._turn:
            for port in self._own.keys() - self._board.ports.keys():
                self._own.pop(port).close()
            for port in self._missing():
                try:
                    await self._open_own(port)
                except Conflict as error:
                    self._tell(port, error)
                else:
                    self._failed.discard(port)

    async def open_door(self, machine: MachineId, port: int, *, name: str) -> str:
        """Open a socket for one machine wherever its fleet file has it, 0 for any port; returns the URL."""
        seats = self._board.seats
        for bound in _bind(LOOPBACK, port, what=f'machine "{name}": port {port}'):
            self._shared.append(await _serve(bound, lambda: Connection(self._endpoint, seats, key=machine)))
            port = bound.getsockname()[1]
        return f"http://{LOOPBACK}:{port}"

    def close(self) -> None:
        """Accept nobody any more."""
        self._open = False
        for server in (*self._shared, *self._own.values()):
            server.close()
        self._shared.clear()
        self._own.clear()

    def _missing(self) -> list[int]:
        if not self._open:
            return []
        return [port for port in self._board.ports if isinstance(port, int) and port not in self._own]

    def _tell(self, port: int, error: Conflict) -> None:
        if port not in self._failed:
            self._failed.add(port)
            log.warning("%s", error)

    async def _open_shared(self, place: Listen) -> None:
        seats = self._board.network(place.network)
        for bound in _bind(place.host, place.port, what=f"guest address {place}"):
            self.addresses.append(bound.getsockname()[:2])
            self._shared.append(await _serve(bound, lambda: Connection(self._endpoint, seats)))

    async def _open_own(self, port: int) -> None:
        ports = self._board.ports
        seat = ports.get(port)
        if seat is None:  # it has left since the last socket was opened
            return
        for bound in _bind(LOOPBACK, port, what=f'machine "{seat.machine.name}": port {port}'):
            self._own[port] = await _serve(bound, lambda: Connection(self._endpoint, ports, key=port))


async def _serve(bound: socket.socket, connection: Callable[[], Connection]) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    return await loop.create_server(connection, sock=bound, backlog=BACKLOG)


def _bind(host: str, port: int, *, what: str) -> Iterator[socket.socket]:
    """Bind a socket for each address that a host stands for."""
    try:
        for family, *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            yield _bound(family, address)
    except OSError as error:
        raise Conflict(f"{what} {_reason(error)}") from error


def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # "::" must not take the port that "0.0.0.0" wants.
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
        # Two can be bound to one place while neither listens; only now is it ours.
        bound.listen(BACKLOG)
    except OSError:
        bound.close()
        raise
    return bound


def _reason(error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return "is in use"
        case errno.EADDRNOTAVAIL:
            return "is no address of this system"
        case errno.EACCES:
            return "needs the right to bind ports below 1024"
        case _:
            return f"cannot be opened: {error}"
