"""The driver, called directly as by the engine, which saves its marks."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from forewarn.config import Settings
from forewarn.control.driver import Begun, CancelAnswer, Checked, DriverTask, Running
from forewarn.core.basic_types import (
    Action,
    GroupName,
    HostName,
    MachineId,
    MachineName,
    OrderId,
    ProjectName,
    Work,
)
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.drivers.driver_setup import DriverSetup
from forewarn.drivers.openstack.driver import OpenStackDriver, make

# The library warns about itself.
LIBRARY_WARNINGS = [
    pytest.mark.filterwarnings("ignore:Support for InfluxDB"),
    pytest.mark.filterwarnings("ignore:The 'service_type' parameter"),
]
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
COMPUTE1 = Host(name=HostName("compute1"))


def made(*, monotonic: Callable[[], float] = time.monotonic, **options: Any) -> OpenStackDriver:
    """Create a driver, as in a process of its own."""
    given = {"cloud": "lab", "answer-for": "10s", **options}
    return make(DriverSetup(name="openstack", settings=Settings(), options=given, monotonic=monotonic))


def task(server: str, work: Work = Work.REBOOT, *, attempt: int = 1, mark: str = "") -> DriverTask:
    web = Machine(
        id=MachineId(server),
        name=MachineName("web"),
        project=ProjectName("default"),
        group=GroupName("web"),
        host=COMPUTE1.name,
    )
    return DriverTask(
        order=OrderId("O"),
        attempt=attempt,
        action=Action.RESTART,
        work=work,
        machine=web,
        source=COMPUTE1,
        target=None,
        begun_at=NOON,
        now=NOON,
        mark=mark,
        driver="openstack",
    )


class SavedStep:
    """A step whose mark is saved, as in forewarn's store."""

    def __init__(self, task: DriverTask) -> None:
        self.task = task

    def begin(self, driver: OpenStackDriver) -> Begun:
        return self._saved(driver.begin(self.task))

    def check(self, driver: OpenStackDriver) -> Checked:
        return self._saved(driver.check(self.task))

    def cancel(self, driver: OpenStackDriver) -> CancelAnswer:
        return driver.cancel(self.task)

    def _saved(self, answer: Any) -> Any:
        if isinstance(answer, Running) and answer.mark:
            self.task = replace(self.task, mark=answer.mark)
        return answer
