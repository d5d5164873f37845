"""The time of a rehearsal, and the faults that are on at a moment of it."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from forewarn.clock import monotonic
from forewarn.control.ports import Clock
from forewarn.rehearsal.scenario import Fault, Step

# How often something is looked at that nothing announces; real seconds.
LOOK_EVERY = 0.05


async def until(condition: Callable[[], bool], *, within: float | None = None) -> None:
    """Wait until something is so that nothing announces, for some real seconds at most."""
    deadline = None if within is None else monotonic() + within
    while not condition():
        if deadline is not None and monotonic() > deadline:
            return
        await asyncio.sleep(LOOK_EVERY)


class Stage:
    """Service time, counted from the start of a scenario; before that it stands at nothing."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.began: datetime | None = None

    def begin(self) -> None:
        """Start."""
        self.began = self._clock.now()

    def now(self) -> datetime:
        """Return service time."""
        return self._clock.now()

    def elapsed(self) -> timedelta:
        """Say how long it has run."""
        return timedelta() if self.began is None else self._clock.now() - self.began

    async def wait(self, span: timedelta, *, unless: Callable[[], bool]) -> None:
        """Let service time pass, unless something is so."""
        end = self._clock.now() + span
        await until(lambda: self._clock.now() >= end or unless())


class Faults:
    """Which faults a machine meets now."""

    def __init__(self, steps: Sequence[Step], stage: Stage) -> None:
        self._steps = list(steps)
        self._stage = stage
        self._calls: Counter[tuple[Step, str]] = Counter()
        self._change = asyncio.Event()

    def put(self, step: Step) -> None:
        """Let a fault be met that was not foreseen."""
        self._steps.append(step)
        self._tell()

    def lift(self, step: Step) -> None:
        """End a fault before its time; no matter if it has ended."""
        if step in self._steps:
            self._steps.remove(step)
            self._tell()

    def lifted(self, step: Step) -> bool:
        """Say whether a fault was ended before its time."""
        return step not in self._steps

    async def change(self, machine: str) -> None:
        """Wait until a fault is put or lifted, or until one of a machine's begins or ends by the clock."""
        told, before = self._change, self._on_for(machine)
        await until(lambda: told.is_set() or self._on_for(machine) != before)

    def met_by(self, machine: str) -> list[Step]:
        """Return the faults that spoil a request of a machine, and count it."""
        met = [step for step in self._steps if self.on(step) and self._meets(step, machine)]
        self._calls.update((step, machine) for step in met)
        return met

    def on(self, step: Step) -> bool:
        """Say whether a fault is on; one that is due from the start is on before it, too."""
        fault, elapsed = step.does, self._stage.elapsed()
        if not isinstance(fault, Fault) or elapsed < step.at or self.lifted(step):
            return False
        return fault.lasts is None or elapsed < step.at + fault.lasts

    def _on_for(self, machine: str) -> list[Step]:
        return [step for step in self._steps if self.on(step) and _is_for(step, machine)]

    def _tell(self) -> None:
        self._change.set()
        self._change = asyncio.Event()

    def _meets(self, step: Step, machine: str) -> bool:
        fault = step.does
        if not isinstance(fault, Fault) or not _is_for(step, machine):
            return False
        return fault.calls is None or self._calls[step, machine] < fault.calls


def _is_for(step: Step, machine: str) -> bool:
    fault = step.does
    return isinstance(fault, Fault) and (not fault.machines or machine in fault.machines)
