"""A step as a program is given it, and what the program says of it.

It is given JSON on stdin, and what names the step as variables, for shells. On stdout it prints a JSON
object, if anything.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast, get_args

from forewarn.control.driver import (
    Cancelled,
    Done,
    DriverTask,
    Failed,
    NotBegun,
    Running,
    TooLate,
    Unknown,
)
from forewarn.core.basic_types import STANDALONE, HostName
from forewarn.core.model.host import Host
from forewarn.core.model.machine import TRAITS, Machine
from forewarn.core.time_formats import format_span
from forewarn.core.text_formats import on_one_line
from forewarn.programs.program import Exited, NotRun, Outcome, TimedOut, Unwatched
from forewarn.wire.fields import as_json as as_plain
from forewarn.wire.texts import write_time

BEGIN, CHECK, CANCEL = "begin", "check", "cancel"
LONGEST_WHY = 500
# As much as is kept of what a program recognises an attempt by.
LONGEST_MARK = 1000
LONGEST_HOST = 64
# When a program that is at it is asked again, if it does not say when.
ASK_AGAIN = timedelta(seconds=10)
# A program that wants to be asked again in more than a day has not understood the unit.
LONGEST_WAIT = timedelta(days=1)
# No machine that was away for longer comes back by a step.
LONGEST_IMPACT = timedelta(days=30)


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


StateWord: TypeAlias = Literal["done", "running", "failed", "unknown", "not-begun", "cancelled", "too-late"]
Said: TypeAlias = Done | Running | Failed | Unknown | NotBegun | Cancelled | TooLate

STATES: tuple[str, ...] = get_args(StateWord)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramAnswer:
    """What a program has said; whatever of it is missing was not said."""

    state: StateWord | None = None
    why: str = ""
    look_in: timedelta | None = None
    mark: str = ""
    progress: float | None = None
    host: HostName | None = None
    impact: float | None = None  # in seconds

    def as_state(self, state: StateWord, *, now: datetime) -> Said:
        """Return it as the answer of a driver, in a state that it says or that its exit code does."""
        look_at = None if self.look_in is None else now + self.look_in
        match state:
            case "done":
                return Done(self.host, self.impact)
            case "running":
                return Running(look_at or now + ASK_AGAIN, mark=self.mark, progress=self.progress)
            case "failed":
                return Failed(self.why or "it says so, and not why")
            case "unknown":
                return Unknown(self.why or "it cannot tell", look_at)
            case "not-begun":
                return NotBegun()
            case "cancelled":
                return Cancelled()
            case "too-late":
                return TooLate()


def read_answer(output: bytes) -> ProgramAnswer | None:
    """Read what a program has said; None if that is nothing of this kind."""
    try:
        said = json.loads(output)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or said.get("state") not in (None, *STATES):
        return None
    return ProgramAnswer(
        state=cast("StateWord | None", said.get("state")),
        why=_text(said.get("why"))[:LONGEST_WHY],
        look_in=_span(said.get("look_in")),
        mark=_text(said.get("mark"))[:LONGEST_MARK],
        progress=_share(said.get("progress")),
        host=HostName(_text(said.get("host"))[:LONGEST_HOST]) or None,
        impact=_seconds(said.get("impact")),
    )


def no_answer(outcome: Outcome, name: str, call: str, *, timeout: timedelta) -> str:
    """Return why a program has said nothing of a step: it did not run, or did not end by itself."""
    match outcome:
        case NotRun(why=why) | Unwatched(why=why):
            return why
        case TimedOut():
            return f"{name} was still at {call} after {format_span(timeout)}, and was ended"
        case Exited(code=code):
            return f"{name} was ended by signal {-code} in {call}"


def _text(value: Any) -> str:
    return on_one_line(value).strip() if isinstance(value, str) else ""


def _span(value: Any) -> timedelta | None:
    return timedelta(seconds=min(value, LONGEST_WAIT.total_seconds())) if _is_number(value) else None


def _seconds(value: Any) -> float | None:
    return float(min(value, LONGEST_IMPACT.total_seconds())) if _is_number(value) else None


def _share(value: Any) -> float | None:
    return float(min(value, 1)) if _is_number(value) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
