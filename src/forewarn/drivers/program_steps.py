"""The protocol between forewarn and the commands and hooks that carry out steps.

A program reads the task as JSON on stdin. Environment variables name the step, for shell scripts. The program
may print its answer as a JSON object on stdout.
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
from forewarn.core.text_formats import on_one_line
from forewarn.core.time_formats import format_span
from forewarn.programs.program import Exited, NotRun, Outcome, TimedOut, Unwatched
from forewarn.wire.fields import as_json as as_plain
from forewarn.wire.texts import write_time

BEGIN, CHECK, CANCEL = "begin", "check", "cancel"
LONGEST_WHY = 500
LONGEST_MARK = 1000
LONGEST_HOST = 64
# The next check of a running program that gives no time for it.
ASK_AGAIN = timedelta(seconds=10)
# A program that asks for a check in more than a day has probably mistaken the unit.
LONGEST_WAIT = timedelta(days=1)
# A step does not interrupt a machine for longer.
LONGEST_IMPACT = timedelta(days=30)


def as_json(task: DriverTask, *, call: str, more: Mapping[str, Any] = MappingProxyType({})) -> bytes:
    """Write a call and its task as JSON, with additional keys."""
    document = {
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
    return json.dumps(document).encode() + b"\n"


def as_variables(task: DriverTask, *, call: str) -> dict[str, str]:
    """Return the environment variables that name a call and its step."""
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
    return {
        "name": machine.name,
        "id": machine.id,
        "vm_id": machine.id,
        "project": machine.project,
        "group": None if machine.group.startswith(STANDALONE) else machine.group,
        "host": machine.host,
        "state": machine.state,
        **{name: as_plain(getattr(machine, name)) for name in TRAITS},
    }


def _host(host: Host | None) -> dict[str, Any] | None:
    return None if host is None else {"name": host.name, "uri": host.uri}


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else write_time(moment)


StepState: TypeAlias = Literal["done", "running", "failed", "unknown", "not-begun", "cancelled", "too-late"]
StepAnswer: TypeAlias = Done | Running | Failed | Unknown | NotBegun | Cancelled | TooLate


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramAnswer:
    """The answer of a program; every key is optional."""

    state: StepState | None = None
    why: str = ""
    look_in: timedelta | None = None
    mark: str = ""
    progress: float | None = None
    host: HostName | None = None
    impact: float | None = None  # in seconds

    def as_state(self, state: StepState, *, now: datetime) -> StepAnswer:
        """Convert to a driver's answer with a state, from the answer or from the exit code."""
        look_at = None if self.look_in is None else now + self.look_in
        match state:
            case "done":
                return Done(self.host, self.impact)
            case "running":
                return Running(look_at or now + ASK_AGAIN, mark=self.mark, progress=self.progress)
            case "failed":
                return Failed(self.why or "the program gave no reason")
            case "unknown":
                return Unknown(self.why or "the program cannot tell", look_at)
            case "not-begun":
                return NotBegun()
            case "cancelled":
                return Cancelled()
            case "too-late":
                return TooLate()


def read_answer(output: bytes) -> ProgramAnswer | None:
    """Parse the output of a program; return None if it is no answer."""
    try:
        answer = json.loads(output)
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, dict) or answer.get("state") not in (None, *get_args(StepState)):
        return None
    look_in = _number(answer.get("look_in"), LONGEST_WAIT.total_seconds())
    return ProgramAnswer(
        state=cast("StepState | None", answer.get("state")),
        why=_text(answer.get("why"))[:LONGEST_WHY],
        look_in=None if look_in is None else timedelta(seconds=look_in),
        mark=_text(answer.get("mark"))[:LONGEST_MARK],
        progress=_number(answer.get("progress"), 1),
        host=HostName(_text(answer.get("host"))[:LONGEST_HOST]) or None,
        impact=_number(answer.get("impact"), LONGEST_IMPACT.total_seconds()),
    )


def no_answer(outcome: Outcome, name: str, call: str, *, timeout: timedelta) -> str:
    """Return why a program gave no answer: it did not run, or did not exit by itself."""
    match outcome:
        case NotRun(why=why) | Unwatched(why=why):
            return why
        case TimedOut():
            return f"{name} did not finish {call} within {format_span(timeout)} and was stopped"
        case Exited(code=code):
            return f"{name} was killed by signal {-code} in {call}"


def _text(value: Any) -> str:
    return on_one_line(value).strip() if isinstance(value, str) else ""


def _number(value: Any, most: float) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return float(min(value, most)) if is_number else None
