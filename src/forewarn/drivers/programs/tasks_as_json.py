"""A step as a program is given it: JSON on stdin."""

import json
from datetime import datetime
from typing import Any

from forewarn.control.driver import DriverTask
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.wire.rfc3339 import write_time


def as_json(task: DriverTask, *, call: str) -> bytes:
    """Write a task down, and what is asked about it."""
    said = {
        "call": call,
        "order": task.order,
        "action": task.action,
        "task": task.task,
        "work": task.work,
        "attempt": task.attempt,
        "mark": task.mark,
        "begun_at": _moment(task.begun_at),
        "deadline": _moment(task.deadline),
        "machine": _machine(task.machine),
        "host": _host(task.host),
        "source": _host(task.source),
        "target": _host(task.target),
    }
    return json.dumps(said).encode() + b"\n"


def _machine(machine: Machine | None) -> dict[str, Any] | None:
    if machine is None:
        return None
    return {"name": machine.name, "project": machine.project, "vm_id": machine.id, "state": machine.state}


def _host(host: Host | None) -> dict[str, Any] | None:
    return None if host is None else {"name": host.name, "uri": host.uri}


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else write_time(moment)
