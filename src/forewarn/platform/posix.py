"""Linux, and systems like it."""

import contextlib
import fcntl
import os
import pwd
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from forewarn.platform.leases import Lease, LeaseSource, parse_dhclient, parse_networkd

if TYPE_CHECKING:
    import asyncio

LEASE_FILES: Mapping[str, Callable[[str], tuple[Lease, ...]]] = {
    "var/lib/dhcp/dhclient*.leases": parse_dhclient,  # Debian, old Ubuntu
    "var/lib/dhclient/dhclient*.lease": parse_dhclient,  # Red Hat
    "var/lib/dhclient/dhclient*.leases": parse_dhclient,
    "var/lib/NetworkManager/dhclient-*.lease": parse_dhclient,
    "run/systemd/netif/leases/*": parse_networkd,
    "var/db/dhclient.leases.*": parse_dhclient,  # OpenBSD
}

HAS_USERS = True  # to run programs as others


def lease_sources() -> Iterator[LeaseSource]:
    """Read what the DHCP clients have saved."""
    return lease_files(Path("/"))


def lease_files(root: Path) -> Iterator[LeaseSource]:
    """Read all lease files, the one that was written last at the end."""
    found = [(path, parse) for pattern, parse in LEASE_FILES.items() for path in root.glob(pattern)]
    for path, parse in sorted(found, key=lambda each: (_written(each[0]), each[0])):
        try:
            leases = parse(path.read_text(encoding="utf-8", errors="replace"))
            yield LeaseSource(where=str(path), leases=leases)
        except OSError as error:
            yield LeaseSource(where=str(path), trouble=error.strerror or str(error))


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def become(words: Sequence[str]) -> None:
    """Let another program take this one's place, in this process."""
    os.execv(words[0], list(words))  # noqa: S606 - the caller says which


def own_group() -> dict[str, Any]:
    """Return how a process is started that outlives its parent, and can be ended with all it has started."""
    return {"start_new_session": True}


def end_tree(pid: int, *, force: bool) -> None:
    """End a process that was started so, with its children; by force, or as a request."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL if force else signal.SIGTERM)


def ask_to_end(pid: int, number: int) -> None:
    """Send a process a signal."""
    os.kill(pid, number)


def process_started(pid: int) -> str | None:
    """Return when a process was started: its number may be given to another. None if it is gone."""
    return _started_on_linux(pid) if sys.platform == "linux" else _started_by_ps(pid)


def up_seconds() -> float | None:
    """Return how many seconds ago this machine was started, its sleep included. None if that is not known."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return None if clock is None else time.clock_gettime(clock)


def boot_id() -> str | None:
    """Return what differs after each start of this machine. None if the system does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def process_age(pid: int) -> float | None:
    """Return how many seconds ago a process was started. None if it is gone."""
    if sys.platform == "linux":
        ticks = _start_ticks(pid)
        up = up_seconds()
        return None if ticks is None or up is None else up - ticks / os.sysconf("SC_CLK_TCK")
    elapsed = asked_of_ps(pid, "etime")
    return None if elapsed is None else seconds_of_etime(elapsed)


def process_executable(pid: int) -> Path | None:
    """Return the program that a process runs. None if that cannot be seen."""
    if sys.platform != "linux":
        command = asked_of_ps(pid, "comm")
        return Path(command).resolve() if command and command.startswith("/") else None
    try:
        # Of a program that was replaced by an upgrade, the kernel says so after its name.
        return Path(os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)"))
    except OSError:
        return None


def _started_on_linux(pid: int) -> str | None:
    ticks, boot = _start_ticks(pid), boot_id()
    return None if ticks is None or boot is None else f"{boot}:{ticks}"


def _start_ticks(pid: int) -> int | None:
    """Return after how many ticks since the system's start a process was started. None if it is gone."""
    try:
        # The name of the program, in parentheses, may have anything in it.
        stat_ = (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return None
    state, started = stat_[0], stat_[19]
    return None if state in "ZX" else int(started)


def _started_by_ps(pid: int) -> str | None:
    return asked_of_ps(pid, "lstart")


def asked_of_ps(pid: int, column: str) -> str | None:
    """Return what `ps` says of a process. None if it is gone."""
    words = ["ps", "-o", f"stat=,{column}=", "-p", str(pid)]
    printed = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
    state, _, found = printed.partition(" ")
    return None if not found or state.startswith("Z") else found.strip()


def seconds_of_etime(elapsed: str) -> float:
    """Read how long a process has run, as POSIX writes it: [[days-]hours:]minutes:seconds."""
    days, _, clock = elapsed.rpartition("-")
    seconds = 0
    for part in clock.split(":"):
        seconds = seconds * 60 + int(part)
    return float(int(days or 0) * 86400 + seconds)


def on_signal(name: str, act: Callable[[], None]) -> None:
    """Do something in this loop when a signal comes."""
    import asyncio  # not for a client that blocks

    asyncio.get_running_loop().add_signal_handler(signal.Signals[name], act)


def cannot_become(user: str) -> str | None:
    """Return why this process can run no program as a user; None if it can."""
    try:
        known = pwd.getpwnam(user)
    except KeyError:
        return f"there is no user {user} in this machine"
    if os.geteuid() in {0, known.pw_uid}:
        return None
    or_so = "" if known.pw_uid == 0 else f", or run it as {user} and leave `user` out"
    return f"only root can run programs as {user}: run the agent as root{or_so}"


def identity_of(user: str) -> dict[str, Any]:
    """Return how a program is run as a user, as `subprocess` takes it; LookupError if there is none."""
    try:
        known = pwd.getpwnam(user)
    except KeyError:
        raise LookupError(f"there is no user {user} in this machine") from None
    return {
        "env": {"HOME": known.pw_dir, "USER": known.pw_name, "LOGNAME": known.pw_name},
        "user": known.pw_uid,
        "group": known.pw_gid,
        "extra_groups": os.getgrouplist(known.pw_name, known.pw_gid),
        "cwd": "/",
    }


def others_can_change(path: Path) -> str | None:
    """Return how other users could replace a program; None if they cannot.

    The owner of the file counts, and all folders above it and above its name: a user who can write there
    replaces it.
    """
    file = path.resolve()
    found = file.stat()
    if not _is_ours(found):
        return _foreign(file, found)
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others can write {file}: `chmod go-w {file}`"
    for folder in dict.fromkeys((*path.absolute().parents, *file.parents)):
        found = folder.stat()
        if not _is_ours(found):
            return _foreign(folder, found)
        # In a folder as /tmp everybody can write, but replace only what is theirs.
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
            return f"others can write the folder {folder}: `chmod go-w {folder}`"
    return None


def _is_ours(found: os.stat_result) -> bool:
    return found.st_uid in {0, os.geteuid()}


def _foreign(path: Path, found: os.stat_result) -> str:
    return f"{path} belongs to user {found.st_uid}: have it belong to root, or to whom the agent runs as"


def hold_file(path: Path) -> IO[bytes] | None:
    """Hold a file for as long as this process lives; None if another one does.

    Others may not even read it: whoever can, can hold it.
    """
    with contextlib.ExitStack() as unless_held:
        file = unless_held.enter_context(path.open("ab"))
        with contextlib.suppress(PermissionError):
            os.fchmod(file.fileno(), 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return None
        unless_held.pop_all()
        return file


def is_held(path: Path) -> bool:
    """Check whether a process holds a file; several may check at once."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def sync_folder(folder: Path) -> None:
    """Make a new name in a folder last."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


async def connect_locally(path: str) -> "tuple[asyncio.StreamReader, asyncio.StreamWriter]":
    """Open a socket that is a file."""
    import asyncio

    return await asyncio.open_unix_connection(path)


def ask_and_read(address: str, message: bytes, seconds: float) -> bytes:
    """Send a message to a socket that is a file, or at HOST:PORT, and read until it is closed; it waits."""
    if address.startswith("/"):
        asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    else:
        host, _, port = address.rpartition(":")
        asked = socket.create_connection((host.strip("[]"), int(port)), seconds)
    with asked:
        asked.settimeout(seconds)
        if address.startswith("/"):
            asked.connect(address)
        asked.sendall(message)
        pieces = iter(lambda: asked.recv(65536), b"")
        return b"".join(pieces)


def send_locally(address: str, message: bytes) -> None:
    """Send a message to a socket that is a file; one whose name begins with @ is none."""
    address = f"\0{address[1:]}" if address.startswith("@") else address
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaker:
        speaker.sendto(message, address)
