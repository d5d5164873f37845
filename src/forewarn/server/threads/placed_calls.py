"""Driver calls on their way, and those that wait for their time."""

import heapq
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from forewarn.control.engine.driver_calls import DriverCall, Verb
from forewarn.core.model.order import AttemptId
from forewarn.core.words import MachineId, OrderId

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


class CallTimers:
    """Calls that wait for their time."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, PlacedCall]] = []
        self._of: defaultdict[Subject, dict[tuple[AttemptId, Verb], PlacedCall]] = defaultdict(dict)

    def add(self, placed: PlacedCall) -> None:
        """Let a call wait; one that asks the same and waits already is not made."""
        self._of[placed.subject][placed.attempt, placed.call.verb] = placed
        heapq.heappush(self._heap, (placed.due, placed.number, placed))

    def first(self) -> float | None:
        """Return when the first of them is due."""
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> Iterator[PlacedCall]:
        """Take those whose time has come."""
        while self._heap and self._heap[0][0] <= now:
            placed = heapq.heappop(self._heap)[2]
            mine = self._of.get(placed.subject, {})
            if mine.get((placed.attempt, placed.call.verb)) is placed:
                del mine[placed.attempt, placed.call.verb]
                if not mine:
                    del self._of[placed.subject]
                yield placed

    def take(self, subject: Subject) -> list[PlacedCall]:
        """Take those of a machine, whether or not their time has come."""
        return list(self._of.pop(subject, {}).values())
