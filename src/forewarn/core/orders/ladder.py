"""What becomes of a move that fails, before a person is asked: tried again, then moved in another way.

It is tried again within its event, and goes to another host if there is one. A live move that fails so often
becomes a redeploy: another type, so another event with full notice, after all that wait already. What cannot
be redeployed either has failed, and its host cannot be emptied. A machine that is live-only never gets there:
its order waits, and says so. Of an order that winds down, no move is tried again by itself.
"""

from collections.abc import Iterable

from forewarn.core.copies import replace
from forewarn.core.draft import Draft
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order, Step
from forewarn.core.model.waiting import Waiting
from forewarn.core.orders import events, stages, steps
from forewarn.core.orders.prechecks import LIVE_ONLY
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
            return _kept_live(step)
        _record(draft, order, step, "cannot be moved live: it is redeployed, with notice of its own")
        steps.left_running(draft, step)
        lowered = replace(steps.tried_again(step), work=Work.REDEPLOY, lowered_from=step.work)
        return replace(lowered, target=None, failures=0, refused=(), precheck=None)
    return None


def _kept_live(step: Step) -> Step | None:
    """Say of a machine that failed to move live why it is not redeployed; None if that is said already."""
    return None if step.why.startswith(LIVE_ONLY) else replace(step, why=f"{LIVE_ONLY}: {step.why}")


def waiting_for_notice(order: Order, index: int, listed: Iterable[Event]) -> tuple[Waiting, ...]:
    """Return the machines that are to go in another way than the event says that still names them."""
    lowered = [
        step
        for step in order.stages[index].steps
        if step.state is StepState.WAITING and step.lowered_from is not None
    ]
    named = {each.machine for event in listed for each in event.resources if lowered}
    told = {step.machine for event in listed for step in events.told_by(event, lowered)}
    reason = "could not be moved live: it is announced anew when that event has left"
    return tuple(Waiting(what=step.name, reason=reason) for step in lowered if step.machine in named - told)


def _record(draft: Draft, order: Order, step: Step, reason: str) -> None:
    machine = draft.machines[step.machine]
    draft.record(Kind.ORDER_RETRIED, machine, order=order.id, by=FOREWARN, reason=reason)
