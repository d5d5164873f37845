"""Calls of drivers: what is asked, how it is answered, and the port for calls that take their time.

Drivers are asked about moves before these are announced. Such a call that is lost with the server is not
forgotten: its order falls due, and asks again.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Protocol, TypeAlias

from forewarn.control.driver import (
    Cancelled,
    Done,
    Driver,
    DriverTask,
    Failed,
    InOwnWords,
    NotBegun,
    Prechecking,
    Reaching,
    Running,
    TooLate,
    Unknown,
)
from forewarn.core.basic_types import HOOK, HostName, Work
from forewarn.core.disclosure import mark_driver_text
from forewarn.core.errors import Unavailable
from forewarn.core.model.host import Host
from forewarn.core.model.order import AttemptId
from forewarn.core.redaction import driver_named
from forewarn.core.rollouts.emptying import MoveAnswer
from forewarn.durations import Distribution

log = logging.getLogger(__name__)


class Verb(StrEnum):
    """What a driver is asked to do."""

    BEGIN = "begin"
    CHECK = "check"
    CANCEL = "cancel"
    PRECHECK = "precheck"  # whether a step could be done, before it is announced
    REACH = "reach"  # a host, whatever is done there; about no attempt


@dataclass(frozen=True, slots=True)
class Refused:
    """The machine cannot go to the chosen host, as the driver found out beforehand; nothing was begun."""

    why: str
    unreached: bool = False  # for the host cannot be reached now: another time the machine could


@dataclass(frozen=True, slots=True)
class Possible:
    """The machine can go to the chosen host, for all that the driver knows."""


@dataclass(frozen=True, slots=True)
class Reached:
    """The driver has tried to reach a host."""

    why: str | None  # why it cannot; None: it can


Answer: TypeAlias = (
    Done | Running | Failed | NotBegun | Unknown | Cancelled | TooLate | Refused | Possible | Reached
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverCall:
    """One call of a driver, about one attempt of a step."""

    verb: Verb
    task: DriverTask
    at: datetime | None = None  # not before then, in real time; None: at once

    @property
    def is_planned(self) -> bool:
        """Whether it is about a move that is only planned, and of no order."""
        return self.verb is Verb.PRECHECK and self.task.attempt == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswer:
    """What came of a call."""

    call: DriverCall
    answer: Answer
    # Whether the call was given up and has not returned: what it says in the end comes as another answer.
    hangs: bool = False


class DriverCalls(Protocol):
    """Calls of drivers that take their time: each is made in its host's lane, and answered later.

    The answers come back through `Engine.take_answers`. Calls are made with the real time as the task's
    `now`; those of one host begin in the order in which they were handed over, or at the time they have.
    """

    def submit(self, call: DriverCall) -> None:
        """Hand a call over; never waits."""
        ...

    def withdraw(self, attempt: AttemptId) -> None:
        """Take back the `begin` of an attempt that runs no more, if it has not been made."""
        ...


def perform(driver: Driver, call: DriverCall) -> Answer:
    """Make a call; what the driver raises says nothing of what has become of the step.

    The texts of its answer are marked as its own, for tenants do not read them.
    """
    task = call.task
    try:
        answer = _asked(driver, call)
    except Unavailable as error:  # as when the driver's own process has died
        answer = Unknown(str(error))
    except Exception as error:  # a driver's fault must not stop the others
        log.exception("driver %s broke in %s of %s", task.driver, call.verb, task.name)
        return Unknown(f"{driver_named(task.driver)} broke: {error}")
    if isinstance(answer, Done):
        return replace(answer, note=mark_driver_text(answer.note, HOOK)) if answer.note else answer
    # The answer first: to ask what a driver can do takes forty times as long.
    if not isinstance(answer, Failed | Unknown | Refused) or isinstance(driver, InOwnWords):
        return answer
    return replace(answer, why=mark_driver_text(answer.why, task.driver))


def _asked(driver: Driver, call: DriverCall) -> Answer:
    match call.verb:
        case Verb.BEGIN:
            return _refusal(driver, call.task) or driver.begin(call.task)
        case Verb.CHECK:
            return driver.check(call.task)
        case Verb.CANCEL:
            return driver.cancel(call.task)
        case Verb.PRECHECK:
            return _prechecked(driver, call.task) or Possible()
        case Verb.REACH:
            return _reached(driver, call.task)


def _reached(driver: Driver, task: DriverTask) -> Reached:
    """Have a driver try to reach a host; one that breaks in it does not.

    If the driver's own process dies meanwhile, that says nothing: another host may have crashed it.
    """
    if task.source is None or not isinstance(driver, Reaching):
        return Reached(None)
    try:
        return Reached(driver.reach(task.source))
    except Unavailable:
        raise
    except Exception as error:  # as of any other call
        log.exception("driver %s broke in reaching %s", task.driver, task.source.name)
        return Reached(f"{driver_named(task.driver)} broke: {error}")


def _refusal(driver: Driver, task: DriverTask) -> Refused | Unknown | None:
    """Have a driver look once more at the host that a machine is to go to, right before the step begins.

    Another host is chosen for one that does not answer. A live move waits for it: it must not become a
    redeploy because a hypervisor is away for a moment.
    """
    answer = _prechecked(driver, task)
    if isinstance(answer, Unknown) and task.target is not None and answer.host == task.target.name:
        return Refused(answer.why, unreached=True)
    if isinstance(answer, Unknown) and task.work is not Work.FREEZE:
        return Refused(answer.why)
    return answer


def _prechecked(driver: Driver, task: DriverTask) -> Refused | Unknown | None:
    """Ask a driver that can tell beforehand whether a machine can go to a host; None: it can."""
    if task.target is None or task.machine is None or not isinstance(driver, Prechecking):
        return None
    why = driver.precheck(task)
    return Refused(why) if isinstance(why, str) else why


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverCallCounts:
    """The calls made in lanes since the start, and those that are being made."""

    answered: Mapping[tuple[str, ...], int] = field(default_factory=dict)  # by driver, verb and answer
    durations: Mapping[tuple[str, ...], Distribution] = field(default_factory=dict)  # by driver and verb
    running: Mapping[str, int] = field(default_factory=dict)  # by driver
    hung: Mapping[str, int] = field(default_factory=dict)  # by driver
    crashes: Mapping[str, int] = field(default_factory=dict)  # of drivers' own processes, by driver


class Prechecks:
    """Asks drivers about moves, and knows of which no answer has come."""

    def __init__(
        self,
        drivers: Mapping[str, Driver],
        *,
        calls: DriverCalls,
        find_host: Callable[[HostName], Host | None],
    ) -> None:
        self._drivers = drivers
        self._calls = calls
        self._find_host = find_host
        self._open: set[tuple[object, ...]] = set()

    def ask(self, tasks: Iterable[DriverTask], now: datetime) -> list[CallAnswer]:
        """Have drivers asked about these moves; return what was answered at once."""
        answers = []
        for task in tasks:
            if (named := task.target) is None or _move(task) in self._open:
                continue
            # A host that a machine may go to is often only named.
            asked = replace(task, target=self._find_host(named.name) or named, now=now)
            call = precheck_call(asked)
            driver = self._drivers[task.driver]
            if driver.limits is None:
                answers.append(CallAnswer(call=call, answer=perform(driver, call)))
                continue
            self._open.add(_move(task))
            self._calls.submit(call)
        return answers

    def hear(self, answer: CallAnswer) -> CallAnswer:
        """Take note of an answer; of a call that hangs another one comes in the end."""
        if not answer.hangs:
            self._open.discard(_move(answer.call.task))
        return answer


def precheck_call(task: DriverTask) -> DriverCall:
    """Return the call that asks whether a step could be done."""
    return DriverCall(verb=Verb.PRECHECK, task=task)


def move_answer(answer: CallAnswer) -> MoveAnswer:
    """Return what a driver says of a move."""
    match answer.answer:
        case Refused(why=why):
            return MoveAnswer(refused=why)
        case Unknown(why=why):
            return MoveAnswer(unknown=why)
        case _:
            return MoveAnswer()


def _move(task: DriverTask) -> tuple[object, ...]:
    return *task.id, task.work, task.target and task.target.name
