"""The libvirt driver: calls about one machine are kept apart, and machines do not wait for each other."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from forewarn.control.driver import Checked, DriverTask, Running, Unknown
from forewarn.core.copies import replace
from forewarn.core.model.machine import Machine
from forewarn.drivers.libvirt.driver import ASK_AGAIN, LibvirtDriver
from forewarn.drivers.libvirt.options import LibvirtOptions
from forewarn.drivers.libvirt.places import Tools
from tests.unit.slices import machine
from tests.unit.test_libvirt_attempts import TASK

OTHER = replace(TASK, machine=machine("web-9"))
PATIENCE = 60.0


class Held:
    """An attempt that looks at its machine until the test lets it go on."""

    at_work, goes_on = threading.Event(), threading.Event()

    def __init__(self, task: DriverTask, machine: Machine, tools: Tools) -> None:
        self._waits = task is TASK

    def check(self) -> Checked:
        """Look."""
        if self._waits:
            self.at_work.set()
            assert self.goes_on.wait(PATIENCE)
        return Running(None)


def test_a_second_call_about_a_machine_is_answered_at_once_and_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("forewarn.drivers.libvirt.driver.Attempt", Held)
    driver = LibvirtDriver(LibvirtOptions(), wake=lambda _: None)
    with ThreadPoolExecutor() as threads:
        first = threads.submit(driver.check, TASK)
        assert Held.at_work.wait(PATIENCE)
        assert driver.check(TASK) == Unknown("it is being seen to already", TASK.now + ASK_AGAIN)
        assert driver.check(OTHER) == Running(None)
        Held.goes_on.set()
        assert first.result() == Running(None)
    assert driver.check(TASK) == Running(None)
