"""The libvirt driver. Each module of this package does a part of its work."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

from forewarn.clock import SystemClock
from forewarn.control.driver import Begun, CancelAnswer, Checked, DriverTask, Failed, Unknown
from forewarn.core.basic_types import MachineId, Work
from forewarn.core.errors import Unavailable
from forewarn.core.model.found_fleet import FoundFleet, together
from forewarn.core.model.host import Host
from forewarn.drivers.driver_setup import DriverSetup
from forewarn.drivers.libvirt import inventory
from forewarn.drivers.libvirt.attempts import DomainAttempt
from forewarn.drivers.libvirt.background_calls import BackgroundCalls
from forewarn.drivers.libvirt.connections import Connections
from forewarn.drivers.libvirt.definition_copies import DefinitionCopies
from forewarn.drivers.libvirt.library import LibvirtRefused, NoLibvirtAnswer, check_installed
from forewarn.drivers.libvirt.options import LibvirtOptions
from forewarn.drivers.libvirt.step_hosts import LibvirtContext, StaleDomains
from forewarn.drivers.libvirt.upkeep import Upkeep

T = TypeVar("T")

# The next check after two concurrent calls for one machine.
CHECK_AGAIN = timedelta(seconds=2)


def make(setup: DriverSetup) -> "LibvirtDriver":
    """Create the driver from its options; raise UnusableDriver without libvirt-python."""
    check_installed()
    return LibvirtDriver(setup.read(LibvirtOptions()), wake=setup.wake)


class LibvirtDriver:
    """Carries out the steps of machines that are libvirt domains."""

    isolated = True  # a host that drops packets can crash libvirt's client library (CVE-2024-4418)
    verifies_restarts = True
    lists_by_host = True

    def __init__(self, options: LibvirtOptions, *, wake: Callable[[MachineId], None]) -> None:
        self.connections = Connections(options, wake=self._woken)
        self.limits = options.limits
        self._context = LibvirtContext(
            connections=self.connections,
            options=options,
            calls=BackgroundCalls(ended=lambda machine: wake(MachineId(machine))),
            copies=DefinitionCopies(options.definitions),
            stale=StaleDomains(),
            now=SystemClock().now,
        )
        self._upkeep = Upkeep(self._context, exclusive=self._exclusive)
        self._wake = wake
        self._lock = threading.Lock()
        self._busy: set[str] = set()  # machines and hosts in use; guarded by the lock

    def _woken(self, machine: MachineId) -> None:
        self._upkeep.changed(machine)
        self._wake(machine)

    def begin(self, task: DriverTask) -> Begun:
        """Begin a step."""
        return self._call(task, DomainAttempt.begin) or _no_machine(task)

    def check(self, task: DriverTask) -> Checked:
        """Check a step and continue it."""
        return self._call(task, DomainAttempt.check) or _no_machine(task)

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Cancel a step."""
        return self._call(task, DomainAttempt.cancel) or Unknown(_no_machine(task).why)

    def _call(self, task: DriverTask, verb: Callable[[DomainAttempt], T]) -> T | Unknown | None:
        if task.machine is None or task.work in (Work.HOST, Work.RECOMMEND):
            return None
        with self._exclusive(task.machine.id) as exclusive:
            if not exclusive:
                return Unknown("an earlier call for this machine has not returned", task.now + CHECK_AGAIN)
            return self._attempt(task, verb)

    def _attempt(self, task: DriverTask, verb: Callable[[DomainAttempt], T]) -> T | Unknown | None:
        if task.machine is None:
            return None
        try:
            return verb(DomainAttempt(task, task.machine, self._context))
        except NoLibvirtAnswer as error:
            return Unknown(str(error), host=error.host)
        except LibvirtRefused as error:
            return Unknown(str(error))

    @contextmanager
    def _exclusive(self, subject: str) -> Iterator[bool]:
        """Yield False if a call for the same machine or host still runs, for example after a timeout."""
        with self._lock:
            exclusive = subject not in self._busy
            self._busy.add(subject)
        try:
            yield exclusive
        finally:
            if exclusive:
                with self._lock:
                    self._busy.discard(subject)

    def precheck(self, task: DriverTask) -> str | Unknown | None:
        """Return why a step would be refused, as far as is known before it begins."""
        return self._attempt(task, DomainAttempt.precheck)

    def inventory(self, hosts: Sequence[Host]) -> FoundFleet:
        """List the domains of hosts; name the hosts that do not answer."""
        found = []
        for host in hosts:
            try:
                found.append(inventory.list_host(self.connections.get(host), host))
            except (NoLibvirtAnswer, LibvirtRefused, Unavailable) as error:
                found.append(FoundFleet(unreachable={host.name: _without_name(error, host)}))
        return together(found)

    def reach(self, host: Host) -> str | None:
        """Return why a host is unreachable; if it is reachable, do its upkeep."""
        try:
            hypervisor = self.connections.get(host)
            hypervisor.ping()
        except (NoLibvirtAnswer, LibvirtRefused) as error:
            return _without_name(error, host)
        self._upkeep.run(hypervisor, host)
        return None


def _no_machine(task: DriverTask) -> Failed:
    return Failed(f"{task.name}: the libvirt driver does not work on hosts; set a hook for it in [hooks]")


def _without_name(error: Exception, host: Host) -> str:
    """Remove the host's name, which the caller shows already."""
    return str(error).removeprefix(f"{host.name} cannot be reached: ").removeprefix(f"{host.name}: ")
