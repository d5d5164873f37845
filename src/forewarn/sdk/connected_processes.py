"""The other processes of this machine that are connected to the endpoint, from `/proc`."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

PROC = Path("/proc")
# Fields of a line of /proc/net/tcp: the remote address, and the inode of the socket.
REMOTE, INODE = 2, 9


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedProcess:
    """A process that has a connection to the endpoint."""

    pid: int
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedProcesses:
    """All of these processes, and the number of connections of processes that ended or are hidden."""

    known: tuple[ConnectedProcess, ...] = ()
    unknown: int = 0


def connected_processes(host: str, port: int, *, proc: Path = PROC) -> ConnectedProcesses | None:
    """Return the other processes connected to an address; None if the system does not list them."""
    try:
        table = (proc / "net/tcp").read_text()
        inodes = set(connections_to(table, host, port))
    except (OSError, ValueError):
        return None
    owners = _owners(proc)
    own = str(os.getpid())
    pids = {owners[inode] for inode in inodes if inode in owners}
    known = (
        ConnectedProcess(pid=int(pid), command=_command(proc / pid)) for pid in sorted(pids - {own}, key=int)
    )
    return ConnectedProcesses(
        known=tuple(known), unknown=sum(inode not in owners for inode in inodes if inode != "0")
    )


def connections_to(table: str, host: str, port: int) -> Iterator[str]:
    """Yield the inodes of the sockets that are connected to an address, from the text of /proc/net/tcp."""
    address = f"{int.from_bytes(IPv4Address(host).packed, 'little'):08X}:{port:04X}"
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) > INODE and fields[REMOTE] == address:
            yield fields[INODE]


def _owners(proc: Path) -> Mapping[str, str]:
    """Return the process of each socket that this user may inspect."""
    found = {}
    for pid in (entry.name for entry in proc.iterdir() if entry.name.isdigit()):
        try:
            links = [os.readlink(each) for each in (proc / pid / "fd").iterdir()]
        except OSError:
            continue
        for link in links:
            if link.startswith("socket:["):
                found[link[len("socket:[") : -1]] = pid
    return found


def _command(process: Path) -> str:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return b" ".join(words).decode(errors="replace").strip()
