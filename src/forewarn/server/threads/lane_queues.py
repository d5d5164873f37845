"""Which driver call is made next, and what is told of those that do not return: lanes without threads.

A lane is what one driver does at one host. It has a limit of its own, and a host that hangs holds up nobody
else: its calls are given up after their time-out, and once too many of them have not returned, the lane waits
for one that does. All moments are monotonic seconds, given by the caller.
"""

import heapq
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

from forewarn.control.driver import Cancelled, Done, DriverLimits, DriverTask, Failed, NotBegun, Unknown
from forewarn.control.engine.driver_calls import Answer, CallAnswer, DriverCall, Verb
from forewarn.core.basic_types import MachineId, OrderId
from forewarn.core.model.order import AttemptId
from forewarn.core.time_formats import format_span
from forewarn.core.redaction import driver_named
from forewarn.core.text_formats import counted
from forewarn.server.threads.fair_queue import FairQueue

log = logging.getLogger(__name__)

# For a host to answer that it is reached, in seconds; one that takes longer counts as out of reach.
REACH_WITHIN = 5.0
# A driver that wants to be asked again at once would keep its host from everything else.
SHORTEST_WAIT = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneBounds:
    """How many calls are made together, and how many may hang."""

    calls: int = 32  # in all lanes, beside those that hang
    hung: int = 32  # in all lanes; each further one takes the place of a call
    hung_in_lane: int = 2  # then the lane waits until one of them returns


DEFAULT_BOUNDS = LaneBounds()


# The driver, the host, and whether the calls ask if the host is reached: these wait for no step.
LaneKey: TypeAlias = tuple[str, str, bool]
# Whose calls wait for one another, and are woken together.
Subject: TypeAlias = MachineId | tuple[OrderId, str]


@dataclass(eq=False, slots=True)
class PlacedCall:
    """A call on its way: it waits for its time or in its lane, is being made, hangs, or has returned."""

    call: DriverCall
    number: int
    due: float  # not before then
    began_at: float | None = None
    told: bool = False  # whether it was said why it waits
    hangs: bool = False
    outdated: bool = False  # whether the attempt's `begin` returned while it was being made
    is_over: bool = False

    @property
    def attempt(self) -> AttemptId:
        """The attempt that it is about."""
        return self.call.task.id

    @property
    def subject(self) -> Subject:
        """The machine that it is about, or the order and what it does to its host."""
        task = self.call.task
        return task.machine.id if task.machine is not None else (task.order, task.subject)

    @property
    def lane(self) -> LaneKey:
        """The lane that it is made in; what is on no host shares one."""
        task = self.call.task
        host = "" if task.host is None else task.host.name
        return task.driver, host, self.call.verb is Verb.REACH

    @property
    def is_begin(self) -> bool:
        """Whether it begins its attempt."""
        return self.call.verb is Verb.BEGIN


class _CallTimers:
    """Calls that wait for their time."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, PlacedCall]] = []
        self.by_subject: defaultdict[Subject, dict[tuple[AttemptId, Verb], PlacedCall]] = defaultdict(dict)

    def add(self, placed: PlacedCall) -> None:
        """Let a call wait; one that asks the same and waits already is not made."""
        self.by_subject[placed.subject][placed.attempt, placed.call.verb] = placed
        heapq.heappush(self._heap, (placed.due, placed.number, placed))

    def first(self) -> float | None:
        """Return when the first of them is due."""
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> Iterator[PlacedCall]:
        """Take those whose time has come."""
        while self._heap and self._heap[0][0] <= now:
            placed = heapq.heappop(self._heap)[2]
            mine = self.by_subject.get(placed.subject, {})
            if mine.get((placed.attempt, placed.call.verb)) is placed:
                del mine[placed.attempt, placed.call.verb]
                if not mine:
                    del self.by_subject[placed.subject]
                yield placed

    def take(self, subject: Subject) -> list[PlacedCall]:
        """Take those of a machine, whether or not their time has come."""
        return list(self.by_subject.pop(subject, {}).values())


@dataclass(eq=False, slots=True)
class _Lane:
    key: LaneKey
    limits: DriverLimits
    running: int = 0
    hung: int = 0


class LaneQueues:
    """All lanes, and what waits for them. It has no lock: that of `Lanes` guards it."""

    def __init__(
        self, limits: Callable[[DriverTask], DriverLimits], *, bounds: LaneBounds = DEFAULT_BOUNDS
    ) -> None:
        """Take what says how long a call of a task may take, and how many of its lane are made together."""
        self._limits = limits
        self._bounds = bounds
        self._numbers = count()
        self.lanes: dict[LaneKey, _Lane] = {}
        self.waiting: FairQueue[LaneKey, PlacedCall] = FairQueue()
        self.later = _CallTimers()
        self._timeouts: list[tuple[float, int, PlacedCall]] = []
        self._made: set[PlacedCall] = set()  # being made, or hanging
        self._begins: set[AttemptId] = set()  # that wait, are being made, or hang
        self._newest: dict[AttemptId, int] = {}  # the last check or cancel, as long as it has not returned
        self._present: Counter[Subject] = Counter()  # calls of machines in lanes
        self._woken: set[Subject] = set()  # of whom there was news while such a call was there
        self._answers: list[CallAnswer] = []
        self.running: Counter[str] = Counter()  # by driver
        self.hung: Counter[str] = Counter()  # by driver

    # Calls come

    def add(self, call: DriverCall, *, now: float, wait: float | None = None) -> None:
        """Take a call over; to be made at once, or in so many seconds, but not too soon."""
        due = now if wait is None else now + max(wait, SHORTEST_WAIT)
        placed = PlacedCall(call, next(self._numbers), due)
        match call.verb:
            case Verb.BEGIN if placed.attempt in self._begins:
                log.error("begin of %s was asked for twice, and is made once", call.task.name)
                return
            case Verb.BEGIN:
                self._begins.add(placed.attempt)
            case Verb.CANCEL if self._call_off(placed.attempt):
                self._tell(placed, Cancelled())
                return
            case Verb.CHECK | Verb.CANCEL | Verb.PRECHECK | Verb.REACH:
                self._newest[placed.attempt] = placed.number
        if placed.due > now and placed.subject not in self._woken:
            self.later.add(placed)
        else:
            self._woken.discard(placed.subject)
            self._enqueue(placed)

    def withdraw(self, attempt: AttemptId) -> None:
        """Do not make the `begin` of an attempt that runs no more; one that is being made goes on."""
        self._call_off(attempt)

    def wake(self, subject: Subject) -> None:
        """Make the calls of a machine now that wait for their time: there is news of it."""
        woken = self.later.take(subject)
        for placed in woken:
            self._enqueue(placed)
        if not woken and self._present[subject]:
            self._woken.add(subject)  # what is being answered now may be older than the news

    def _enqueue(self, placed: PlacedCall) -> None:
        limits = self._limits(placed.call.task)
        lane = self.lanes.setdefault(placed.lane, _Lane(placed.lane, limits))
        lane.limits = limits  # the fleet may have been declared anew
        self.waiting.put(placed.lane, placed)
        self._present[placed.subject] += 1

    def _call_off(self, attempt: AttemptId) -> bool:
        """Take a `begin` out that has not been made; return whether there was one."""
        if attempt not in self._begins:
            return False
        withdrawn = self.waiting.withdraw(lambda placed: placed.is_begin and placed.attempt == attempt)
        for placed in withdrawn:
            self._leave(placed, self.lanes[placed.lane])
        return bool(withdrawn)

    # Calls are made

    def has_next(self) -> bool:
        """Return whether there is a call that may be made now."""
        return self._has_room() and self.waiting.can_take(self._may_be_made)

    def next(self, now: float) -> PlacedCall | None:
        """Return a call to be made now, of one lane after the other; None if there is none that may."""
        placed = self.waiting.take(self._may_be_made) if self._has_room() else None
        if placed is not None:
            self._begin(placed, self.lanes[placed.lane], now)
        return placed

    def _has_room(self) -> bool:
        return self.running.total() < self._room()

    def _may_be_made(self, placed: PlacedCall) -> bool:
        lane = self.lanes[placed.lane]
        return lane.running < lane.limits.at_once and not self._is_blocked(lane)

    def _begin(self, placed: PlacedCall, lane: _Lane, now: float) -> None:
        placed.began_at = now
        self._made.add(placed)
        lane.running += 1
        self.running[lane.key[0]] += 1
        heapq.heappush(self._timeouts, (now + _patience(placed, lane), placed.number, placed))

    def returned(self, placed: PlacedCall, answer: Answer) -> None:
        """Take what a call has answered, also one that was given up."""
        lane = self.lanes[placed.lane]
        if placed.hangs:
            lane.hung -= 1
            self.hung[lane.key[0]] -= 1
        else:
            lane.running -= 1
            self.running[lane.key[0]] -= 1
        # Whatever a `begin` says is the truth about its attempt; of the others only the last is believed.
        is_stale = not placed.is_begin and self._newest.get(placed.attempt) != placed.number
        self._leave(placed, lane)
        if placed.is_begin:
            for other in self._made:
                other.outdated = other.outdated or other.attempt == placed.attempt
        if placed.outdated and isinstance(answer, NotBegun):
            answer = Unknown("it began while its driver was being asked")
        if not (placed.hangs and is_stale):
            self._tell(placed, answer)

    def _leave(self, placed: PlacedCall, lane: _Lane) -> None:
        """Forget a call, and a lane in which nothing is any more: hosts come and go."""
        placed.is_over = True
        self._made.discard(placed)
        if placed.is_begin:
            self._begins.discard(placed.attempt)
        elif self._newest.get(placed.attempt) == placed.number:
            del self._newest[placed.attempt]
        self._present[placed.subject] -= 1
        if not self._present[placed.subject]:
            del self._present[placed.subject]
        if lane.key not in self.waiting and not lane.running and not lane.hung:
            self.lanes.pop(lane.key, None)  # several of them may leave together

    # Time passes

    def next_due(self) -> float | None:
        """Return when `pass_time` has something to do."""
        heads = (self.later.first(), self._timeouts[0][0] if self._timeouts else None)
        return min((head for head in heads if head is not None), default=None)

    def pass_time(self, now: float) -> None:
        """Let calls in whose time has come, give up those that take too long, and say why others wait."""
        for placed in self.later.due(now):
            self._enqueue(placed)
        while self._timeouts and self._timeouts[0][0] <= now:
            placed = heapq.heappop(self._timeouts)[2]
            if not placed.is_over:
                self._give_up(placed)
        for key in self.waiting.callers():
            if self._is_blocked(self.lanes[key]):
                self._refuse(self.lanes[key])

    def _give_up(self, placed: PlacedCall) -> None:
        lane = self.lanes[placed.lane]
        driver, _, _ = lane.key
        placed.hangs = True
        lane.running -= 1
        self.running[driver] -= 1
        lane.hung += 1
        self.hung[driver] += 1
        span = format_span(_patience(placed, lane))
        why = f"{driver_named(driver)} has not answered {placed.call.verb} within {span}"
        log.warning("%s: %s", placed.call.task.name, why)
        self._tell(placed, Unknown(why), hangs=True)

    def _refuse(self, lane: _Lane) -> None:
        """Say of what waits in a lane why it does; a `begin` stays, and is made when it can be."""
        why = Unknown(self._why_blocked(lane))
        withdrawn = self.waiting.withdraw(lambda placed: not placed.is_begin, caller=lane.key)
        for placed in self.waiting.of(lane.key):
            if not placed.told:
                placed.told = True
                self._tell(placed, why, hangs=True)
        for placed in withdrawn:
            self._leave(placed, lane)
            self._tell(placed, why)

    # Answers

    def take_answers(self) -> list[CallAnswer]:
        """Hand over what was answered since the last call."""
        answers, self._answers = self._answers, []
        return answers

    def _tell(self, placed: PlacedCall, answer: Answer, *, hangs: bool = False) -> None:
        if isinstance(answer, Done | Failed | Cancelled):
            self._woken.discard(placed.subject)  # no news is waited for
        self._answers.append(CallAnswer(call=placed.call, answer=answer, hangs=hangs))

    # Room

    def _room(self) -> int:
        """Return how many calls may be made together: fewer once too many hang."""
        return self._bounds.calls - max(self.hung.total() - self._bounds.hung, 0)

    def _is_blocked(self, lane: _Lane) -> bool:
        return lane.hung >= self._bounds.hung_in_lane or self._room() <= 0

    def _why_blocked(self, lane: _Lane) -> str:
        driver, host, _ = lane.key
        many = lane.hung or self.hung.total()
        place = (f"to {host}" if host else f"of {driver_named(driver)}") if lane.hung else "of all drivers"
        return f"{counted(many, 'call')} {place} {'hangs' if many == 1 else 'hang'}"


def _patience(placed: PlacedCall, lane: _Lane) -> float:
    """Return how many seconds a call may take."""
    timeout = lane.limits.timeout.total_seconds()
    return min(timeout, REACH_WITHIN) if placed.call.verb is Verb.REACH else timeout
