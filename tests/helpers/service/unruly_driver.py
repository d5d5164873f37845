"""A driver that is slow, hangs, crashes, answers late or answers falsely, according to a seed.

The world holds the true state of attempts, and outlives the processes that read it. The driver's answers
follow from its seed alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from forewarn.control.driver import (
    Begun,
    CancelAnswer,
    Cancelled,
    Checked,
    Done,
    DriverLimits,
    DriverTask,
    Failed,
    NotBegun,
    Running,
    TooLate,
    Unknown,
)
from forewarn.core.basic_types import HostName
from forewarn.core.model.order import AttemptId

UNRULY = "unruly"


class Unreachable(OSError):
    """The hypervisor does not answer."""


@dataclass
class Attempt:
    """The true state of an attempt."""

    over_at: datetime
    fails: bool
    called_off: bool = False


@dataclass
class World:
    """The work of hypervisors, and all calls made to them."""

    attempts: dict[AttemptId, Attempt] = field(default_factory=dict)
    begun: list[AttemptId] = field(default_factory=list)
    # Attempts answered with NotBegun since the last `begin`.
    denied: set[AttemptId] = field(default_factory=set)
    # Attempts whose `begin` has not returned to its caller. An answer about them allows no other attempt.
    unreturned: set[AttemptId] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)  # of the calling process
    calls: int = 0

    def begin(self, task: DriverTask) -> None:
        """Record a `begin`: the first of its attempt, or one that the driver itself requested."""
        if task.id in self.begun and task.id not in self.denied:
            self.faults.append(f"{task.id} was begun twice")
        newer = [each for each in self.begun if each[:2] == task.id[:2] and each[2] > task.attempt]
        if newer:
            self.faults.append(f"{task.id} was begun after {newer[0]}")
        self.begun.append(task.id)
        self.denied.discard(task.id)


class UnrulyDriver:
    """Reads the world, and answers at random."""

    limits = DriverLimits(timeout=timedelta(seconds=30), at_once=2)

    def __init__(self, seed: int, world: World, *, hosts: Sequence[str]) -> None:
        self.random = Random(seed)
        self.world = world
        self.hosts = hosts
        self.is_sane = False
        self.refusing: set[str] = set()  # machines that no host can take

    def begin(self, task: DriverTask) -> Begun:
        """Begin, or crash before or after."""
        self.world.calls += 1
        self.world.begin(task)
        if self._falls_ill(0.08):
            raise Unreachable("before anything was begun")
        known = self.world.attempts.get(task.id)
        if known is not None and known.called_off:
            return Failed("it was called off")
        if self._falls_ill(0.08):
            return Failed("it does not want to")
        lasts = timedelta(seconds=self.random.choice([0, 5, 60, 600]))
        self.world.attempts.setdefault(task.id, Attempt(task.now + lasts, fails=self._falls_ill(0.1)))
        if self._falls_ill(0.08):
            raise Unreachable("after it was begun")
        return self._running(task)

    def check(self, task: DriverTask) -> Checked:
        """Return the state of an attempt, or something else."""
        self.world.calls += 1
        if self._falls_ill(0.08):
            raise Unreachable("now")
        if self._falls_ill(0.15):
            return self._denied(task, self._lie(task))
        return self._denied(task, self._truth(task))

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Cancel an attempt unless it is over."""
        self.world.calls += 1
        if self._falls_ill(0.1):
            raise Unreachable("now")
        if self._falls_ill(0.1):
            return Unknown("no answer")
        known = self.world.attempts.setdefault(task.id, Attempt(task.now, fails=True, called_off=True))
        if not known.called_off and (known.over_at <= task.now or self._falls_ill(0.4)):
            return TooLate()
        known.called_off = True
        return Cancelled()

    def precheck(self, task: DriverTask) -> str | Unknown | None:
        """Refuse a host sometimes."""
        if task.name in self.refusing:
            return "its disk is not seen there"
        return "it has no room" if self._falls_ill(0.1) else None

    def _falls_ill(self, how_often: float) -> bool:
        return self.random.random() < how_often and not self.is_sane

    def _running(self, task: DriverTask) -> Running:
        wait = self.random.choice([None, -5, 0, 1, 20])
        look_at = None if wait is None else task.now + timedelta(seconds=wait)
        return Running(look_at, mark=f"job {task.attempt}", progress=self.random.choice([None, 0.5]))

    def _truth(self, task: DriverTask) -> Checked:
        known = self.world.attempts.get(task.id)
        if known is None:
            return NotBegun()
        if known.called_off:
            return Failed("it was called off")
        if known.over_at > task.now:
            return self._running(task)
        return Failed("it broke") if known.fails else Done(impact=1.5)

    def _lie(self, task: DriverTask) -> Checked:
        elsewhere = Done(host=HostName(self.random.choice([*self.hosts, "nowhere"])))
        said = [NotBegun(), self._running(task), elsewhere, Unknown("no answer"), Failed("a lie")]
        return self.random.choice(said)

    def _denied(self, task: DriverTask, answer: Checked) -> Checked:
        if isinstance(answer, NotBegun) and task.id not in self.world.unreturned:
            self.world.denied.add(task.id)
        return answer
