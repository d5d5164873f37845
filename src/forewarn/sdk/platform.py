"""What differs between systems: where leases are kept; how processes are held, told apart and ended.

Nothing here, and nothing else in SDK and agent, imports at once what only some systems have. The Windows half
was written from documentation and was not run there.
"""

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from forewarn.clock import SystemClock
from forewarn.sdk.leases import Lease, parse_dhclient, parse_networkd, parse_registry

WINDOWS = sys.platform == "win32"

DEFAULT_URL = "http://169.254.169.254"

LEASE_FILES: Mapping[str, Callable[[str], tuple[Lease, ...]]] = {
    "var/lib/dhcp/dhclient*.leases": parse_dhclient,  # Debian, old Ubuntu
    "var/lib/dhclient/dhclient*.lease": parse_dhclient,  # Red Hat
    "var/lib/dhclient/dhclient*.leases": parse_dhclient,
    "var/lib/NetworkManager/dhclient-*.lease": parse_dhclient,
    "run/systemd/netif/leases/*": parse_networkd,
    "var/db/dhclient.leases.*": parse_dhclient,  # OpenBSD
}
REGISTRY_KEY = r"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces"
REGISTRY_VALUE = "DhcpInterfaceOptions"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSource:
    """A place where leases are kept, and those with option 245 in it, oldest first."""

    place: str
    leases: tuple[Lease, ...] = ()
    trouble: str | None = None  # why it could not be read


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """All that a machine knows about where its endpoint is."""

    now: datetime
    environ: Mapping[str, str] = field(default_factory=dict)
    lease_sources: Sequence[LeaseSource] = ()
    default_url: str = DEFAULT_URL


def surroundings() -> Surroundings:
    """Look around in this machine."""
    sources = tuple(_registry() if sys.platform == "win32" else lease_files(Path("/")))
    return Surroundings(now=SystemClock().now(), environ=dict(os.environ), lease_sources=sources)


def lease_files(root: Path) -> Iterator[LeaseSource]:
    """Read all lease files, the one that was written last at the end."""
    found = [(path, parse) for pattern, parse in LEASE_FILES.items() for path in root.glob(pattern)]
    for path, parse in sorted(found, key=lambda each: (_written(each[0]), each[0])):
        try:
            leases = parse(path.read_text(encoding="utf-8", errors="replace"))
            yield LeaseSource(place=str(path), leases=leases)
        except OSError as error:
            yield LeaseSource(place=str(path), trouble=error.strerror or str(error))


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _registry() -> Iterator[LeaseSource]:
    """Read what Windows' DHCP client has saved for each network interface."""
    if sys.platform != "win32":
        return
    import winreg

    with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, REGISTRY_KEY) as interfaces:
        for index in range(winreg.QueryInfoKey(interfaces)[0]):
            name = winreg.EnumKey(interfaces, index)
            place = rf"HKLM\{REGISTRY_KEY}\{name}\{REGISTRY_VALUE}"
            try:
                with winreg.OpenKey(interfaces, name) as interface:
                    data, _ = winreg.QueryValueEx(interface, REGISTRY_VALUE)
                yield LeaseSource(place=place, leases=parse_registry(bytes(data)))
            except FileNotFoundError:
                continue  # an interface without DHCP
            except OSError as error:
                yield LeaseSource(place=place, trouble=str(error))


def own_group() -> dict[str, Any]:
    """Say how a process is started that outlives its parent, and can be ended with all it has started."""
    if WINDOWS:
        # CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW
        return {"creationflags": 0x00000200 | 0x08000000}
    return {"start_new_session": True}


def end_tree(pid: int, *, force: bool) -> None:
    """End a process that was started so, with its children; by force, or as a request."""
    if WINDOWS:
        import subprocess

        words = ["taskkill", "/T", *(["/F"] if force else []), "/PID", str(pid)]
        subprocess.run(words, capture_output=True, check=False)  # noqa: S603 - the system's own
        return
    import signal

    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL if force else signal.SIGTERM)


def process_started(pid: int) -> str | None:
    """Say when a process was started: its number may be given to another. None if it is gone."""
    if WINDOWS:
        return _started_on_windows(pid)
    if sys.platform == "linux":
        return _started_on_linux(pid)
    return _started_by_ps(pid)


def _started_on_linux(pid: int) -> str | None:
    try:
        # The name of the program, in parentheses, may have anything in it.
        stat_ = (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        )
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    state, started = stat_[0], stat_[19]
    return None if state in "ZX" else f"{boot}:{started}"


def _started_by_ps(pid: int) -> str | None:
    import subprocess

    words = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
    state, _, started = said.partition(" ")
    return None if not started or state.startswith("Z") else started.strip()


def _started_on_windows(pid: int) -> str | None:
    import ctypes

    kernel: Any = ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]
    still_active, limited_information = 259, 0x1000
    handle = kernel.OpenProcess(limited_information, 0, pid)
    if not handle:
        return None
    try:
        code, times = ctypes.c_ulong(), [ctypes.c_ulonglong() for _ in range(4)]
        kernel.GetExitCodeProcess(handle, ctypes.byref(code))
        kernel.GetProcessTimes(handle, *(ctypes.byref(each) for each in times))
    finally:
        kernel.CloseHandle(handle)
    return str(times[0].value) if code.value == still_active else None


def make_private_folder(path: Path) -> None:
    """Make a folder that nobody else looks into, if it is not there."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def hold_file(path: Path) -> IO[bytes] | None:
    """Hold a file for as long as this process lives; None if another one does."""
    file = path.open("ab")
    try:
        if WINDOWS:
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file


def sync_folder(folder: Path) -> None:
    """Make a new name in a folder last; on Windows the system sees to that."""
    if WINDOWS:
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def cannot_become(user: str) -> str | None:
    """Say why this process can run no program as a user; None if it can."""
    if WINDOWS:
        return "on Windows programs run as the user whom the agent runs as"
    import pwd

    try:
        known = pwd.getpwnam(user)
    except KeyError:
        return f"there is no user {user} in this machine"
    if os.geteuid() in {0, known.pw_uid}:
        return None
    return f"only root can run programs as {user}: run the agent as root, or as {user} without this field"


def others_can_change(path: Path) -> str | None:
    """Say how somebody else could put another program in the place of this one; None if nobody can.

    Whoever owns a file counts, and all folders above it and above its name: who can write there replaces it.
    """
    if WINDOWS:
        return None  # access lists are beyond what can be judged here
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
