"""Steps that tests run with the libvirt driver alone, on the hosts of a bed."""

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from forewarn.clock import SystemClock, monotonic
from forewarn.config import Settings
from forewarn.control.driver import (
    Begun,
    CancelAnswer,
    Checked,
    Done,
    Driver,
    DriverTask,
    Failed,
    Running,
    Unknown,
)
from forewarn.core.basic_types import HostName, MachineId, OrderId, Work
from forewarn.core.model.host import Host
from forewarn.drivers.registry import Drivers
from tests.helpers.programs.process import until
from tests.helpers.service.driver_calls import task
from tests.machines.bed import Bed, Guest

# A boot under emulation on a busy computer.
PATIENCE = 240.0

_orders = itertools.count(1)


class LibvirtBed:
    """The hosts of a bed for the driver."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        self.woken: set[str] = set()
        self._made: list[Drivers] = []
        self.hosts = {
            name: Host(name=HostName(name), driver="libvirt", uri=host.uri)
            for name, host in bed.hosts.items()
        }

    def driver(self, **options: Any) -> Any:
        """Create a driver with a process of its own, as each start of a server does."""
        table = {name.replace("_", "-"): _as_set(value) for name, value in options.items()}
        made = Drivers(Settings(drivers={"libvirt": table}), monotonic=monotonic)
        made.wake_by(self.woken.add)
        self._made.append(made)
        return made.by_name["libvirt"]

    def stop(self) -> None:
        """Stop the processes of all drivers."""
        for each in self._made:
            each.stop()

    def step(self, guest: Guest, work: Work, *, on: str | None = "kvm01", to: str | None = None) -> "Step":
        """Create a step with an order of its own."""
        made = task(guest.name, work=work, order=OrderId(f"ORDER-{guest.vm_id}-{next(_orders)}"))
        assert made.machine is not None
        host = None if on is None else HostName(on)
        machine = replace(made.machine, id=MachineId(guest.vm_id), host=host)
        source, target = (None if name is None else self.hosts[name] for name in (on, to))
        return Step(replace(made, machine=machine, source=source, target=target))


class Step:
    """A step that is called as by the engine."""

    def __init__(self, of: DriverTask) -> None:
        self.task = of
        self.progress: list[float] = []
        self.saved_mark = ""

    def attempt(self, number: int) -> "Step":
        return Step(replace(self.task, attempt=number))

    def begin(self, driver: Driver) -> Begun:
        answer = driver.begin(self._now())
        self._heard(answer)
        return answer

    def check(self, driver: Driver) -> Checked:
        answer = driver.check(self._now())
        self._heard(answer)
        return answer

    def _heard(self, answer: object) -> None:
        if isinstance(answer, Running):
            self.saved_mark = answer.mark or self.saved_mark
            self.progress += [] if answer.progress is None else [answer.progress]

    def cancel(self, driver: Driver) -> CancelAnswer:
        """Cancel the step; repeat while the answer is Unknown."""
        return self._asked_until(driver.cancel, "called off or too late")

    def end(self, driver: Driver, *, within: float = PATIENCE) -> Done | Failed:
        """Check until the step has ended."""
        answer = self._asked_until(lambda _: self.check(driver), "the end of a step", within=within)
        assert isinstance(answer, Done | Failed), answer
        return answer

    def done(self, driver: Driver) -> Done:
        """Begin the step, wait until it is done, and check that it stays done."""
        begun = self.begin(driver)
        answer = self.end(driver) if isinstance(begun, Running | Unknown) else begun
        assert isinstance(answer, Done), answer
        assert self.check(driver) == answer
        return answer

    def failed(self, driver: Driver) -> str:
        """Begin the step and wait until it fails; return the reason."""
        begun = self.begin(driver)
        answer = self.end(driver) if isinstance(begun, Running | Unknown) else begun
        assert isinstance(answer, Failed), answer
        return answer.why

    def _asked_until(self, ask: Callable[[DriverTask], Any], what: str, *, within: float = PATIENCE) -> Any:
        pause = threading.Event()

        def over() -> Any:
            answer = ask(self._now())
            if isinstance(answer, Running | Unknown):
                pause.wait(0.2)
                return None
            return answer

        return until(over, what=what, within=within)

    def _now(self) -> DriverTask:
        return replace(self.task, now=SystemClock().now(), mark=self.saved_mark)


def _as_set(value: Any) -> Any:
    """Return an option as in the settings."""
    match value:
        case timedelta():
            return f"{value.total_seconds():g}s"
        case tuple():
            return list(value)
        case _:
            return value


def booted(bed: Bed, name: str = "web-0", **more: Any) -> Guest:
    """Start a guest on a host and wait for its boot."""
    guest = bed.guest(name, number=21, **more)
    guest.console.wait_for_boot()
    return guest
