"""Calls of drivers in tests."""

from datetime import UTC, datetime
from typing import Any

from forewarn.control.driver import DriverTask
from forewarn.control.engine.driver_calls import DriverCall, Verb
from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    Action,
    GroupName,
    HostName,
    MachineId,
    MachineName,
    OrderId,
    Work,
)
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def task(machine: str = "web-0", *, host: str = "host-1", **more: Any) -> DriverTask:
    at_once = more.pop("at_once", None)
    carrying = Host(name=HostName(host), driver="test", at_once=at_once)
    made = Machine(
        id=MachineId(machine),
        name=MachineName(machine),
        project=DEFAULT_PROJECT,
        group=GroupName("web"),
        host=carrying.name,
    )
    defaults: dict[str, Any] = {
        "order": OrderId("ORDER"),
        "attempt": 1,
        "action": Action.RESTART,
        "work": Work.REBOOT,
        "machine": made,
        "source": carrying,
        "target": None,
        "begun_at": NOW,
        "now": NOW,
        "driver": "test",
    }
    return DriverTask(**defaults | more)


def begin(machine: str = "web-0", **more: Any) -> DriverCall:
    return DriverCall(verb=Verb.BEGIN, task=task(machine, **more))


def check(machine: str = "web-0", *, at: datetime | None = None, **more: Any) -> DriverCall:
    return DriverCall(verb=Verb.CHECK, task=task(machine, **more), at=at)


def cancel(machine: str = "web-0", **more: Any) -> DriverCall:
    return DriverCall(verb=Verb.CANCEL, task=task(machine, **more))
