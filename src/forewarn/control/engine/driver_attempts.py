"""Driver calls for running attempts: which have begun, and which call is next.

`begin` is called once per attempt. An attempt that ran before the server started may have begun, so its
driver is called with `check` first. Drivers without limits are called directly. Calls for all others run in
lanes, and their answers come later.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from forewarn.control.driver import (
    AttemptEndListener,
    Cancelled,
    Done,
    Driver,
    DriverTask,
    Failed,
    NotBegun,
    Running,
    TooLate,
    Unknown,
)
from forewarn.control.driver_outbox import RunningStep
from forewarn.control.engine.driver_calls import (
    CallAnswer,
    DriverCall,
    DriverCalls,
    HostRefused,
    Possible,
    Reached,
    Verb,
    perform,
)
from forewarn.core.basic_types import HostName, OrderId
from forewarn.core.model.host import Host
from forewarn.core.model.order import AttemptId

# When to call a driver again after `Unknown`, unless it names a time.
ASK_AGAIN = timedelta(seconds=10)
# How often to call a driver that relies on the events of its hypervisor: an event may be lost.
ASK_ANYWAY = timedelta(minutes=1)


@dataclass(slots=True)
class _Attempt:
    step: RunningStep | None = None  # None: it ran before the start, and is not loaded yet
    begun: bool = False  # `begin` was called, or may have been
    begin_open: bool = False  # `begin` was submitted and has not returned
    # The last `check`, if it was submitted after `begin` returned. Other answers may be older than `begin`.
    check: DriverCall | None = None
    called_off: bool = False  # `cancel` was called
    target: Host | None = None  # with its connection settings

    @property
    def given_up(self) -> bool:
        return self.step is not None and self.step.given_up


class DriverAttempts:
    """Calls the drivers of running attempts."""

    def __init__(
        self,
        drivers: Mapping[str, Driver],
        *,
        calls: DriverCalls,
        real_now: Callable[[], datetime],
        find_host: Callable[[HostName], Host | None],
    ) -> None:
        """Take a driver for every name that an order may have, and the lanes for calls of slow drivers."""
        self._drivers = drivers
        self._calls = calls
        self._real_now = real_now
        self._find_host = find_host
        self._attempts: dict[OrderId, dict[AttemptId, _Attempt]] = {}
        self._reconnected: dict[HostName, Host] = {}  # with connection settings newer than those in tasks

    # Running attempts

    def knows(self, attempt: AttemptId) -> bool:
        """Return whether an attempt is running, as far as is known."""
        return self._find(attempt) is not None

    def is_loaded(self, attempt: AttemptId) -> bool:
        """Return whether the step of an attempt is known."""
        known = self._find(attempt)
        return known is not None and known.step is not None

    def suppose_begun(self, attempts: Iterable[AttemptId]) -> None:
        """Add attempts that ran before the start, and may have begun."""
        for id_ in attempts:
            self._attempts.setdefault(id_.order, {})[id_] = _Attempt(begun=True)

    def _find(self, attempt: AttemptId) -> _Attempt | None:
        return self._attempts.get(attempt.order, {}).get(attempt)

    def take_over(
        self,
        running: Mapping[AttemptId, RunningStep],
        ended: Iterable[AttemptId] = (),
        hosts: Mapping[HostName, Host] = MappingProxyType({}),
    ) -> list[AttemptId]:
        """Take committed changes of steps; return the attempts whose drivers must be called now."""
        self._reconnected |= hosts
        wanted = []
        for id_, step in running.items():
            known = self._attempts.setdefault(id_.order, {}).setdefault(id_, _Attempt())
            known.step = step
            if not known.begun or (step.given_up and not known.called_off):
                wanted.append(id_)
        self._forget(ended)
        return list(filter(self.knows, wanted))

    def keep(self, running: Collection[AttemptId]) -> None:
        """Remove all other attempts."""
        self._forget([id_ for attempts in self._attempts.values() for id_ in attempts if id_ not in running])

    def _forget(self, ended: Iterable[AttemptId]) -> None:
        for id_ in ended:
            siblings = self._attempts.get(id_.order, {})
            attempt = siblings.pop(id_, None)
            if not siblings:
                self._attempts.pop(id_.order, None)
            if attempt is None:
                continue
            if attempt.begin_open:
                self._calls.withdraw(id_)  # `begin` may still wait in its lane
            if attempt.step is not None:
                driver = self._drivers[attempt.step.task.driver]
                if driver.limits is not None and isinstance(driver, AttemptEndListener):
                    driver.ended(attempt.step.task)

    def unloaded(self, orders: Iterable[OrderId]) -> list[OrderId]:
        """Return the orders, out of these, with attempts whose steps are not loaded."""
        return [order for order in orders if any(each.step is None for each in self._of(order).values())]

    def due(self, orders: Iterable[OrderId], now: datetime) -> list[AttemptId]:
        """Return the attempts of these orders whose drivers must be called by now."""
        return [
            id_
            for order in orders
            for id_, attempt in self._of(order).items()
            if attempt.step is not None and attempt.step.look_at is not None
            if attempt.step.look_at <= now
        ]

    def _of(self, order: OrderId) -> Mapping[AttemptId, _Attempt]:
        return self._attempts.get(order, {})

    # Calls

    def is_laned(self, driver: str) -> bool:
        """Return whether the calls of a driver run in lanes."""
        return self._drivers[driver].limits is not None

    def ask(self, attempts: Iterable[AttemptId], now: datetime) -> Sequence[CallAnswer]:
        """Make the next call for each of these attempts; return the answers that come immediately."""
        answers = []
        for id_ in attempts:
            attempt = self._attempts[id_.order][id_]
            if attempt.step is None:
                continue
            task = replace(attempt.step.task, now=now)
            verb = self._verb(attempt)
            if verb is None:
                cancelled = DriverCall(verb=Verb.CANCEL, task=task)
                answers.append(CallAnswer(call=cancelled, answer=Cancelled()))
            elif self.is_laned(task.driver):
                self._submit(attempt, verb, attempt.step.task)
            else:
                answers.append(self._call(attempt, verb, task))
        return answers

    def _verb(self, attempt: _Attempt) -> Verb | None:
        """Return the next call for an attempt. None: no call, it was given up before it began."""
        if not attempt.begun:
            return None if attempt.given_up else Verb.BEGIN
        return Verb.CANCEL if attempt.given_up and not attempt.called_off else Verb.CHECK

    def _call(self, attempt: _Attempt, verb: Verb, task: DriverTask) -> CallAnswer:
        _note_call(attempt, verb)
        call = DriverCall(verb=verb, task=task)
        answer = perform(self._drivers[task.driver], call)
        if isinstance(answer, NotBegun) and verb is Verb.CHECK:
            if not attempt.given_up:
                return self._call(attempt, Verb.BEGIN, task)
            answer = Cancelled()
        return CallAnswer(call=call, answer=answer)

    def _submit(self, attempt: _Attempt, verb: Verb, task: DriverTask, *, at: datetime | None = None) -> None:
        named = task.target
        if named is not None and (attempt.target is None or attempt.target.name != named.name):
            attempt.target = self._find_host(named.name) or named  # the task may have only its name
        _note_call(attempt, verb)
        target = None if named is None else self._reconnect(attempt.target)
        task = replace(task, source=self._reconnect(task.source), target=target)
        call = DriverCall(verb=verb, task=task, at=at)
        if verb is not Verb.CANCEL:
            attempt.begin_open = attempt.begin_open or verb is Verb.BEGIN
            attempt.check = None if attempt.begin_open else call
        self._calls.submit(call)

    def _reconnect(self, host: Host | None) -> Host | None:
        """Return a host with its newest connection settings, which may be newer than the step."""
        newest = host and self._reconnected.get(host.name)
        return replace(host, uri=newest.uri, at_once=newest.at_once) if host and newest else host

    # Answers

    def hear(self, answer: CallAnswer) -> CallAnswer | None:
        """Interpret an answer; None if it says nothing about the step.

        The same answer may come again if it could not be saved.
        """
        attempt, task = self._find(answer.call.task.id), answer.call.task
        if attempt is None:
            return None  # it has ended otherwise
        if answer.call.verb is Verb.BEGIN:
            attempt.begin_open = answer.hangs
        match answer.answer:
            case HostRefused():
                target = None if attempt.step is None else attempt.step.task.target
                if target is None or task.target is None or target.name != task.target.name:
                    return None  # another host was chosen since
                attempt.begun = False
            case NotBegun() if attempt.begin_open:
                return replace(answer, answer=Unknown("it was begun, and its driver has not answered yet"))
            case NotBegun():
                is_cancelled = attempt.given_up and answer.call is attempt.check
                return replace(answer, answer=Cancelled()) if is_cancelled else None  # `go_on` begins it
            case Unknown() if answer.call.verb is Verb.CANCEL:
                return None  # a failed `cancel` says nothing about the step
        return answer

    def go_on(self, answer: CallAnswer) -> None:
        """Submit the call that follows an answer from a lane, if the attempt is still running."""
        attempt = self._find(answer.call.task.id)
        if attempt is None or attempt.step is None:
            return
        task, soon = attempt.step.task, self._real_now() + ASK_AGAIN
        match answer.answer:
            case NotBegun() if answer.call is attempt.check and not attempt.given_up:
                self._submit(attempt, Verb.BEGIN, task)
            case Running(look_at=look_at):
                self._submit(attempt, Verb.CHECK, task, at=look_at or self._real_now() + ASK_ANYWAY)
            case Unknown(look_at=look_at):
                verb = Verb.CANCEL if answer.call.verb is Verb.CANCEL else Verb.CHECK
                self._submit(attempt, verb, task, at=look_at or soon)
            case TooLate():
                self._submit(attempt, Verb.CHECK, task)  # after a start, no `check` may have been submitted
            case HostRefused() if attempt.begun:
                pass  # `begin` was submitted for another host
            case NotBegun() | Done() | Failed() | Cancelled() | HostRefused() | Possible() | Reached():
                # NotBegun is outdated, or the answer was not saved.
                self._submit(attempt, Verb.CHECK, task, at=soon)


def _note_call(attempt: _Attempt, verb: Verb) -> None:
    attempt.begun = attempt.begun or verb is Verb.BEGIN
    attempt.called_off = attempt.called_off or verb is Verb.CANCEL
