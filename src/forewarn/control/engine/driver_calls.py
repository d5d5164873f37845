"""Driver calls: what forewarn asks, what the driver answers, and the interface to the lanes.

A precheck asks about a move before its announcement. If the server stops before the answer, the order falls
due and asks again.
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
    NotBegun,
    Prechecking,
    Reaching,
    Running,
    TooLate,
    TrustedText,
    Unknown,
)
from forewarn.core.basic_types import HOOK, HostName, Work
from forewarn.core.disclosure import mark_driver_text
from forewarn.core.errors import Unavailable
from forewarn.core.model.host import Host
from forewarn.core.model.order import AttemptId
from forewarn.core.redaction import driver_named
from forewarn.core.rollouts.evacuation import MoveAnswer
from forewarn.durations import Distribution

log = logging.getLogger(__name__)


class Verb(StrEnum):
    """The operation of a driver call."""

    BEGIN = "begin"
    CHECK = "check"
    CANCEL = "cancel"
    PRECHECK = "precheck"  # whether a move is possible, before its announcement
    REACH = "reach"  # a connection test of a host, without an attempt


@dataclass(frozen=True, slots=True)
class HostRefused:
    """The driver refused the chosen host before the step began; nothing was begun."""

    why: str
    unreached: bool = False  # because the host is unreachable now


@dataclass(frozen=True, slots=True)
class Possible:
    """The machine can move to the chosen host, as far as the driver knows."""


@dataclass(frozen=True, slots=True)
class Reached:
    """The result of a connection test."""

    why: str | None  # why the host is unreachable; None: it is reachable


Answer: TypeAlias = (
    Done | Running | Failed | NotBegun | Unknown | Cancelled | TooLate | HostRefused | Possible | Reached
)


def label_of(answer: Answer) -> str:
    """Return the name of an answer in metrics and commands."""
    return "refused" if isinstance(answer, HostRefused) else type(answer).__name__.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverCall:
    """One call of a driver about one attempt of a step."""

    verb: Verb
    task: DriverTask
    at: datetime | None = None  # the earliest real time; None: immediately

    @property
    def is_planned(self) -> bool:
        """Whether the call is about a move that is only planned, without an order."""
        return self.verb is Verb.PRECHECK and self.task.attempt == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswer:
    """The answer to a call."""

    call: DriverCall
    answer: Answer
    hangs: bool = False  # it timed out and has not returned; its result comes as another answer


class DriverCalls(Protocol):
    """The lanes: calls of slow drivers run there, per host, and are answered later.

    The answers come back through `Engine.take_answers`. Each call gets the real time as `now` of its task.
    The calls of a host start in the order of submission, or at their own time.
    """

    def submit(self, call: DriverCall) -> None:
        """Submit a call. Never blocks."""
        ...

    def withdraw(self, attempt: AttemptId) -> None:
        """Withdraw the `begin` of an attempt that has ended, unless it has started."""
        ...


def perform(driver: Driver, call: DriverCall) -> Answer:
    """Make a call. An exception becomes `Unknown`, because it says nothing about the step.

    The texts in the answer are marked as written by the driver, so that tenants do not see them.
    """
    task = call.task
    try:
        answer = _asked(driver, call)
    except Unavailable as error:  # for example because the driver's separate process died
        answer = Unknown(str(error))
    except Exception as error:  # one faulty driver must not stop the others
        log.exception("driver %s broke in %s of %s", task.driver, call.verb, task.name)
        return Unknown(f"{driver_named(task.driver)} broke: {error}")
    if isinstance(answer, Done):
        return replace(answer, note=mark_driver_text(answer.note, HOOK)) if answer.note else answer
    # The type of the answer first: a check of the protocol takes forty times as long.
    if not isinstance(answer, Failed | Unknown | HostRefused) or isinstance(driver, TrustedText):
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
    """Test the connection to a host. An exception means that it is unreachable.

    If the driver's separate process dies, that says nothing: another host may have crashed it.
    """
    if task.source is None or not isinstance(driver, Reaching):
        return Reached(None)
    try:
        return Reached(driver.reach(task.source))
    except Unavailable:
        raise
    except Exception as error:
        log.exception("driver %s broke in reaching %s", task.driver, task.source.name)
        return Reached(f"{driver_named(task.driver)} broke: {error}")


def _refusal(driver: Driver, task: DriverTask) -> HostRefused | Unknown | None:
    """Precheck the target host again, immediately before the step begins.

    If the target does not answer, another host is chosen. A live move waits instead: it must not become a
    redeploy because a hypervisor is briefly unavailable.
    """
    answer = _prechecked(driver, task)
    if isinstance(answer, Unknown) and task.target is not None and answer.host == task.target.name:
        return HostRefused(answer.why, unreached=True)
    if isinstance(answer, Unknown) and task.work is not Work.FREEZE:
        return HostRefused(answer.why)
    return answer


def _prechecked(driver: Driver, task: DriverTask) -> HostRefused | Unknown | None:
    """Ask the driver whether a machine can move to its target. None: it can, or the driver cannot tell."""
    if task.target is None or task.machine is None or not isinstance(driver, Prechecking):
        return None
    why = driver.precheck(task)
    return HostRefused(why) if isinstance(why, str) else why


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverCallCounts:
    """Counters of the calls in lanes since the start."""

    answered: Mapping[tuple[str, ...], int] = field(default_factory=dict)  # by driver, verb and answer
    durations: Mapping[tuple[str, ...], Distribution] = field(default_factory=dict)  # by driver and verb
    running: Mapping[str, int] = field(default_factory=dict)  # by driver
    hung: Mapping[str, int] = field(default_factory=dict)  # by driver
    crashes: Mapping[str, int] = field(default_factory=dict)  # of separate driver processes, by driver


class Prechecks:
    """Asks drivers about moves, and tracks which calls are open."""

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
        """Ask drivers about these moves; return the answers that come immediately."""
        answers = []
        for task in tasks:
            if (named := task.target) is None or _move(task) in self._open:
                continue
            # Tasks often have only the name of a possible target.
            target = self._find_host(named.name) or named
            call = precheck_call(replace(task, target=target, now=now))
            driver = self._drivers[task.driver]
            if driver.limits is None:
                answers.append(CallAnswer(call=call, answer=perform(driver, call)))
                continue
            self._open.add(_move(task))
            self._calls.submit(call)
        return answers

    def hear(self, answer: CallAnswer) -> CallAnswer:
        """Take an answer. A call that hangs stays open, because another answer follows."""
        if not answer.hangs:
            self._open.discard(_move(answer.call.task))
        return answer


def precheck_call(task: DriverTask) -> DriverCall:
    """Return the call that asks whether a step could be done."""
    return DriverCall(verb=Verb.PRECHECK, task=task)


def move_answer(answer: CallAnswer) -> MoveAnswer:
    """Return a driver's answer about a move."""
    match answer.answer:
        case HostRefused(why=why):
            return MoveAnswer(refused=why)
        case Unknown(why=why):
            return MoveAnswer(unknown=why)
        case _:
            return MoveAnswer()


def _move(task: DriverTask) -> tuple[object, ...]:
    return *task.id, task.work, task.target and task.target.name
