"""A driver that lists the machines a test creates and removes."""

import threading
from collections.abc import Sequence

from forewarn.control.driver import (
    Begun,
    CancelAnswer,
    Cancelled,
    Checked,
    Done,
    DriverLimits,
    DriverTask,
    Failed,
)
from forewarn.core.basic_types import MachineId, MachineName
from forewarn.core.model.found_fleet import FoundFleet, FoundHost, FoundMachine
from forewarn.core.model.host import Host

IDS = [f"aaaaaaaa-0000-4000-8000-{n:012}" for n in range(10)]


class Hypervisor:
    """A driver whose machines a test creates and removes."""

    limits: DriverLimits | None = None
    lists_by_host = True

    def __init__(self) -> None:
        self.domains: dict[str, dict[str, str]] = {}  # names by id, by host
        self.off: set[str] = set()  # ids of machines that are off
        self.silent: dict[str, Exception] = {}
        self.hangs = threading.Event()
        self.asked: list[str | None] = []
        self.fails = ""  # why steps fail
        self.begun: list[DriverTask] = []

    def inventory(self, hosts: Sequence[Host]) -> FoundFleet:
        (host,) = hosts
        self.asked.append(host.uri)
        if host.name == "stuck":
            self.hangs.wait()
        if host.name in self.silent:
            raise self.silent[host.name]
        return FoundFleet(
            hosts=(FoundHost(name=host.name, uri=host.uri),),
            machines=tuple(
                FoundMachine(
                    vm_id=MachineId(id_),
                    name=MachineName(name),
                    host=host.name,
                    running=id_ not in self.off,
                    macs=("52-54-00-00-00-01",),
                    addresses=(f"10.9.0.{IDS.index(id_) + 1}",),
                )
                for id_, name in self.domains.get(host.name, {}).items()
            ),
        )

    def begin(self, task: DriverTask) -> Begun:
        self.begun.append(task)
        return Failed(self.fails) if self.fails else Done()

    def check(self, task: DriverTask) -> Checked:
        return Done()

    def cancel(self, task: DriverTask) -> CancelAnswer:
        return Cancelled()
