"""What becomes of a move that fails, before a person is asked: tried again, then moved in another way.

It is tried again within its event, and goes to another host if there is one. A live move that fails so often
becomes a redeploy: another type, so another event with full notice, after all that wait already. What cannot
be redeployed either has failed, and its host cannot be emptied. A machine that is live-only never gets there:
it stays and runs, its event ends, and after a while it is announced again. Of an order that winds down, no
move is tried again by itself.
"""

from collections.abc import Container, Iterable
from datetime import datetime

from forewarn.core.copies import replace
from forewarn.core.draft import Draft
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order, Stage, Step
from forewarn.core.moments import format_time
from forewarn.core.orders import events, stages, steps
from forewarn.core.orders.prechecks import LIVE_ONLY, MOST_DOUBLINGS, REFUSED_FOR
from forewarn.core.policy import Policy
from forewarn.core.words import EXTERNAL, FOREWARN, Kind, MachineId, Mobility, StepState, Work


def go_on(draft: Draft, order: Order, index: int, policy: Policy) -> Order:
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


def moments(stage: Stage, now: datetime) -> list[datetime]:
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
