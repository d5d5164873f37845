"""Work on the host itself: cordon it, run the hooks and the work, check its health and uncordon it.

The host takes machines again only after its health check. A host that is not healthy stays cordoned.
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
from forewarn.core.orders import departures, host_steps, service, steps
from forewarn.core.policy import Policy
from forewarn.core.redaction import driver_named

# The order of the tasks. A failed host has only the fence task.
TURNS = (
    HostTask.CORDON,
    HostTask.BEFORE,
    HostTask.WORK,
    HostTask.AFTER,
    HostTask.HEALTH,
    HostTask.UNCORDON,
)
# Tasks of a driver whose hypervisor would otherwise place machines on the host. A hook overrides them.
CORDONS = frozenset({HostTask.CORDON, HostTask.UNCORDON})
# If one of these was begun and not finished, a person must look at the host.
AT_WORK = frozenset({HostTask.BEFORE, HostTask.WORK, HostTask.AFTER})


def plan(order: Order, policy: Policy, cordoned_by: str) -> tuple[HostStep, ...]:
    """Return the host steps of a new order: the work, the hooks, and the cordon of the host's own driver.

    A rollout that treats only machines has the health check alone.
    """
    hooks = frozenset[HostTask]() if order.terms.rehearsal else policy.hooks  # a rehearsal calls no hook
    if order.action is not Action.SERVICE:
        hooks = hooks & {HostTask.HEALTH} if order.terms.rollout is not None else frozenset()
    drivers = dict.fromkeys(hooks, HOOK)
    if order.action is Action.SERVICE:
        really = not order.terms.rehearsal and not order.simulated
        if really and cordoned_by in policy.cordoning and HostTask.CORDON not in hooks:
            drivers = dict.fromkeys(CORDONS, cordoned_by) | drivers
        worker = order.driver if order.driver in policy.working_on_hosts else EXTERNAL
        drivers[HostTask.WORK] = order.terms.host_driver or drivers.get(HostTask.WORK, worker)
    return tuple(HostStep(task=task, driver=drivers[task]) for task in TURNS if task in drivers)


def advance(draft: Draft, order: Order, policy: Policy) -> Order:
    """Begin the next host step, and mark the machines that restarted with the host."""
    step = next((step for step in order.host_steps if step.state not in steps.FINISHED), None)
    if step is not None and step.state is StepState.WAITING and _may_begin(order, step.task):
        order = host_steps.put(order, host_steps.begin(draft, order, step))
    work = (step for step in order.host_steps if step.task is HostTask.WORK)
    # Other drivers verify that the machines run (`Order.driven`).
    if steps.all_finished(work) and order.driver not in policy.verifying_restarts:
        order = _restarted(draft, order)
    if is_settled(order) and not order.terms.winding_down:
        uncordon(draft, order)
    return order


def check_health(draft: Draft, order: Order) -> Order:
    """Begin the health check of a host after its machines were treated."""
    step = host_steps.find(order, HostTask.HEALTH)
    if order.action is Action.SERVICE or step is None or step.state is not StepState.WAITING:
        return order
    return host_steps.put(order, host_steps.begin(draft, order, step))


def _may_begin(order: Order, task: HostTask) -> bool:
    if task is HostTask.CORDON:
        return any(stage.state is not StageState.QUEUED for stage in order.stages)
    stage = service.stage_of(order, StageKind.HOST)
    if stage is not None and stage.started_at is not None:
        return True
    # An order that winds down without work on the host only uncordons it.
    return bool(order.terms.winding_down) and steps.all_finished(order.steps)


def _restarted(draft: Draft, order: Order) -> Order:
    """Mark the machines that restarted with the host as done, and wake orders that wait for them."""

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


def is_settled(order: Order) -> bool:
    """Return whether all host steps are done or moot."""
    return steps.all_finished(order.host_steps)


def why_not_cordoned(order: Order) -> tuple[Waiting, ...]:
    """Return that machines wait until the host is cordoned: otherwise others might still be placed there."""
    step = host_steps.find(order, HostTask.CORDON)
    if step is None or step.state in steps.FINISHED:
        return ()
    failed = step.state is StepState.FAILED
    why = f"{_actor(step)} failed, {step.why}" if failed else f"{_actor(step)} has not ended"
    return (Waiting(what=f"host {order.host}", reason=f"is not cordoned yet: {why}"),)


def _actor(step: HostStep) -> str:
    return "its hook" if step.driver == HOOK else driver_named(step.driver)


# Cordon and uncordon


def cordon(draft: Draft, order: Order) -> None:
    """Cordon the host for announced work on it. A host that is closed for another cause stays as it is."""
    host = draft.hosts.get(order.host) if order.host and order.action is Action.SERVICE else None
    if host is not None and host.state is HostState.OK:
        draft.record(Kind.HOST_CHANGED, host, by=order.by, reason=f"{host.state} to {HostState.CORDONED}")
        draft.put_host(replace(host, state=HostState.CORDONED, cordoned_for=order.id))


def uncordon(draft: Draft, order: Order) -> str:
    """Uncordon the host if this order has cordoned it.

    If the host must stay cordoned, return why, and what the operator can do.
    """
    host = draft.hosts.get(order.host) if order.host and order.action is Action.SERVICE else None
    if host is None or host.cordoned_for != order.id:
        return ""
    kept = _why_kept(order) if host.state is HostState.CORDONED else ""
    if kept:
        kept = f"host {host.name} stays cordoned: {kept}, then `forewarn host uncordon {host.name}`"
        draft.record(Kind.HOST_CHANGED, host, by=order.by, reason=kept)
    elif host.state is HostState.CORDONED:
        draft.record(Kind.HOST_CHANGED, host, by=order.by, reason=f"{host.state} to {HostState.OK}")
        host = replace(host, state=HostState.OK)
    draft.put_host(replace(host, cordoned_for=None))
    return kept


def _why_kept(order: Order) -> str:
    """Return why the host of an abandoned order must stay cordoned."""
    if not order.terms.abandoned_by:
        return ""
    if unfit := _unfit(order):
        return unfit
    step = host_steps.find(order, HostTask.UNCORDON)
    if was_cordoned_by_step(order) and step is not None and step.state is not StepState.DONE:
        return f"{_actor(step)} has not uncordoned it ({step.why or step.state}): do that by hand"
    return ""


def _unfit(order: Order) -> str:
    """Return why a person must look at the host before it takes machines, or ""."""
    at_work = [step for step in order.host_steps if step.task in AT_WORK]
    done = all(step.state is StepState.DONE for step in at_work)
    if not done and any(map(_was_begun, at_work)):
        return "the work on it has begun and is not finished: check it, finish or undo that"
    health = host_steps.find(order, HostTask.HEALTH)
    if health is None or health.begun_at is None or health.state is StepState.DONE:
        return ""
    if health.state is StepState.FAILED:
        return f"it is not healthy ({health.why}): check it"
    return "it is not known to be healthy: check it"


def _was_begun(step: HostStep) -> bool:
    """Return whether a host step was begun. A cancelled step that no external program took up was not."""
    untouched = step.driver == EXTERNAL and step.taken_up_at is None and step.state is StepState.MOOT
    return step.begun_at is not None and not untouched


# Uncordon the host of an order that was abandoned


def was_cordoned_by_step(order: Order) -> bool:
    """Return whether a hook or a driver began to cordon the host, and can uncordon it."""
    cordon = host_steps.find(order, HostTask.CORDON)
    uncordon = host_steps.find(order, HostTask.UNCORDON)
    return cordon is not None and cordon.begun_at is not None and uncordon is not None


def pending_uncordon(draft: Draft, order: Order) -> HostStep | None:
    """Return the step that must still uncordon the host, or None."""
    host = draft.hosts.get(order.host) if order.host else None
    step = host_steps.find(order, HostTask.UNCORDON)
    if host is None or host.cordoned_for != order.id or host.state is not HostState.CORDONED:
        return None
    waits = step is not None and step.state is StepState.WAITING and was_cordoned_by_step(order)
    return step if waits and not _unfit(order) else None


def uncordons_unfinished_host(order: Order, step: Step | HostStep) -> bool:
    """Return whether a step uncordons the host of an order whose work was not done."""
    at_work = (each for each in order.host_steps if each.task in AT_WORK)
    over = all(each.state is StepState.DONE for each in at_work)
    return isinstance(step, HostStep) and step.task is HostTask.UNCORDON and not over
