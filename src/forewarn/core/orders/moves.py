"""Moves of machines off a host: how many go at once, and what follows a move that fails."""

from collections.abc import Container, Iterable
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
from forewarn.core.time_formats import format_time
from forewarn.core.orders import events, stages, steps
from forewarn.core.orders.move_prechecks import LIVE_ONLY, MOST_DOUBLINGS, REFUSED_FOR
from forewarn.core.policy import Policy

# A move that has taken this long will hardly end soon: who waits for its slot is put off by more at a time.
LONG_MOVE = timedelta(hours=6)
LONG_WAIT = timedelta(minutes=15)


class Slots:
    """The slots of a stage in which machines move, by what is known of its events and steps."""

    def __init__(self, draft: Draft, order: Order, index: int, listed: Iterable[Event]) -> None:
        host = draft.hosts.get(order.host) if order.host else None
        self._at_once = work_durations.moves_at_once(order, host.at_once if host else None)
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
        takes = work_durations.move_time(self._draft.machines.get(step.machine), self._draft.pace)
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


def retry_failed(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
    """Let machines whose move has failed take what is next for them."""
    # Who works outside tries as often as they like before they say that it has failed.
    if order.driver == EXTERNAL or order.terms.winding_down:
        return order
    failed = (step for step in order.stages[index].steps if step.state is StepState.FAILED)
    changed: dict[MachineId, Step] = {}
    for step in failed:
        following = _next(draft, order, step, policy)
        if following is not None:
            changed[step.machine] = following
    return stages.put_steps(order, index, changed)


def _next(draft: Draft, order: Order, step: Step, policy: Policy) -> Step | None:
    sent = step.target is not None or not order.placed_here
    if sent and step.failures <= policy.move_retries:
        avoided = (*step.failed_on, *(() if step.target is None else (step.target,)))
        tries = f"attempt {step.failures + 1} of {policy.move_retries + 1}"
        _record(draft, order, step, f"is moved once more, {tries}")
        return replace(steps.tried_again(step), target=None, failed_on=avoided)
    # Where no host at all would have it, it is not the way that it goes.
    in_vain = sent or step.refused or step.failed_on
    if step.work is Work.FREEZE and in_vain:
        if draft.machines[step.machine].mobility is Mobility.LIVE_ONLY:
            return _kept_live(draft, order, step, policy)
        _record(draft, order, step, "cannot be moved live: it is redeployed, with notice of its own")
        steps.left_running(draft, step)
        lowered = replace(steps.tried_again(step), work=Work.REDEPLOY, lowered_from=step.work)
        return replace(lowered, target=None, failures=0, refused=(), precheck=None)
    return None


def _kept_live(draft: Draft, order: Order, step: Step, policy: Policy) -> Step:
    """Let a machine that failed to move live stay where it is, until it is announced again.

    Each failure doubles the wait: every announcement disturbs its guests.
    """
    rounds = max(step.failures - policy.move_retries - 1, 0)
    again_at = draft.now + REFUSED_FOR * (1 << min(rounds, MOST_DOUBLINGS))
    _record(draft, order, step, _tried_again(again_at))
    steps.left_running(draft, step)
    waits = replace(steps.tried_again(step), target=None, refused=(), failed_on=(), precheck=None)
    return replace(waits, again_at=again_at)


def is_resting(step: Step, now: datetime) -> bool:
    """Return whether a move that failed is not to be announced again yet."""
    return step.again_at is not None and now < step.again_at


def retry_times(stage: Stage, now: datetime) -> list[datetime]:
    """Return when moves of a stage that failed may be announced again."""
    resting = (step for step in stage.steps if step.state is StepState.WAITING and is_resting(step, now))
    return [step.again_at for step in resting if step.again_at is not None]


def waiting_for_notice(
    draft: Draft, order: Order, index: int, listed: Iterable[Event]
) -> tuple[Waiting, ...]:
    """Return the machines that wait for another event than the one that still names them, or named them."""
    again = [
        step
        for step in order.stages[index].steps
        if step.state is StepState.WAITING and (step.lowered_from is not None or step.again_at is not None)
    ]
    named = {each.machine for event in listed for each in event.resources if again}
    told = {step.machine for event in listed for step in events.told_by(event, again)}
    found = ((step, _not_announced_again(step, draft.now, named - told)) for step in again)
    return tuple(
        Waiting(what=step.name, reason=why, until=step.again_at if is_resting(step, draft.now) else None)
        for step, why in found
        if why
    )


def _not_announced_again(step: Step, now: datetime, named: Container[MachineId]) -> str:
    """Return why a machine whose move has failed is not announced again yet; nothing if it may be."""
    if step.again_at is not None and is_resting(step, now):
        # Last what a driver says: tenants are shown nothing of that, to the end of the text.
        return f"{_tried_again(step.again_at)}: {step.why}"
    if step.machine not in named:
        return ""
    return "could not be moved live: it is announced again when that event has left"


def _tried_again(at: datetime) -> str:
    return f"{LIVE_ONLY}; its live move is tried again from {format_time(at)} on"


def _record(draft: Draft, order: Order, step: Step, reason: str) -> None:
    machine = draft.machines[step.machine]
    draft.record(Kind.ORDER_RETRIED, machine, order=order.id, by=FOREWARN, reason=reason)
