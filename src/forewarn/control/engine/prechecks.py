"""Drivers are asked whether moves can be made that are to be announced.

A call that is lost with the server is not forgotten: its order falls due, and asks again.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from forewarn.control.driver import Driver, DriverTask, Unknown
from forewarn.control.engine.driver_calls import DriverAnswer, DriverCall, DriverCalls, Refused, Verb, perform
from forewarn.core.copies import replace
from forewarn.core.model.host import Host
from forewarn.core.rollouts.emptying import MoveAnswer
from forewarn.core.words import HostName


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

    def ask(self, tasks: Iterable[DriverTask], now: datetime) -> list[DriverAnswer]:
        """Have drivers asked about these moves; return what was answered at once."""
        answers = []
        for task in tasks:
            if (named := task.target) is None or _move(task) in self._open:
                continue
            # A host that a machine may go to is often only named.
            asked = replace(task, target=self._find_host(named.name) or named, now=now)
            call = call_for(asked)
            driver = self._drivers[task.driver]
            if driver.limits is None:
                answers.append(DriverAnswer(call=call, answer=perform(driver, call)))
                continue
            self._open.add(_move(task))
            self._calls.submit(call)
        return answers

    def hear(self, answer: DriverAnswer) -> DriverAnswer:
        """Take note of an answer; of a call that hangs another one comes in the end."""
        if not answer.hangs:
            self._open.discard(_move(answer.call.task))
        return answer


def call_for(task: DriverTask) -> DriverCall:
    """Return the call that asks whether a step could be done."""
    return DriverCall(verb=Verb.PRECHECK, task=task)


def read(answer: DriverAnswer) -> MoveAnswer:
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
