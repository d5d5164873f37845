"""Linux and other POSIX systems."""

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

HAS_USERS = True  # whether programs can run as another user


def lease_sources() -> Iterator[LeaseSource]:
    """Read the leases of all DHCP clients."""
    return lease_files(Path("/"))


def lease_files(root: Path) -> Iterator[LeaseSource]:
    """Read all lease files, in the order of their modification."""
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
    """Replace this program by another one, in this process."""
    os.execv(words[0], list(words))  # noqa: S606 - the caller names the program


def own_group() -> dict[str, Any]:
    """Return the `Popen` arguments for a process that outlives its parent and leads a process group."""
    return {"start_new_session": True}


def end_tree(pid: int, *, force: bool) -> None:
    """End a process started with `own_group`, with its children: SIGKILL if forced, else SIGTERM."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL if force else signal.SIGTERM)


def ask_to_end(pid: int, number: int) -> None:
    """Send a process a signal."""
    os.kill(pid, number)


def process_started(pid: int) -> str | None:
    """Return a text that identifies the start of a process, because pids are reused; None if it has ended."""
    if sys.platform != "linux":
        return asked_of_ps(pid, "lstart")
    ticks, boot = _start_ticks(pid), boot_id()
    return None if ticks is None or boot is None else f"{boot}:{ticks}"


def up_seconds() -> float | None:
    """Return the seconds since this computer booted, including suspend; None if unknown."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return None if clock is None else time.clock_gettime(clock)


def boot_id() -> str | None:
    """Return an id that changes with each boot; None if the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def process_age(pid: int) -> float | None:
    """Return how many seconds ago a process was started; None if it has ended."""
    if sys.platform == "linux":
        ticks = _start_ticks(pid)
        up = up_seconds()
        return None if ticks is None or up is None else up - ticks / os.sysconf("SC_CLK_TCK")
    elapsed = asked_of_ps(pid, "etime")
    return None if elapsed is None else seconds_of_etime(elapsed)


def process_executable(pid: int) -> Path | None:
    """Return the program of a process; None if it cannot be read."""
    if sys.platform != "linux":
        command = asked_of_ps(pid, "comm")
        return Path(command).resolve() if command and command.startswith("/") else None
    try:
        # The kernel appends " (deleted)" if an upgrade has replaced the file.
        return Path(os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)"))
    except OSError:
        return None


def _start_ticks(pid: int) -> int | None:
    """Return the clock ticks between the boot and the start of a process; None if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The name of the program, in parentheses, may contain any character.
    values = text.rpartition(")")[2].split()
    state, started = values[0], values[19]
    return None if state in "ZX" else int(started)


def asked_of_ps(pid: int, column: str) -> str | None:
    """Return a column that `ps` prints for a process; None if it has ended."""
    words = ["ps", "-o", f"stat=,{column}=", "-p", str(pid)]
    printed = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
    state, _, found = printed.partition(" ")
    return None if not found or state.startswith("Z") else found.strip()


def seconds_of_etime(elapsed: str) -> float:
    """Parse the run time of a process in the format of POSIX: [[days-]hours:]minutes:seconds."""
    days, _, clock = elapsed.rpartition("-")
    seconds = 0
    for part in clock.split(":"):
        seconds = seconds * 60 + int(part)
    return float(int(days or 0) * 86400 + seconds)


def on_signal(name: str, act: Callable[[], None]) -> None:
    """Call a function in this loop when a signal arrives."""
    import asyncio  # blocking clients do not need it

    asyncio.get_running_loop().add_signal_handler(signal.Signals[name], act)


def cannot_become(user: str) -> str | None:
    """Return why this process cannot run programs as a user; None if it can."""
    try:
        known = pwd.getpwnam(user)
    except KeyError:
        return f"user {user} does not exist on this machine"
    if os.geteuid() in {0, known.pw_uid}:
        return None
    alternative = "" if known.pw_uid == 0 else f", or run it as {user} and omit `user`"
    return f"only root can run programs as {user}: run the agent as root{alternative}"


def identity_of(user: str) -> dict[str, Any]:
    """Return the `Popen` arguments to run a program as a user; raise LookupError for an unknown user."""
    try:
        known = pwd.getpwnam(user)
    except KeyError:
        raise LookupError(f"user {user} does not exist on this machine") from None
    return {
        "env": {"HOME": known.pw_dir, "USER": known.pw_name, "LOGNAME": known.pw_name},
        "user": known.pw_uid,
        "group": known.pw_gid,
        "extra_groups": os.getgrouplist(known.pw_name, known.pw_gid),
        "cwd": "/",
    }


def others_can_change(path: Path) -> str | None:
    """Return how other users could replace a program; None if they cannot.

    This checks the file and all folders above it and above its symbolic link, because a user who can write to
    a folder can replace the files in it.
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
        # In a folder with the sticky bit, like /tmp, users can replace only their own files.
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
            return f"others can write the folder {folder}: `chmod go-w {folder}`"
    return None


def _is_ours(found: os.stat_result) -> bool:
    return found.st_uid in {0, os.geteuid()}


def _foreign(path: Path, found: os.stat_result) -> str:
    return f"{path} belongs to user {found.st_uid}: change the owner to root or to the agent's user"


def hold_file(path: Path) -> IO[bytes] | None:
    """Lock a file until this process ends; return None if another process has locked it.

    Other users must not be able to read the file, because a reader can lock it.
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
    """Whether a process has locked a file; several processes may check at once."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def sync_folder(folder: Path) -> None:
    """Make new files in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


async def connect_locally(path: str) -> "tuple[asyncio.StreamReader, asyncio.StreamWriter]":
    """Connect to a Unix socket."""
    import asyncio

    return await asyncio.open_unix_connection(path)


def ask_and_read(address: str, message: bytes, seconds: float) -> bytes:
    """Send a message to a Unix socket or HOST:PORT, and read the answer until the end; this blocks."""
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
    """Send a datagram to a Unix socket; a name that begins with @ is in the abstract namespace."""
    address = f"\0{address[1:]}" if address.startswith("@") else address
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaker:
        speaker.sendto(message, address)
