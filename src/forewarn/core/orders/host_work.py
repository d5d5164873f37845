"""What is done to the host itself: cordoned when its work is announced, worked on, and let go again.

A host is let go, and machines return to it, once its health is known: a host that is not well stays cordoned.
"""

from dataclasses import replace

from forewarn.core.basic_types import (
    EXTERNAL,
    HOOK,
    Action,
    HostState,
    HostTask,
    Kind,
    StageKind,
    StageState,
    StepState,
)
from forewarn.core.draft import Draft
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.order import HostStep, Order, Step
from forewarn.core.orders import departures, host_steps, service, stages, steps
from forewarn.core.policy import Policy
from forewarn.core.redaction import driver_named

# In the order in which they are done; a failed host is fenced instead.
TURNS = (
    HostTask.CORDON,
    HostTask.BEFORE,
    HostTask.WORK,
    HostTask.AFTER,
    HostTask.HEALTH,
    HostTask.UNCORDON,
)
# What a driver does whose hypervisor would send machines to the host, unless a hook does.
CORDONS = frozenset({HostTask.CORDON, HostTask.UNCORDON})
# What the host is out of order for: if it was begun and not finished, a person must look at the host.
AT_WORK = frozenset({HostTask.BEFORE, HostTask.WORK, HostTask.AFTER})


def plan(order: Order, policy: Policy, cordoned_by: str) -> tuple[HostStep, ...]:
    """Return what is done to a host: its work, all that there is a hook for, and what its own driver cordons.

    Where machines alone are treated, the host is asked after its health before a rollout goes on.
    """
    hooks = frozenset[HostTask]() if order.terms.rehearsal else policy.hooks  # there nothing is really done
    if order.action is not Action.SERVICE:
        hooks = hooks & {HostTask.HEALTH} if order.terms.rollout is not None else frozenset()
    drivers = dict.fromkeys(hooks, HOOK)
    if order.action is Action.SERVICE:
        really = not order.terms.rehearsal and not order.simulated
        if really and cordoned_by in policy.cordoning and HostTask.CORDON not in hooks:
            drivers = dict.fromkeys(CORDONS, cordoned_by) | drivers
        drivers[HostTask.WORK] = _worked_by(order, policy)
    return tuple(HostStep(task=task, driver=drivers[task]) for task in TURNS if task in drivers)


def _worked_by(order: Order, policy: Policy) -> str:
    if order.terms.host_driver is not None:
        return order.terms.host_driver
    if HostTask.WORK in policy.hooks and not order.terms.rehearsal:
        return HOOK
    return order.driver if order.driver in policy.working_on_hosts else EXTERNAL


def go_on(draft: Draft, order: Order, policy: Policy) -> Order:
    """Begin what is the next step on the host, and carry over what has come of the work on it."""
    step = next((step for step in order.host_steps if step.state not in host_steps.SETTLED), None)
    if step is not None and step.state is StepState.WAITING and _may_begin(order, step.task):
        order = host_steps.put(order, host_steps.begin(draft, order, step))
    # Otherwise their driver verifies that they run (`Order.driven`).
    if is_worked_on(order) and order.driver not in policy.verifying_restarts:
        order = _restarted(draft, order)
    if is_settled(order) and not order.terms.winding_down:
        release(draft, order)
    return order


def ask_after(draft: Draft, order: Order) -> Order:
    """Ask after the health of a host whose machines have all been treated."""
    step = host_steps.find(order, HostTask.HEALTH)
    if order.action is Action.SERVICE or step is None or step.state is not StepState.WAITING:
        return order
    return host_steps.put(order, host_steps.begin(draft, order, step))


def _may_begin(order: Order, task: HostTask) -> bool:
    if task is HostTask.CORDON:
        return any(stage.state is not StageState.QUEUED for stage in order.stages)
    stage = service.host_stage(order)
    if stage is not None and stage.started_at is not None:
        return True
    # All that is left to do then is to let the host go.
    return bool(order.terms.winding_down) and stages.settled(order.steps)


def _restarted(draft: Draft, order: Order) -> Order:
    """Mark the machines that restarted with the host as done; other orders may have waited for them."""

    def done(step: Step) -> Step:
        if step.state is not StepState.RUNNING:
            return step
        departures.wake_others(draft, order, step.machine)
        return steps.done(draft, order, step)

    changed = tuple(
        replace(stage, steps=tuple(map(done, stage.steps))) if stage.kind is StageKind.HOST else stage
        for stage in order.stages
    )
    return order if changed == order.stages else replace(order, stages=changed)


def is_worked_on(order: Order) -> bool:
    """Return whether the work on the host itself is done."""
    return all(step.state in host_steps.SETTLED for step in order.host_steps if step.task is HostTask.WORK)


def is_settled(order: Order) -> bool:
    """Return whether nothing is left to do to the host."""
    return all(step.state in host_steps.SETTLED for step in order.host_steps)


def not_cordoned(order: Order) -> tuple[Waiting, ...]:
    """Return that machines wait for whoever cordons their host: others might still be sent there."""
    step = host_steps.find(order, HostTask.CORDON)
    if step is None or step.state in host_steps.SETTLED:
        return ()
    failed = step.state is StepState.FAILED
    why = f"{by_whom(step)} failed, {step.why}" if failed else f"{by_whom(step)} has not ended"
    return (Waiting(what=f"host {order.host}", reason=f"is not cordoned yet: {why}"),)


def by_whom(step: HostStep) -> str:
    """Return who does something to a host, in words."""
    return "its hook" if step.driver == HOOK else driver_named(step.driver)


# Cordons


def cordon(draft: Draft, order: Order) -> None:
    """Let the host of work that is announced take no more machines; one closed by others stays so."""
    host = draft.hosts.get(order.host) if order.host and order.action is Action.SERVICE else None
    if host is not None and host.state is HostState.OK:
        draft.record(Kind.HOST_CHANGED, host, by=order.by, reason=f"{host.state} to {HostState.CORDONED}")
        draft.put_host(replace(host, state=HostState.CORDONED, cordoned_for=order.id))


def release(draft: Draft, order: Order) -> str:
    """Let the host take machines again, if it is this order that has cordoned it.

    Return why it stays cordoned, and what to do about it, if it does.
    """
    host = draft.hosts.get(order.host) if order.host and order.action is Action.SERVICE else None
    if host is None or host.cordoned_for != order.id:
        return ""
    kept = _why_kept(order) if host.state is HostState.CORDONED else ""
    if kept:
        kept = f"host {host.name} stays cordoned, for {kept}, then `forewarn host uncordon {host.name}`"
        draft.record(Kind.HOST_CHANGED, host, by=order.by, reason=kept)
    elif host.state is HostState.CORDONED:
        draft.record(Kind.HOST_CHANGED, host, by=order.by, reason=f"{host.state} to {HostState.OK}")
        host = replace(host, state=HostState.OK)
    draft.put_host(replace(host, cordoned_for=None))
    return kept


def _why_kept(order: Order) -> str:
    """Return why a host takes no machines though its order was given up: nobody has looked at it yet."""
    if not order.terms.abandoned_by:
        return ""
    if unfit := _unfit(order):
        return unfit
    step = host_steps.find(order, HostTask.UNCORDON)
    if was_cordoned_by_step(order) and step is not None and step.state is not StepState.DONE:
        return f"{by_whom(step)} has not let it go ({step.why or step.state}): do that by hand"
    return ""


def _unfit(order: Order) -> str:
    """Return why the host cannot take machines before a person has looked at it; "" if it can."""
    if _is_half_done(order):
        return "the work on it was begun and is not finished: look at it, finish or undo that"
    health = host_steps.find(order, HostTask.HEALTH)
    if health is None or health.begun_at is None or health.state is StepState.DONE:
        return ""
    if health.state is StepState.FAILED:
        return f"it is not well ({health.why}): look at it"
    return "it is not known to be well: look at it"


def _is_half_done(order: Order) -> bool:
    """Return whether work on the host has begun and is not over; what nobody took up outside has not."""
    at_work = [step for step in order.host_steps if step.task in AT_WORK]
    done = all(step.state is StepState.DONE for step in at_work)
    return not done and any(map(_was_begun, at_work))


def _was_begun(step: HostStep) -> bool:
    untouched = step.driver == EXTERNAL and step.taken_up_at is None and step.state is StepState.MOOT
    return step.begun_at is not None and not untouched


# Letting go of a host whose work is given up


def was_cordoned_by_step(order: Order) -> bool:
    """Return whether a hook or a driver was asked to cordon the host, and one can undo it."""
    cordon = host_steps.find(order, HostTask.CORDON)
    uncordon = host_steps.find(order, HostTask.UNCORDON)
    return cordon is not None and cordon.begun_at is not None and uncordon is not None


def lets_go(draft: Draft, order: Order) -> HostStep | None:
    """Return the step that undoes what the order's hook has done to the host, if that is still to be done."""
    host = draft.hosts.get(order.host) if order.host else None
    step = host_steps.find(order, HostTask.UNCORDON)
    if host is None or host.cordoned_for != order.id or host.state is not HostState.CORDONED:
        return None
    waits = step is not None and step.state is StepState.WAITING and was_cordoned_by_step(order)
    return step if waits and not _unfit(order) else None


def uncordons_unfinished_host(order: Order, step: Step | HostStep) -> bool:
    """Return whether a step lets the host go of an order that was given up before the work was done."""
    at_work = (each for each in order.host_steps if each.task in AT_WORK)
    over = all(each.state is StepState.DONE for each in at_work)
    return isinstance(step, HostStep) and step.task is HostTask.UNCORDON and not over
