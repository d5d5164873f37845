"""The listening sockets for guests: shared ones, and one for each machine that has its own port."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from forewarn.core.basic_types import MachineId
from forewarn.core.errors import Conflict
from forewarn.guest.board.board import Board
from forewarn.guest.http.connection import Connection
from forewarn.guest.http.link_layer import save_syn_frames
from forewarn.guest.http.open_connections import OpenConnections
from forewarn.guest.http.proxied import ProxiedConnection, TrustedProxy

log = logging.getLogger(__name__)

# After an outage the whole fleet may connect at once.
BACKLOG = 4096


def bind(host: str, port: int, *, what: str, change: str) -> Iterator[socket.socket]:
    """Bind a socket for each address of a host; the error message ends with `change`, the next step."""
    try:
        for family, *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            yield _bound(family, address)
    except OSError as error:
        raise Conflict(not_opened(what, error, change=change)) from error


def not_opened(what: str, error: OSError, *, change: str) -> str:
    """Return the message for an address that cannot be bound, with the next step."""
    return f"{what} {_reason(error)}: {change}"


def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # "::" must not take the port of "0.0.0.0".
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
        save_syn_frames(bound)
        # Listen now: two processes can bind an address as long as neither listens.
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
            return "is not an address of this computer"
        case errno.EACCES:
            return "needs the privilege to bind ports below 1024"
        case _:
            return f"cannot be opened ({error.strerror or error})"


LOOPBACK = "127.0.0.1"

CHANGE_ADDRESS = "choose another with --guest, FOREWARN_GUEST_LISTEN or [guest] listen"
CHANGE_PORT = "give the machine another in the fleet"
CHANGE_FILE = f"{CHANGE_PORT} file, or in a copy of it (--fleet FILE; make run FLEET=FILE)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """An address to listen on, and the network of its callers."""

    host: str
    port: int
    network: str = ""
    proxy: TrustedProxy | None = None  # the metadata proxy that calls there for machines

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Listeners:
    """Opens the sockets, and follows the board for machines with their own ports."""

    def __init__(self, endpoint: OpenConnections, board: Board) -> None:
        self._connections = endpoint
        self._board = board
        self._shared: list[asyncio.Server] = []
        self._own: dict[int, asyncio.Server] = {}
        self._failed: set[int] = set()  # ports whose failure has been logged
        self._turn = asyncio.Lock()
        self._open = False
        self.addresses: list[tuple[str, int]] = []  # with the real port where the setting is 0
        self.proxied: list[tuple[str, int]] = []  # the addresses for proxies

    async def start(self, listen: Sequence[Listen]) -> None:
        """Open all sockets; raise Conflict that names the address or machine whose port cannot be opened."""
        self._open = True
        try:
            for address in listen:
                await self._open_shared(address)
            for port in self._missing():
                await self._open_own(port)
        except Conflict:
            self.close()
            raise
        self._count()

    async def follow(self) -> None:
        """Open and close the machines' own sockets to match the board; a failure is retried the next time."""
        async with self._turn:
            for port in self._own.keys() - self._board.ports.keys():
                self._own.pop(port).close()
            for port in self._missing():
                try:
                    await self._open_own(port)
                except Conflict as error:
                    if port not in self._failed:
                        self._failed.add(port)
                        log.warning("%s", error)
                else:
                    self._failed.discard(port)
            self._count()

    async def open_listener(self, machine: MachineId, port: int, *, name: str) -> str:
        """Open a socket for one machine and return its URL; port 0 takes a free port."""
        members = self._board.members
        for bound in bind(LOOPBACK, port, what=f'machine "{name}": port {port}', change=CHANGE_PORT):
            self._shared.append(
                await _serve(bound, lambda: Connection(self._connections, members, key=machine))
            )
            port = bound.getsockname()[1]
        self._count()
        return f"http://{LOOPBACK}:{port}"

    def close(self) -> None:
        """Accept no more connections."""
        self._open = False
        for server in (*self._shared, *self._own.values()):
            server.close()
        self._shared.clear()
        self._own.clear()
        self._count()

    def _count(self) -> None:
        self._connections.listening = len(self._shared) + len(self._own)

    def _missing(self) -> list[int]:
        if not self._open:
            return []
        return [port for port in self._board.ports if isinstance(port, int) and port not in self._own]

    async def _open_shared(self, address: Listen) -> None:
        for bound in bind(address.host, address.port, what=f"guest address {address}", change=CHANGE_ADDRESS):
            (self.addresses if address.proxy is None else self.proxied).append(bound.getsockname()[:2])
            self._shared.append(await _serve(bound, self._connection(address)))

    def _connection(self, address: Listen) -> Callable[[], Connection]:
        """Return the factory of connections to an address."""
        board, connections, proxy = self._board, self._connections, address.proxy
        if proxy is not None:
            return lambda: ProxiedConnection(connections, board.members, proxy=proxy)
        members = board.network(address.network)
        return lambda: Connection(connections, members)

    async def _open_own(self, port: int) -> None:
        ports = self._board.ports
        member = ports.get(port)
        if member is None:  # the machine was removed while another socket was opened
            return
        what = f'machine "{member.machine.name}": port {port}'
        for bound in bind(LOOPBACK, port, what=what, change=CHANGE_FILE):
            self._own[port] = await _serve(bound, lambda: Connection(self._connections, ports, key=port))


async def _serve(bound: socket.socket, connection: Callable[[], Connection]) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    return await loop.create_server(connection, sock=bound, backlog=BACKLOG)
