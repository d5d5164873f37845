"""What drivers have been asked to do: which attempts were begun, and what each is asked next.

An attempt is begun once. What was saved as running before the server started may have been begun by the one
before it, so it is checked first; all else was begun by this one, or by nobody yet. A driver that answers
at once is called here; the calls of all others are handed over, and their answers come later.
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
    Possible,
    Reached,
    Refused,
    Verb,
    perform,
)
from forewarn.core.basic_types import HostName, OrderId
from forewarn.core.model.host import Host
from forewarn.core.model.order import AttemptId

# When a driver that could not tell is asked again, if it does not say.
ASK_AGAIN = timedelta(seconds=10)
# A driver that counts on news of its hypervisor is asked now and then all the same.
ASK_ANYWAY = timedelta(minutes=1)


@dataclass(slots=True)
class _Attempt:
    """What is known of an attempt that runs."""

    step: RunningStep | None = None  # None: it was begun before the start, and is not loaded yet
    begun: bool = False  # `begin` was called, or may have been
    begin_open: bool = False  # it was handed over, and has not returned
    # The last one, if it was handed over after `begin` had returned: what others say of that may be older.
    check: DriverCall | None = None
    called_off: bool = False  # `cancel` was called
    target: Host | None = None  # with its connection

    @property
    def given_up(self) -> bool:
        """Whether its order is being abandoned."""
        return self.step is not None and self.step.given_up


class DriverAttempts:
    """Asks drivers, each attempt what is its turn."""

    def __init__(
        self,
        drivers: Mapping[str, Driver],
        *,
        calls: DriverCalls,
        real_now: Callable[[], datetime],
        find_host: Callable[[HostName], Host | None],
    ) -> None:
        """Take who makes the calls that take their time; for every name there is a driver, of some kind."""
        self._drivers = drivers
        self._calls = calls
        self._real_now = real_now
        self._find_host = find_host
        self._attempts: dict[OrderId, dict[AttemptId, _Attempt]] = {}
        self._reached_anew: dict[HostName, Host] = {}  # otherwise than tasks say that are older

    # What runs

    def knows(self, attempt: AttemptId) -> bool:
        """Return whether an attempt runs, for all that is known."""
        return self._find(attempt) is not None

    def is_loaded(self, attempt: AttemptId) -> bool:
        """Return whether more than its name is known of an attempt."""
        known = self._find(attempt)
        return known is not None and known.step is not None

    def suppose_begun(self, attempts: Iterable[AttemptId]) -> None:
        """Take over what ran before the start: it may have been begun."""
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
        """Take over what was saved of steps; return the attempts whose drivers are to be asked now."""
        self._reached_anew |= hosts
        wanted = []
        for id_, step in running.items():
            known = self._attempts.setdefault(id_.order, {}).setdefault(id_, _Attempt())
            known.step = step
            if not known.begun or (step.given_up and not known.called_off):
                wanted.append(id_)
        self._forget(ended)
        return list(filter(self.knows, wanted))

    def keep(self, running: Collection[AttemptId]) -> None:
        """Forget all attempts but those that run."""
        self._forget([id_ for mine in self._attempts.values() for id_ in mine if id_ not in running])

    def _forget(self, ended: Iterable[AttemptId]) -> None:
        for id_ in ended:
            mine = self._attempts.get(id_.order, {})
            attempt = mine.pop(id_, None)
            if attempt is not None and attempt.begin_open:
                self._calls.withdraw(id_)  # it may still wait for its host
            if attempt is not None and attempt.step is not None:
                self._take_leave(attempt.step.task)
            if not mine:
                self._attempts.pop(id_.order, None)

    def _take_leave(self, task: DriverTask) -> None:
        """Tell a driver that an attempt runs no more, if it wants to know."""
        driver = self._drivers[task.driver]
        if driver.limits is not None and isinstance(driver, AttemptEndListener):
            driver.ended(task)

    def unloaded(self, orders: Iterable[OrderId]) -> list[OrderId]:
        """Return which of these orders have attempts that nothing but their names is known of."""
        return [order for order in orders if any(each.step is None for each in self._of(order).values())]

    def due(self, orders: Iterable[OrderId], now: datetime) -> list[AttemptId]:
        """Return the attempts of these orders whose drivers are to be asked by now."""
        return [
            id_
            for order in orders
            for id_, attempt in self._of(order).items()
            if attempt.step is not None and attempt.step.look_at is not None
            if attempt.step.look_at <= now
        ]

    def _of(self, order: OrderId) -> Mapping[AttemptId, _Attempt]:
        return self._attempts.get(order, {})

    # Asking

    def is_laned(self, driver: str) -> bool:
        """Return whether a driver takes its time."""
        return self._drivers[driver].limits is not None

    def ask(self, attempts: Iterable[AttemptId], now: datetime) -> Sequence[CallAnswer]:
        """Ask the drivers of these attempts what is their turn; return what was answered at once."""
        answers = []
        for id_ in attempts:
            attempt = self._attempts[id_.order][id_]
            if attempt.step is None:
                continue
            task = replace(attempt.step.task, now=now)
            verb = self._verb(attempt)
            if verb is None:
                called_off = DriverCall(verb=Verb.CANCEL, task=task)
                answers.append(CallAnswer(call=called_off, answer=Cancelled()))
            elif self.is_laned(task.driver):
                self._hand_over(attempt, verb, attempt.step.task)
            else:
                answers.append(self._ask_at_once(attempt, verb, task))
        return answers

    def _verb(self, attempt: _Attempt) -> Verb | None:
        """Return what an attempt's driver is asked; None: nothing, it was called off before it began."""
        if not attempt.begun:
            return None if attempt.given_up else Verb.BEGIN
        return Verb.CANCEL if attempt.given_up and not attempt.called_off else Verb.CHECK

    def _ask_at_once(self, attempt: _Attempt, verb: Verb, task: DriverTask) -> CallAnswer:
        _note_asked(attempt, verb)
        call = DriverCall(verb=verb, task=task)
        answer = perform(self._drivers[task.driver], call)
        if isinstance(answer, NotBegun) and verb is Verb.CHECK:
            if attempt.given_up:
                return CallAnswer(call=call, answer=Cancelled())
            return self._ask_at_once(attempt, Verb.BEGIN, task)
        return CallAnswer(call=call, answer=answer)

    def _hand_over(
        self, attempt: _Attempt, verb: Verb, task: DriverTask, *, at: datetime | None = None
    ) -> None:
        named = task.target
        if named is not None and (attempt.target is None or attempt.target.name != named.name):
            attempt.target = self._find_host(named.name) or named  # it may only be named yet
        _note_asked(attempt, verb)
        target = None if named is None else self._as_reached(attempt.target)
        asked = replace(task, source=self._as_reached(task.source), target=target)
        call = DriverCall(verb=verb, task=asked, at=at)
        if verb is not Verb.CANCEL:
            attempt.begin_open = attempt.begin_open or verb is Verb.BEGIN
            attempt.check = None if attempt.begin_open else call
        self._calls.submit(call)

    def _as_reached(self, host: Host | None) -> Host | None:
        """Return a host as its driver reaches it now: it may have been declared anew since the step began."""
        anew = None if host is None else self._reached_anew.get(host.name)
        return host if host is None or anew is None else replace(host, uri=anew.uri, at_once=anew.at_once)

    # Answers

    def hear(self, answer: CallAnswer) -> CallAnswer | None:
        """Take an answer; return it as it is to be believed, or None if it says nothing of the step.

        One that could not be saved may come again.
        """
        attempt = self._find(answer.call.task.id)
        if attempt is None:
            return None  # it has ended otherwise
        if answer.call.verb is Verb.BEGIN:
            attempt.begin_open = answer.hangs
        match answer.answer:
            case Refused() if not _is_bound_for(attempt, answer.call.task.target):
                return None  # another host has been chosen since
            case Refused():
                attempt.begun = False
            case NotBegun():
                return _not_begun(attempt, answer)
            case Unknown() if answer.call.verb is Verb.CANCEL:
                return None  # that it cannot be called off now says nothing of how it is doing
        return answer

    def go_on(self, answer: CallAnswer) -> None:
        """Have a driver that takes its time asked what comes after its answer, if the attempt still runs."""
        attempt = self._find(answer.call.task.id)
        if attempt is None or attempt.step is None:
            return
        task, soon = attempt.step.task, self._real_now() + ASK_AGAIN
        match answer.answer:
            case NotBegun() if answer.call is attempt.check and not attempt.given_up:
                self._hand_over(attempt, Verb.BEGIN, task)
            case Running(look_at=look_at):
                anyway = self._real_now() + ASK_ANYWAY
                self._hand_over(attempt, Verb.CHECK, task, at=look_at or anyway)
            case Unknown(look_at=look_at):
                verb = Verb.CANCEL if answer.call.verb is Verb.CANCEL else Verb.CHECK
                self._hand_over(attempt, verb, task, at=look_at or soon)
            case TooLate():
                self._hand_over(attempt, Verb.CHECK, task)  # since the start it may have been nobody's turn
            case Refused() if attempt.begun:
                pass  # on another host
            case NotBegun() | Done() | Failed() | Cancelled() | Refused() | Possible() | Reached():
                # That it has not begun was said of an earlier moment, or what was said was not saved.
                self._hand_over(attempt, Verb.CHECK, task, at=soon)


def _not_begun(attempt: _Attempt, answer: CallAnswer) -> CallAnswer | None:
    """Return what it says of a step that its driver has not begun it, if it says anything."""
    if attempt.begin_open:
        return replace(answer, answer=Unknown("it was begun, and its driver has not answered yet"))
    is_called_off = attempt.given_up and answer.call is attempt.check
    return replace(answer, answer=Cancelled()) if is_called_off else None  # else it is begun


def _is_bound_for(attempt: _Attempt, target: Host | None) -> bool:
    bound_for = None if attempt.step is None else attempt.step.task.target
    return bound_for is not None and target is not None and bound_for.name == target.name


def _note_asked(attempt: _Attempt, verb: Verb) -> None:
    attempt.begun = attempt.begun or verb is Verb.BEGIN
    attempt.called_off = attempt.called_off or verb is Verb.CANCEL
