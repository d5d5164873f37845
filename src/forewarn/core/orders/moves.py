"""Moves of machines off a host: how many run at once, and what follows a failed move."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from forewarn.core.admission import work_durations
from forewarn.core.basic_types import (
    EXTERNAL,
    FOREWARN,
    EventStatus,
    Kind,
    MachineId,
    Mobility,
    StepState,
    Work,
)
from forewarn.core.draft import Draft
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order, Stage, Step
from forewarn.core.orders import departures, events, stages, steps
from forewarn.core.orders.move_prechecks import LIVE_ONLY, MOST_DOUBLINGS, REFUSED_FOR
from forewarn.core.policy import Policy
from forewarn.core.time_formats import format_time

# A move that has taken this long will probably take much longer. Events that wait for its slot are then
# postponed by more at a time.
LONG_MOVE = timedelta(hours=6)
LONG_WAIT = timedelta(minutes=15)


class Slots:
    """The slots of a stage whose machines move a few at a time."""

    def __init__(self, draft: Draft, order: Order, index: int) -> None:
        host = draft.hosts.get(order.host) if order.host else None
        self._at_once = work_durations.moves_at_once(order, host)
        self._draft = draft
        self._steps = {step.machine: step for step in order.stages[index].steps}
        listed = departures.stage_events(draft, order, index)
        self._events = sorted(listed, key=lambda event: (event.started_at or event.not_before, event.number))

    @property
    def idle(self) -> int | None:
        """How many machines may begin to move now, or None if there is no limit."""
        if self._at_once is None:
            return None
        running = sum(step.state is StepState.RUNNING for step in self._steps.values())
        return max(self._at_once - running, 0)

    @property
    def is_free(self) -> bool:
        """Whether an event may start: the started events do not need all slots."""
        if self._at_once is None:
            return True
        started = (event for event in self._events if event.status is EventStatus.STARTED)
        pending = (step for event in started for step in self._steps_of(event))
        busy = (StepState.WAITING, StepState.RUNNING)
        return sum(step.state in busy for step in pending) < self._at_once

    def _steps_of(self, event: Event) -> Iterable[Step]:
        steps = (self._steps.get(resource.machine) for resource in event.resources)
        return events.announced_steps(event, (step for step in steps if step is not None))

    def turn(self, *, but: Event | None = None) -> datetime:
        """Return when a slot should be free for a new event, or for the scheduled event `but`."""
        now = self._draft.now
        if self._at_once is None:
            return now
        free = [now] * self._at_once
        for event in self._events:
            started = event.status is EventStatus.STARTED
            if but is not None and (event.id == but.id or (not started and _turn(event) > _turn(but))):
                continue
            for step in self._steps_of(event):
                self._occupy(free, step, now if started else event.not_before)
        return min(free)

    def _occupy(self, free: list[datetime], step: Step, first: datetime) -> None:
        """Occupy the slot that is free first with the move of a machine."""
        now = self._draft.now
        if step.state not in (StepState.WAITING, StepState.RUNNING):
            return
        slot = free.index(min(free))
        takes = work_durations.move_time(self._draft.machines.get(step.machine), self._draft.pace)
        if step.state is StepState.RUNNING:
            begun = step.begun_at or now
            # An overdue move takes a while longer. The steps are large, as guests see each later NotBefore.
            longer = takes / 4 if now - begun < LONG_MOVE else max(takes / 4, LONG_WAIT)
            free[slot] = max(begun + takes, now + longer)
        else:
            free[slot] = max(free[slot], first) + takes


def _turn(event: Event) -> tuple[datetime, int]:
    return event.not_before, event.number


def retry_failed(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    """Retry failed moves, or move their machines in another way."""
    # An external program retries by itself before it reports a failure.
    if order.driver == EXTERNAL or order.terms.winding_down:
        return order
    changed: dict[MachineId, Step] = {}
    for step in order.stages[index].steps:
        if step.state is StepState.FAILED and (following := _next(draft, order, step, policy)) is not None:
            changed[step.machine] = following
    return stages.put_steps(order, index, changed)


def _next(draft: Draft, order: Order, step: Step, policy: Policy) -> Step | None:
    """Return the step that follows a failed move, or None if a person must decide."""
    sent = step.target is not None or not order.placed_by_forewarn
    if sent and step.failures <= policy.move_retries:
        avoided = (*step.failed_on, *(() if step.target is None else (step.target,)))
        tries = f"attempt {step.failures + 1} of {policy.move_retries + 1}"
        _record(draft, order, step, f"is moved again, {tries}")
        return replace(steps.tried_again(step), target=None, failed_on=avoided)
    # If no host at all had room, another way to move does not help.
    tried = sent or step.refused or step.failed_on
    if step.work is not Work.FREEZE or not tried:
        return None
    waiting = replace(steps.tried_again(step), target=None, refused=(), precheck=None)
    if draft.machines[step.machine].mobility is Mobility.LIVE_ONLY:
        return _kept_live(draft, order, step, waiting, policy)
    _record(draft, order, step, "cannot be moved live: it is redeployed, with notice of its own")
    steps.leave_running(draft, step)
    return replace(waiting, work=Work.REDEPLOY, lowered_from=step.work, failures=0)


def _kept_live(draft: Draft, order: Order, step: Step, waiting: Step, policy: Policy) -> Step:
    """Keep a live-only machine where it is until its move is announced again.

    The wait doubles with each failure, because every announcement disturbs the guests.
    """
    rounds = max(step.failures - policy.move_retries - 1, 0)
    again_at = draft.now + REFUSED_FOR * (1 << min(rounds, MOST_DOUBLINGS))
    _record(draft, order, step, _tried_again_from(again_at))
    steps.leave_running(draft, step)
    return replace(waiting, failed_on=(), again_at=again_at)


def is_resting(step: Step, now: datetime) -> bool:
    """Return whether a failed move may not be announced again yet."""
    return step.again_at is not None and now < step.again_at


def retry_times(stage: Stage, now: datetime) -> list[datetime]:
    """Return when failed moves of a stage may be announced again."""
    waiting = (step for step in stage.steps if step.state is StepState.WAITING)
    return [step.again_at for step in waiting if step.again_at is not None and now < step.again_at]


def why_not_announced_again(draft: Draft, order: Order, index: int) -> tuple[Waiting, ...]:
    """Return the machines that wait for a new event because their last move failed."""
    again = [
        step
        for step in order.stages[index].steps
        if step.state is StepState.WAITING and (step.lowered_from is not None or step.again_at is not None)
    ]
    listed = departures.stage_events(draft, order, index) if again else ()
    named = {each.machine for event in listed for each in event.resources}
    announced = {step.machine for event in listed for step in events.announced_steps(event, again)}
    waiting = []
    for step in again:
        if step.again_at is not None and is_resting(step, draft.now):
            # The driver's text comes last: tenants do not see it, up to the end of the reason.
            reason = f"{_tried_again_from(step.again_at)}: {step.why}"
            waiting.append(Waiting(what=step.name, reason=reason, until=step.again_at))
        elif step.machine in named - announced:
            reason = "could not be moved live: it is announced again when that event has ended"
            waiting.append(Waiting(what=step.name, reason=reason))
    return tuple(waiting)


def _tried_again_from(at: datetime) -> str:
    return f"{LIVE_ONLY}; its live move is tried again from {format_time(at)} on"


def _record(draft: Draft, order: Order, step: Step, reason: str) -> None:
    machine = draft.machines[step.machine]
    draft.record(Kind.ORDER_RETRIED, machine, order=order.id, by=FOREWARN, reason=reason)
