"""How many machines of a host may move at the same time, and when there is a turn for the next."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from forewarn.core.admission import durations
from forewarn.core.draft import Draft
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order, Step
from forewarn.core.orders import events
from forewarn.core.words import EventStatus, StepState

# A move that has taken this long will hardly end soon: who waits for its slot is put off by more at a time.
LONG_MOVE = timedelta(hours=6)
LONG_WAIT = timedelta(minutes=15)


class Slots:
    """The slots of a stage in which machines move, by what is known of its events and steps."""

    def __init__(self, draft: Draft, order: Order, index: int, listed: Iterable[Event]) -> None:
        host = draft.hosts.get(order.host) if order.host else None
        self._at_once = durations.moves_at_once(order, host.at_once if host else None)
        self._draft = draft
        self._steps = {step.machine: step for step in order.stages[index].steps}
        self._events = sorted(listed, key=lambda event: (event.started_at or event.not_before, event.number))

    @property
    def idle(self) -> int | None:
        """How many machines may begin to move now; None: any number."""
        if self._at_once is None:
            return None
        running = sum(step.state is StepState.RUNNING for step in self._steps.values())
        return max(self._at_once - running, 0)

    @property
    def is_free(self) -> bool:
        """Whether an event may start: there are slots that those that have started do not need."""
        if self._at_once is None:
            return True
        started = (event for event in self._events if event.status is EventStatus.STARTED)
        pending = (step for event in started for step in self._steps_of(event))
        busy = (StepState.WAITING, StepState.RUNNING)
        return sum(step.state in busy for step in pending) < self._at_once

    def _steps_of(self, event: Event) -> Iterable[Step]:
        steps = (self._steps.get(resource.machine) for resource in event.resources)
        return events.told_by(event, (step for step in steps if step is not None))

    def turn(self, *, but: Event | None = None) -> datetime:
        """Return when a slot is expected to become free for an event that comes after those known."""
        now = self._draft.now
        if self._at_once is None:
            return now
        free = [now] * self._at_once
        for event in self._events:
            if but is not None and (event.id == but.id or _is_behind(event, but)):
                continue
            first = now if event.status is EventStatus.STARTED else event.not_before
            for step in self._steps_of(event):
                self._take(free, step, first)
        return min(free)

    def _take(self, free: list[datetime], step: Step, first: datetime) -> None:
        """Count a machine into the slot that is free first."""
        now = self._draft.now
        if step.state not in (StepState.WAITING, StepState.RUNNING):
            return
        slot = free.index(min(free))
        takes = durations.move_time(self._draft.machines.get(step.machine), self._draft.pace)
        if step.state is StepState.RUNNING:
            begun = step.begun_at or now
            # One that takes longer than expected will take a while longer; guests see each later NotBefore.
            longer = takes / 4 if now - begun < LONG_MOVE else max(takes / 4, LONG_WAIT)
            free[slot] = max(begun + takes, now + longer)
        else:
            free[slot] = max(free[slot], first) + takes


def _is_behind(event: Event, other: Event) -> bool:
    """Return whether a scheduled event comes after another one."""
    if event.status is EventStatus.STARTED:
        return False
    return (event.not_before, event.number) > (other.not_before, other.number)
