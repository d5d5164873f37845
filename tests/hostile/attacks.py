"""Tools of attackers, and measurements of what an attack costs the server."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.helpers.programs.process import EVENTS, NEWEST, Program
from tests.integration.guest.guest_face import Client

# Machines call from their declared addresses; attackers call from another network.
HONEST, STRANGERS = "127.1", "127.2"
POLL = f"{EVENTS}?api-version={NEWEST}"


def address(number: int, *, network: str = HONEST) -> str:
    """Return one of about fifty thousand addresses of a network."""
    return f"{network}.{number // 200}.{number % 200 + 1}"


def fleet(folder: Path, machines: int) -> Path:
    """Write a fleet file whose machines have addresses of the honest network."""
    declared = [
        f'[[machines]]\nname = "m-{number}"\nhost = "h"\naddress = "{address(number)}"\n'
        for number in range(machines)
    ]
    path = folder / "fleet.toml"
    path.write_text("\n".join(["[defaults]", 'driver = "simulated"', "[hosts.h]", *declared]))
    return path


class Usage:
    """The resources that a process uses, from /proc."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")

    def cpu(self) -> float:
        """Return the seconds of CPU that all threads have used, with a resolution of nanoseconds."""
        tasks = self._folder.glob("task/*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def memory(self) -> int:
        """Return the resident memory in bytes."""
        return int((self._folder / "statm").read_text().split()[1]) * 4096

    def files(self) -> int:
        """Return the number of open descriptors."""
        return len(list((self._folder / "fd").iterdir()))


def place(url: str) -> tuple[str, int]:
    """Return the host and port of a URL."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


@contextmanager
def connections(url: str, sources: Sequence[str], *, send: bytes = b"") -> Iterator[list[Client]]:
    """Open a connection from each of these addresses, and send data on each."""
    opened: list[Client] = []
    try:
        for source in sources:
            opened.append(Client(place(url), source))
            if send:
                send_if_open(opened[-1], send)
        yield opened
    finally:
        for client in opened:
            client.socket.close()


def send_if_open(client: Client, data: bytes) -> bool:
    """Send data; return False if the server has closed the connection."""
    try:
        client.send(data)
    except OSError:
        return False
    return True


def is_open(client: Client) -> bool:
    """Return at once whether the server has kept an idle connection open."""
    client.socket.setblocking(False)
    try:
        return client.socket.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        client.socket.settimeout(60)


def answers(program: Program, machine: int = 0) -> int:
    """Poll as a machine on a new connection; return the status, or 0 if the server closed the connection."""
    try:
        with Client(place(program.guests[0]), address(machine)) as client:
            return client.get(POLL).status
    except (TimeoutError, EOFError, ConnectionError):
        return 0


def operators_are_answered(program: Program) -> bool:
    """Call the operator API on a new connection."""
    with Client(place(program.operators)) as client:
        return client.request("GET", "/v1/machines?limit=1", host="127.0.0.1").status == 200


def refused(program: Program, plane: str) -> float:
    """Return how many connections a port has refused."""
    with Client(place(program.operators)) as client:
        text = client.request("GET", "/metrics").body.decode()
    name = "forewarn_connections_refused_total{"
    rows = [line for line in text.splitlines() if line.startswith(name) and f'plane="{plane}"' in line]
    return sum(float(row.rpartition(" ")[2]) for row in rows)
