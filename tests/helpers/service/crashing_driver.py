"""A driver whose process crashes on request, and that records its calls and the begun steps."""

import ctypes
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from forewarn.control.driver import (
    Begun,
    CancelAnswer,
    Cancelled,
    Checked,
    Done,
    DriverTask,
    NotBegun,
    Running,
)
from forewarn.core.basic_types import MachineId
from forewarn.core.errors import Conflict
from forewarn.core.model.found_fleet import FoundFleet
from forewarn.core.model.host import Host
from forewarn.drivers.driver_setup import CallOptions, DriverSetup

CRASHES = {
    "segfault": lambda: ctypes.string_at(0),
    "abort": os.abort,
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda: os._exit(7),
    "rubbish": lambda: _send(b"\x00\x00\x00\x03\x80\x05("),
    "flood": lambda: _send(b"\xff\xff\xff\xff"),
}


def _send(sent: bytes) -> None:
    """Write garbage to the socket, as faulty C code might."""
    numbers = map(int, os.listdir("/proc/self/fd"))
    os.write(next(each for each in numbers if _file(each).startswith("socket:")), sent)
    threading.Event().wait()


CHILD = "forewarn.drivers.isolation.child"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashingOptions(CallOptions):
    folder: str = ""  # the folder in which tests request crashes and read what happened
    unmakeable: bool = False  # whether the driver runs in its own process


def make(setup: DriverSetup) -> "CrashingDriver":
    options = setup.read(CrashingOptions())
    if options.unmakeable and is_isolated():
        raise OSError("no hypervisor here")
    return CrashingDriver(setup, options)


class InServer:
    """The same driver without the declaration that it loads C code."""

    def __init__(self, driver: "CrashingDriver") -> None:
        self.limits, self.inventory = driver.limits, driver.inventory
        self.begin, self.check, self.cancel = driver.begin, driver.check, driver.cancel


def make_in_server(setup: DriverSetup) -> InServer:
    return InServer(make(setup))


def is_isolated() -> bool:
    spec = sys.modules["__main__"].__spec__
    return spec is not None and spec.name == CHILD


def crash_in(folder: Path, where: str, how: str = "segfault") -> None:
    """Make the process crash once, when it reaches a place."""
    (folder / f"crash-{where}").write_text(how)


def calls(folder: Path) -> list[str]:
    """Return the calls of the driver, in order."""
    noted = folder / "calls"
    return noted.read_text().split() if noted.exists() else []


def begun(folder: Path) -> list[str]:
    """Return the steps that the driver has begun, once per begin."""
    noted = folder / "begun"
    return noted.read_text().split() if noted.exists() else []


class CrashingDriver:
    isolated = True
    lists_by_host = True
    fences = True

    def __init__(self, setup: DriverSetup, options: CrashingOptions) -> None:
        self.limits = options.limits
        self._wake = setup.wake
        self._folder = Path(options.folder)

    def begin(self, task: DriverTask) -> Begun:
        self._come_to("begin")
        self._note("begun", f"{task.order}/{task.attempt}")
        self._come_to("begun")
        return Running(task.now, mark="begun")

    def check(self, task: DriverTask) -> Checked:
        self._come_to("check")
        return Done() if f"{task.order}/{task.attempt}" in begun(self._folder) else NotBegun()

    def cancel(self, task: DriverTask) -> CancelAnswer:
        self._come_to("cancel")
        return Cancelled()

    def precheck(self, task: DriverTask) -> str | None:
        self._come_to("precheck")
        return None

    def ended(self, task: DriverTask) -> None:
        self._come_to("ended")

    def reach(self, host: Host) -> str | None:
        self._come_to("reach")
        match host.name:
            case "broken":
                raise ValueError("its cable is torn")
            case "refused":
                raise Conflict("another program manages it")
            case "hangs" | "hangs-in-c":
                self._note("hanging", "yes")
                self._hang(in_c=host.name == "hangs-in-c")
            case "long":
                return "x" * (65 * 1024 * 1024)
            case "has-news":
                self._wake(MachineId("web-0"))
                logging.getLogger(__name__).warning("seen %s", "from afar")
            case "strange":
                return Path("/")  # type: ignore[return-value]
        return None

    def _hang(self, *, in_c: bool) -> None:
        if in_c:
            ctypes.PyDLL(None).sleep(1000)  # blocks every Python thread
        threading.Event().wait()

    def inventory(self, hosts: Sequence[Host]) -> FoundFleet:
        """Describe the process itself."""
        self._come_to("inventory")
        files = tuple(_file(number) for number in sorted(map(int, os.listdir("/proc/self/fd"))))
        about = {"pid": f"{os.getpid()}", "session": f"{os.getsid(0)}"}
        return FoundFleet(notes=tuple(filter(None, files)), unreachable=about)  # type: ignore[arg-type]

    def _come_to(self, where: str) -> None:
        self._note("calls", where)
        asked = self._folder / f"crash-{where}"
        if asked.exists():
            how = asked.read_text()
            asked.unlink()
            CRASHES[how]()

    def _note(self, what: str, line: str) -> None:
        with (self._folder / what).open("a") as file:
            file.write(f"{line}\n")


def _file(number: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except FileNotFoundError:  # the file descriptor through which the folder was listed
        return ""
