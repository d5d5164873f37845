"""A driver that is slow and answers as a test chooses."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from forewarn.control.driver import (
    Begun,
    CancelAnswer,
    Cancelled,
    Checked,
    Done,
    DriverLimits,
    DriverTask,
    Running,
    Unknown,
)
from forewarn.control.engine.driver_calls import CallAnswer, DriverCall, perform
from forewarn.core.basic_types import Work
from tests.helpers.service.harness import Service

SCRIPTED = "scripted"

# A result, or an exception to raise.
Script: TypeAlias = Any


class ScriptedDriver:
    """Answers by script and records its calls. Each verb repeats its last answer."""

    limits = DriverLimits(timeout=timedelta(minutes=1), at_once=4)

    def __init__(self) -> None:
        self.begins: list[Script] = [Running(None)]
        self.checks: list[Script] = [Done()]
        self.cancels: list[Script] = [Cancelled()]
        self.refusing: dict[str, str | Unknown] = {}  # hosts that refuse machines, with the reason
        self.refusing_live = ""  # why no machine can be moved live
        self.prechecked: list[tuple[str, Work, str]] = []  # machine, work, target
        self.asked: list[tuple[str, str, int]] = []  # verb, machine, attempt
        self.tasks: list[DriverTask] = []

    def begin(self, task: DriverTask) -> Begun:
        answer: Begun = self._answer("begin", self.begins, task)
        return answer

    def check(self, task: DriverTask) -> Checked:
        answer: Checked = self._answer("check", self.checks, task)
        return answer

    def cancel(self, task: DriverTask) -> CancelAnswer:
        answer: CancelAnswer = self._answer("cancel", self.cancels, task)
        return answer

    def precheck(self, task: DriverTask) -> str | Unknown | None:
        assert task.target is not None
        self.prechecked.append((task.name, task.work, task.target.name))
        if self.refusing_live and task.work is Work.FREEZE:
            return self.refusing_live
        return self.refusing.get(task.target.name)

    def _answer(self, verb: str, script: list[Script], task: DriverTask) -> Any:
        self.asked.append((verb, task.name, task.attempt))
        self.tasks.append(task)
        said = script.pop(0) if len(script) > 1 else script[0]
        if isinstance(said, Exception):
            raise said
        return said

    def made(self, call: DriverCall, *, now: datetime | None = None) -> CallAnswer:
        """Make a call, like a lane."""
        asked = replace(call, task=replace(call.task, now=now or call.task.now))
        return CallAnswer(call=call, answer=perform(self, asked))


def make_calls(service: Service, driver: ScriptedDriver, *, seconds: float = 0) -> None:
    """Advance real time, and make the calls that are due."""
    service.real += seconds
    now = service.real_now()
    due = [call for call in service.calls.waiting if call.at is None or call.at <= now]
    service.calls.waiting = [call for call in service.calls.waiting if call not in due]
    service.engine.take_answers([driver.made(call, now=now) for call in due])
    service.tick()
