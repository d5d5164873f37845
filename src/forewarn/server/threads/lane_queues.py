"""The queues of driver calls: which call is made next, and how calls that hang are answered. No threads.

A lane holds the calls of one driver to one host. It has its own limit, so a host that hangs does not delay
others: its calls time out, and when too many calls hang, the lane waits until one of them returns. All times
are monotonic seconds, which the caller passes in.
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
from forewarn.core.redaction import driver_named
from forewarn.core.text_formats import counted
from forewarn.core.time_formats import format_span
from forewarn.server.threads.fair_queue import FairQueue

log = logging.getLogger(__name__)

# The timeout of a reachability probe, in seconds; a slower host counts as unreachable.
REACH_WITHIN = 5.0
# The shortest pause between two calls, in seconds. Without it, a driver that asks to be called again at once
# would block all other calls to its host.
SHORTEST_WAIT = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneBounds:
    """How many calls run at once, and how many may hang."""

    calls: int = 32  # in all lanes, not counting calls that hang
    hung: int = 32  # in all lanes; each further one reduces `calls` by one
    hung_in_lane: int = 2  # then the lane waits until one of them returns


DEFAULT_BOUNDS = LaneBounds()


# The driver, the host, and whether the lane is for reachability probes, which must not wait for steps.
LaneKey: TypeAlias = tuple[str, str, bool]
# The subject of calls that are woken together: a machine, or an order and its work on the host.
Subject: TypeAlias = MachineId | tuple[OrderId, str]


@dataclass(eq=False, slots=True)
class PlacedCall:
    """A call that is delayed, queued in its lane, running, hanging, or finished."""

    call: DriverCall
    number: int
    due: float  # the earliest start
    explained: bool = False  # whether the engine knows why the call waits
    hangs: bool = False
    outdated: bool = False  # whether the attempt's `begin` returned while this call ran
    is_over: bool = False

    @property
    def attempt(self) -> AttemptId:
        """The attempt of the call."""
        return self.call.task.id

    @property
    def subject(self) -> Subject:
        """The machine of the call, or the order and its work on the host."""
        task = self.call.task
        return task.machine.id if task.machine is not None else (task.order, task.subject)

    @property
    def lane(self) -> LaneKey:
        """The lane of the call; calls without a host share one lane for each driver."""
        task = self.call.task
        host = "" if task.host is None else task.host.name
        return task.driver, host, self.call.verb is Verb.REACH

    @property
    def is_begin(self) -> bool:
        """Whether the call begins its attempt."""
        return self.call.verb is Verb.BEGIN


class _DelayedCalls:
    """Calls that are not due yet."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, PlacedCall]] = []
        self.by_subject: defaultdict[Subject, dict[tuple[AttemptId, Verb], PlacedCall]] = defaultdict(dict)

    def add(self, placed: PlacedCall) -> None:
        """Delay a call; it replaces a delayed call with the same attempt and verb."""
        self.by_subject[placed.subject][placed.attempt, placed.call.verb] = placed
        heapq.heappush(self._heap, (placed.due, placed.number, placed))

    def first(self) -> float | None:
        """Return when the first call is due."""
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> Iterator[PlacedCall]:
        """Take the calls that are due."""
        while self._heap and self._heap[0][0] <= now:
            placed = heapq.heappop(self._heap)[2]
            mine = self.by_subject.get(placed.subject, {})
            if mine.get((placed.attempt, placed.call.verb)) is placed:
                del mine[placed.attempt, placed.call.verb]
                if not mine:
                    del self.by_subject[placed.subject]
                yield placed

    def take(self, subject: Subject) -> list[PlacedCall]:
        """Take the calls of a subject, due or not."""
        return list(self.by_subject.pop(subject, {}).values())


@dataclass(eq=False, slots=True)
class _Lane:
    key: LaneKey
    limits: DriverLimits
    running: int = 0
    hung: int = 0


class LaneQueues:
    """All lanes and the calls in them. It has no lock: the lock of `Lanes` guards it."""

    def __init__(
        self, limits: Callable[[DriverTask], DriverLimits], *, bounds: LaneBounds = DEFAULT_BOUNDS
    ) -> None:
        """Take `limits`: it returns the timeout of a task and how many calls of its lane run at once."""
        self._limits = limits
        self._bounds = bounds
        self._numbers = count()
        self.lanes: dict[LaneKey, _Lane] = {}
        self.waiting: FairQueue[LaneKey, PlacedCall] = FairQueue()
        self.later = _DelayedCalls()
        self._timeouts: list[tuple[float, int, PlacedCall]] = []
        self._started: set[PlacedCall] = set()  # running or hanging
        self._begins: set[AttemptId] = set()  # queued, running or hanging
        self._newest: dict[AttemptId, int] = {}  # the last check or cancel that has not returned
        self._present: Counter[Subject] = Counter()  # how many calls of a subject are in lanes
        self._woken: set[Subject] = set()  # subjects that were woken while a call of theirs was in a lane
        self._answers: list[CallAnswer] = []
        self.running: Counter[str] = Counter()  # by driver
        self.hung: Counter[str] = Counter()  # by driver

    # Adding calls

    def add(self, call: DriverCall, *, now: float, wait: float | None = None) -> None:
        """Add a call that is due at once, or after `wait` seconds and not before the shortest wait."""
        due = now if wait is None else now + max(wait, SHORTEST_WAIT)
        placed = PlacedCall(call, next(self._numbers), due)
        match call.verb:
            case Verb.BEGIN if placed.attempt in self._begins:
                log.error("begin of %s was submitted twice and is called once", call.task.name)
                return
            case Verb.BEGIN:
                self._begins.add(placed.attempt)
            case Verb.CANCEL if self.withdraw(placed.attempt):
                self._answer(placed, Cancelled())
                return
            case Verb.CHECK | Verb.CANCEL | Verb.PRECHECK | Verb.REACH:
                self._newest[placed.attempt] = placed.number
        if placed.due > now and placed.subject not in self._woken:
            self.later.add(placed)
        else:
            self._woken.discard(placed.subject)
            self._enqueue(placed)

    def withdraw(self, attempt: AttemptId) -> bool:
        """Withdraw a `begin` that is not running yet; return whether there was one."""
        if attempt not in self._begins:
            return False
        withdrawn = self.waiting.withdraw(lambda placed: placed.is_begin and placed.attempt == attempt)
        for placed in withdrawn:
            self._remove(placed, self.lanes[placed.lane])
        return bool(withdrawn)

    def wake(self, subject: Subject) -> None:
        """Queue the delayed calls of a subject now, because its hypervisor reported an event."""
        woken = self.later.take(subject)
        for placed in woken:
            self._enqueue(placed)
        if not woken and self._present[subject]:
            self._woken.add(subject)  # the answer of the running call may be older than the event

    def _enqueue(self, placed: PlacedCall) -> None:
        limits = self._limits(placed.call.task)
        lane = self.lanes.setdefault(placed.lane, _Lane(placed.lane, limits))
        lane.limits = limits  # the fleet file may have changed them
        self.waiting.put(placed.lane, placed)
        self._present[placed.subject] += 1

    # Starting calls

    def has_next(self) -> bool:
        """Whether `next` would return a call."""
        return self._has_room() and self.waiting.can_take(self._may_start)

    def next(self, now: float) -> PlacedCall | None:
        """Start the next call, taking lanes in turn; None if no call may start."""
        placed = self.waiting.take(self._may_start) if self._has_room() else None
        if placed is not None:
            lane = self.lanes[placed.lane]
            self._started.add(placed)
            lane.running += 1
            self.running[lane.key[0]] += 1
            heapq.heappush(self._timeouts, (now + _timeout(placed, lane), placed.number, placed))
        return placed

    def _has_room(self) -> bool:
        return self.running.total() < self._room()

    def _may_start(self, placed: PlacedCall) -> bool:
        lane = self.lanes[placed.lane]
        return lane.running < lane.limits.at_once and not self._is_blocked(lane)

    def returned(self, placed: PlacedCall, answer: Answer) -> None:
        """Take the answer of a call, even after its timeout."""
        lane = self.lanes[placed.lane]
        if placed.hangs:
            lane.hung -= 1
            self.hung[lane.key[0]] -= 1
        else:
            lane.running -= 1
            self.running[lane.key[0]] -= 1
        # The answer of a `begin` is always valid. Of other calls that hung, only the newest one counts.
        is_stale = not placed.is_begin and self._newest.get(placed.attempt) != placed.number
        self._remove(placed, lane)
        if placed.is_begin:
            for other in self._started:
                other.outdated = other.outdated or other.attempt == placed.attempt
        if placed.outdated and isinstance(answer, NotBegun):
            answer = Unknown("the attempt began while the driver was being asked")
        if not (placed.hangs and is_stale):
            self._answer(placed, answer)

    def _remove(self, placed: PlacedCall, lane: _Lane) -> None:
        """Remove a call, and its lane if that is now empty."""
        placed.is_over = True
        self._started.discard(placed)
        if placed.is_begin:
            self._begins.discard(placed.attempt)
        elif self._newest.get(placed.attempt) == placed.number:
            del self._newest[placed.attempt]
        self._present[placed.subject] -= 1
        if not self._present[placed.subject]:
            del self._present[placed.subject]
        if lane.key not in self.waiting and not lane.running and not lane.hung:
            self.lanes.pop(lane.key, None)  # an earlier call of the same loop may have removed it

    # Timeouts

    def next_due(self) -> float | None:
        """Return when `pass_time` must be called next."""
        heads = (self.later.first(), self._timeouts[0][0] if self._timeouts else None)
        return min((head for head in heads if head is not None), default=None)

    def pass_time(self, now: float) -> None:
        """Queue delayed calls that are due, time out slow calls, and answer the calls of blocked lanes."""
        for placed in self.later.due(now):
            self._enqueue(placed)
        while self._timeouts and self._timeouts[0][0] <= now:
            placed = heapq.heappop(self._timeouts)[2]
            if not placed.is_over:
                self._time_out(placed)
        for key in self.waiting.callers():
            if self._is_blocked(self.lanes[key]):
                self._refuse_calls(self.lanes[key])

    def _time_out(self, placed: PlacedCall) -> None:
        lane = self.lanes[placed.lane]
        driver, _, _ = lane.key
        placed.hangs = True
        lane.running -= 1
        self.running[driver] -= 1
        lane.hung += 1
        self.hung[driver] += 1
        span = format_span(_timeout(placed, lane))
        why = f"{driver_named(driver)} has not answered {placed.call.verb} within {span}"
        log.warning("%s: %s", placed.call.task.name, why)
        self._answer(placed, Unknown(why), hangs=True)

    def _refuse_calls(self, lane: _Lane) -> None:
        """Answer the calls of a blocked lane with the reason; only a `begin` stays queued."""
        why = Unknown(self._why_blocked(lane))
        withdrawn = self.waiting.withdraw(lambda placed: not placed.is_begin, caller=lane.key)
        for placed in self.waiting.of(lane.key):
            if not placed.explained:
                placed.explained = True
                self._answer(placed, why, hangs=True)
        for placed in withdrawn:
            self._remove(placed, lane)
            self._answer(placed, why)

    # Answers

    def take_answers(self) -> list[CallAnswer]:
        """Return the answers since the last call."""
        answers, self._answers = self._answers, []
        return answers

    def _answer(self, placed: PlacedCall, answer: Answer, *, hangs: bool = False) -> None:
        if isinstance(answer, Done | Failed | Cancelled):
            self._woken.discard(placed.subject)  # no further check is needed
        self._answers.append(CallAnswer(call=placed.call, answer=answer, hangs=hangs))

    # Limits

    def _room(self) -> int:
        """Return how many calls may run at once: fewer when too many hang."""
        return self._bounds.calls - max(self.hung.total() - self._bounds.hung, 0)

    def _is_blocked(self, lane: _Lane) -> bool:
        return lane.hung >= self._bounds.hung_in_lane or self._room() <= 0

    def _why_blocked(self, lane: _Lane) -> str:
        driver, host, _ = lane.key
        many = lane.hung or self.hung.total()
        place = (f"to {host}" if host else f"of {driver_named(driver)}") if lane.hung else "of all drivers"
        return f"{counted(many, 'call')} {place} {'hangs' if many == 1 else 'hang'}"


def _timeout(placed: PlacedCall, lane: _Lane) -> float:
    timeout = lane.limits.timeout.total_seconds()
    return min(timeout, REACH_WITHIN) if placed.call.verb is Verb.REACH else timeout
