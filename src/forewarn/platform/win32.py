"""Windows. This module was written from documentation and never ran on Windows."""

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from forewarn.platform.leases import LeaseSource, parse_registry

if TYPE_CHECKING:
    import asyncio

REGISTRY_KEY = r"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces"
REGISTRY_VALUE = "DhcpInterfaceOptions"

CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW = 0x00000200, 0x08000000
QUERY_LIMITED_INFORMATION, STILL_ACTIVE = 0x1000, 259
FILETIMES_A_SECOND, LONGEST_PATH = 10_000_000, 32768

HAS_USERS = False  # whether programs can run as another user

_NO_USERS = "on Windows, programs always run as the user of the agent"


def lease_sources() -> Iterator[LeaseSource]:
    """Read the lease of each network interface."""
    registry: Any = import_module("winreg")
    with registry.OpenKey(registry.HKEY_LOCAL_MACHINE, REGISTRY_KEY) as interfaces:
        for index in range(registry.QueryInfoKey(interfaces)[0]):
            name = registry.EnumKey(interfaces, index)
            where = rf"HKLM\{REGISTRY_KEY}\{name}\{REGISTRY_VALUE}"
            try:
                with registry.OpenKey(interfaces, name) as interface:
                    data, _ = registry.QueryValueEx(interface, REGISTRY_VALUE)
                yield LeaseSource(where=where, leases=parse_registry(bytes(data)))
            except FileNotFoundError:
                continue  # an interface without DHCP
            except OSError as error:
                yield LeaseSource(where=where, trouble=str(error))


def become(words: Sequence[str]) -> None:
    """Do nothing: on Windows the new program would be another process, and nothing would wait for it."""


def own_group() -> dict[str, Any]:
    """Return the `Popen` arguments for a process that outlives its parent and leads a process group."""
    return {"creationflags": CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW}


def end_tree(pid: int, *, force: bool) -> None:
    """End a process started with `own_group`, with its children, by force or by request."""
    words = ["taskkill", "/T", *(["/F"] if force else []), "/PID", str(pid)]
    subprocess.run(words, capture_output=True, check=False)  # noqa: S603 - a program of the system


def ask_to_end(pid: int, number: int) -> None:
    """Send a signal to a process; any signal except a console event ends it at once."""
    os.kill(pid, number)


def process_started(pid: int) -> str | None:
    """Return a text that identifies the start of a process, because pids are reused; None if it has ended."""
    made = _created(pid)
    return None if made is None else str(made)


def up_seconds() -> float | None:
    """Return the seconds since this computer booted, including suspend; None if unknown."""
    kernel: Any = import_module("ctypes").windll.kernel32
    kernel.GetTickCount64.restype = import_module("ctypes").c_ulonglong
    return float(kernel.GetTickCount64()) / 1000.0


def boot_id() -> str | None:
    """Return None: Windows has no boot id."""
    return None


def process_age(pid: int) -> float | None:
    """Return how many seconds ago a process was started; None if it has ended."""
    made = _created(pid)
    if made is None:
        return None
    ctypes: Any = import_module("ctypes")
    now = ctypes.c_ulonglong()
    ctypes.windll.kernel32.GetSystemTimeAsFileTime(ctypes.byref(now))
    return float(now.value - made) / FILETIMES_A_SECOND


def process_executable(pid: int) -> Path | None:
    """Return the program of a process; None if it cannot be read."""
    ctypes: Any = import_module("ctypes")
    with _opened(pid) as handle:
        name, length = ctypes.create_unicode_buffer(LONGEST_PATH), ctypes.c_ulong(LONGEST_PATH)
        known = handle and ctypes.windll.kernel32.QueryFullProcessImageNameW(
            handle, 0, name, ctypes.byref(length)
        )
        return Path(name.value).resolve() if known else None


def _created(pid: int) -> int | None:
    """Return the creation time of a process in units of 100 ns; None if it has ended."""
    ctypes: Any = import_module("ctypes")
    kernel = ctypes.windll.kernel32
    with _opened(pid) as handle:
        if not handle:
            return None
        code, times = ctypes.c_ulong(), [ctypes.c_ulonglong() for _ in range(4)]
        kernel.GetExitCodeProcess(handle, ctypes.byref(code))
        kernel.GetProcessTimes(handle, *(ctypes.byref(each) for each in times))
    return int(times[0].value) if code.value == STILL_ACTIVE else None


@contextlib.contextmanager
def _opened(pid: int) -> Iterator[Any]:
    """Open a handle to query a process; it is 0 if the process has ended."""
    kernel: Any = import_module("ctypes").windll.kernel32
    handle = kernel.OpenProcess(QUERY_LIMITED_INFORMATION, 0, pid)
    try:
        yield handle
    finally:
        if handle:
            kernel.CloseHandle(handle)


def on_signal(name: str, act: Callable[[], None]) -> None:
    """Call a function in this loop when a signal arrives; loops on Windows have no signal handlers."""
    import asyncio  # blocking clients do not need it

    number = getattr(signal, name, None)
    if number is not None:
        loop = asyncio.get_running_loop()
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(act))


def cannot_become(user: str) -> str | None:
    """Return why this process cannot run programs as another user."""
    return _NO_USERS


def identity_of(user: str) -> dict[str, Any]:
    """Raise LookupError: programs cannot run as another user."""
    raise LookupError(_NO_USERS)


def others_can_change(path: Path) -> str | None:
    """Return None: this module does not check access control lists."""
    return None


def hold_file(path: Path) -> IO[bytes] | None:
    """Lock a file until this process ends; return None if another process has locked it."""
    locks: Any = import_module("msvcrt")
    with contextlib.ExitStack() as unless_held:
        file = unless_held.enter_context(path.open("ab"))
        try:
            locks.locking(file.fileno(), locks.LK_NBLCK, 1)
        except OSError:
            return None
        unless_held.pop_all()
        return file


def is_held(path: Path) -> bool:
    """Whether a process has locked a file."""
    locks: Any = import_module("msvcrt")
    try:
        with path.open("rb") as file:
            try:
                locks.locking(file.fileno(), locks.LK_NBLCK, 1)
            except OSError:
                return True
            locks.locking(file.fileno(), locks.LK_UNLCK, 1)
    except FileNotFoundError:
        pass
    return False


def sync_folder(folder: Path) -> None:
    """Do nothing: Windows makes new files durable itself."""


async def connect_locally(path: str) -> "tuple[asyncio.StreamReader, asyncio.StreamWriter]":
    """Raise OSError: there are no Unix sockets."""
    raise OSError(0, "this system has no Unix sockets: use HOST:PORT")


def ask_and_read(address: str, message: bytes, seconds: float) -> bytes:
    """Send a message to HOST:PORT, and read the answer until the end; this blocks."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), seconds) as asked:
        asked.sendall(message)
        pieces = iter(lambda: asked.recv(65536), b"")
        return b"".join(pieces)


def send_locally(address: str, message: bytes) -> None:
    """Do nothing: there is no systemd."""
