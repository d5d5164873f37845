"""A step as a program is given it: JSON on stdin, and what names it as variables, for shells."""

import json
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from forewarn.control.driver import DriverTask
from forewarn.core.model.host import Host
from forewarn.core.model.machine import TRAITS, Machine
from forewarn.core.words import STANDALONE
from forewarn.wire.fields import as_json as as_plain
from forewarn.wire.rfc3339 import write_time


def as_json(task: DriverTask, *, call: str, more: Mapping[str, Any] = MappingProxyType({})) -> bytes:
    """Write a task down, what is asked about it, and more."""
    said = {
        "call": call,
        "order": task.order,
        "action": task.action,
        "task": task.task,
        "work": task.work,
        "verifies": task.verifies,
        "attempt": task.attempt,
        "mark": task.mark,
        "begun_at": _moment(task.begun_at),
        "deadline": _moment(task.deadline),
        "machine": _machine(task.machine),
        "host": _host(task.host),
        "source": _host(task.source),
        "target": _host(task.target),
        **more,
    }
    return json.dumps(said).encode() + b"\n"


def as_variables(task: DriverTask, *, call: str) -> dict[str, str]:
    """Return what names a task, and what is asked about it."""
    source, target, machine = task.host, task.target, task.machine
    return {
        "FOREWARN_CALL": call,
        "FOREWARN_DRIVER": task.driver,
        "FOREWARN_ORDER": task.order,
        "FOREWARN_ATTEMPT": f"{task.attempt}",
        "FOREWARN_WORK": task.work,
        "FOREWARN_TASK": task.task or "",
        "FOREWARN_MACHINE": machine.name if machine is not None else "",
        "FOREWARN_MACHINE_ID": machine.id if machine is not None else "",
        "FOREWARN_HOST": source.name if source is not None else "",
        "FOREWARN_HOST_URI": (source.uri or "") if source is not None else "",
        "FOREWARN_TARGET": target.name if target is not None else "",
        "FOREWARN_TARGET_URI": (target.uri or "") if target is not None else "",
        "FOREWARN_MARK": task.mark,
    }


def _machine(machine: Machine | None) -> dict[str, Any] | None:
    if machine is None:
        return None
    alone = machine.group.startswith(STANDALONE)
    traits = {name: as_plain(getattr(machine, name)) for name in TRAITS}
    return {
        "name": machine.name,
        "id": machine.id,
        "vm_id": machine.id,
        "project": machine.project,
        "group": None if alone else machine.group,
        "host": machine.host,
        "state": machine.state,
        **traits,
    }


def _host(host: Host | None) -> dict[str, Any] | None:
    return None if host is None else {"name": host.name, "uri": host.uri}


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else write_time(moment)
