"""The libvirt driver: the port, over what each module of this package does."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

from forewarn.clock import SystemClock
from forewarn.control.driver import (
    Begun,
    CancelAnswer,
    Checked,
    DriverLimits,
    DriverTask,
    Failed,
    Unknown,
)
from forewarn.core.basic_types import MachineId, Work
from forewarn.core.errors import Unavailable
from forewarn.core.model.found_fleet import FoundFleet, together
from forewarn.core.model.host import Host
from forewarn.drivers.driver_setup import DriverSetup
from forewarn.drivers.libvirt import inventory
from forewarn.drivers.libvirt.attempts import DomainAttempt
from forewarn.drivers.libvirt.connections import Connections
from forewarn.drivers.libvirt.kept import KeptDefinitions, LeftBehind, LongCalls
from forewarn.drivers.libvirt.library import Declined, NoLibvirtAnswer, check_installed
from forewarn.drivers.libvirt.options import LibvirtOptions
from forewarn.drivers.libvirt.places import Tools
from forewarn.drivers.libvirt.upkeep import Upkeep

T = TypeVar("T")

# One that is asked about the same machine twice at once answers the second time that it does not know.
ASK_AGAIN = timedelta(seconds=2)


def make(setup: DriverSetup) -> "LibvirtDriver":
    """Make the driver as it is set; UnusableDriver without libvirt-python."""
    check_installed()
    return LibvirtDriver(setup.read(LibvirtOptions()), wake=setup.wake)


class LibvirtDriver:
    """Does the steps of machines that are domains of libvirt."""

    isolated = True  # a host that drops packets can crash libvirt's client library (CVE-2024-4418)

    def __init__(self, options: LibvirtOptions, *, wake: Callable[[MachineId], None]) -> None:
        self.connections = Connections(options, wake=self._woken)
        self._tools = Tools(
            connections=self.connections,
            options=options,
            calls=LongCalls(ended=lambda machine: wake(MachineId(machine))),
            kept=KeptDefinitions(options.definitions),
            left=LeftBehind(),
            now=SystemClock().now,
        )
        self._upkeep = Upkeep(self._tools, alone=self._alone)
        self._wake = wake
        self._limits = options.limits
        self._lock = threading.Lock()
        # Machines that a call is about, and hosts that are looked after; guarded by the lock.
        self._busy: set[str] = set()

    @property
    def limits(self) -> DriverLimits:
        """How it is called."""
        return self._limits

    def _woken(self, machine: MachineId) -> None:
        self._upkeep.changed(machine)
        self._wake(machine)

    def begin(self, task: DriverTask) -> Begun:
        """Begin a step."""
        return self._asked(task, DomainAttempt.begin) or Failed(
            f"{task.name}: this driver does not work on hosts"
        )

    def check(self, task: DriverTask) -> Checked:
        """Find out how a step is doing, and go on with it."""
        return self._asked(task, DomainAttempt.check) or Failed(
            f"{task.name}: this driver does not work on hosts"
        )

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Call a step off."""
        return self._asked(task, DomainAttempt.cancel) or Unknown(f"{task.name}: no step of this driver's")

    def _asked(self, task: DriverTask, verb: Callable[[DomainAttempt], T]) -> T | Unknown | None:
        if task.machine is None or task.work in (Work.HOST, Work.RECOMMEND):
            return None
        with self._alone(task.machine.id) as alone:
            if not alone:
                return Unknown("it is being seen to already", task.now + ASK_AGAIN)
            try:
                return verb(DomainAttempt(task, task.machine, self._tools))
            except NoLibvirtAnswer as error:
                return Unknown(str(error), host=error.host)
            except Declined as error:
                return Unknown(str(error))

    @contextmanager
    def _alone(self, subject: str) -> Iterator[bool]:
        """Keep calls about one machine apart: an earlier one may have been given up, and not be over."""
        with self._lock:
            alone = subject not in self._busy
            self._busy.add(subject)
        try:
            yield alone
        finally:
            if alone:
                with self._lock:
                    self._busy.discard(subject)

    # Hosts

    verifies_restarts = True
    lists_by_host = True

    def inventory(self, hosts: Sequence[Host]) -> FoundFleet:
        """Return the domains of hosts; of one that cannot be asked, why."""
        found = []
        for host in hosts:
            try:
                found.append(inventory.list_host(self.connections.get(host), host))
            except (NoLibvirtAnswer, Declined, Unavailable) as error:
                found.append(FoundFleet(unreachable={host.name: _without_name(error, host)}))
        return together(found)

    def precheck(self, task: DriverTask) -> str | Unknown | None:
        """Return why a step could not be done, as far as that can be seen before it begins."""
        if task.machine is None:
            return None
        try:
            return DomainAttempt(task, task.machine, self._tools).precheck()
        except NoLibvirtAnswer as error:
            return Unknown(str(error), host=error.host)
        except Declined as error:
            return Unknown(str(error))

    def reach(self, host: Host) -> str | None:
        """Return why a host cannot be reached now; of one that can, see to what there is to be seen to."""
        try:
            hypervisor = self.connections.get(host)
            hypervisor.ask()
        except (NoLibvirtAnswer, Declined) as error:
            return _without_name(error, host)
        self._upkeep.look_after(hypervisor, host)
        return None


def _without_name(error: Exception, host: Host) -> str:
    """Return what an error says of a host; whoever shows it names the host."""
    return str(error).removeprefix(f"{host.name} cannot be reached: ").removeprefix(f"{host.name}: ")
