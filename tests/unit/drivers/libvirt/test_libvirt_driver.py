"""The libvirt driver runs one call per machine at a time, and machines do not wait for each other."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from forewarn.control.driver import Checked, DriverTask, Running, Unknown
from forewarn.core.basic_types import HostName
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.drivers.libvirt.connections import Connections
from forewarn.drivers.libvirt.domains import Domain
from forewarn.drivers.libvirt.driver import CHECK_AGAIN, LibvirtDriver
from forewarn.drivers.libvirt.options import LibvirtOptions
from forewarn.drivers.libvirt.step_hosts import LibvirtContext
from tests.unit.drivers.libvirt.test_libvirt_attempts import TASK
from tests.unit.slices import machine

OTHER = replace(TASK, machine=machine("web-9"))
KVM = Host(name=HostName("kvm-1"), uri="test:///kvm-1")
PATIENCE = 60.0


class Held:
    """An attempt that blocks until the test releases it."""

    at_work, goes_on = threading.Event(), threading.Event()

    def __init__(self, task: DriverTask, machine: Machine, tools: LibvirtContext) -> None:
        self._waits = task is TASK

    def check(self) -> Checked:
        """Block."""
        if self._waits:
            self.at_work.set()
            assert self.goes_on.wait(PATIENCE)
        return Running(None)


def test_a_concurrent_call_for_a_machine_is_unknown_and_other_machines_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("forewarn.drivers.libvirt.driver.DomainAttempt", Held)
    driver = LibvirtDriver(LibvirtOptions(), wake=lambda _: None)
    with ThreadPoolExecutor() as threads:
        first = threads.submit(driver.check, TASK)
        assert Held.at_work.wait(PATIENCE)
        assert driver.check(TASK) == Unknown(
            "an earlier call for this machine has not returned", TASK.now + CHECK_AGAIN
        )
        assert driver.check(OTHER) == Running(None)
        Held.goes_on.set()
        assert first.result() == Running(None)
    assert driver.check(TASK) == Running(None)


class HeldHypervisor:
    """A host whose libvirt lists its domains when the test releases it."""

    def __init__(self) -> None:
        self.host = KVM.name
        self.lists, self.goes_on = threading.Event(), threading.Event()
        self.listed = 0

    def ping(self) -> None:
        """Answer."""

    def domains(self) -> list[Domain]:
        """Return no domains."""
        self.listed += 1
        self.lists.set()
        assert self.goes_on.wait(PATIENCE)
        return []


def test_one_thread_at_a_time_does_the_upkeep_of_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    hypervisor = HeldHypervisor()
    monkeypatch.setattr(Connections, "get", lambda _self, _host: hypervisor)
    monkeypatch.setattr("forewarn.drivers.libvirt.upkeep.WAIT", 0.0)
    driver = LibvirtDriver(LibvirtOptions(), wake=lambda _: None)
    assert driver.reach(KVM) is None  # reachable, although the upkeep goes on
    assert hypervisor.lists.wait(PATIENCE)
    monkeypatch.setattr("forewarn.drivers.libvirt.upkeep.WAIT", PATIENCE)
    assert driver.reach(KVM) is None
    assert hypervisor.listed == 1
    hypervisor.goes_on.set()
