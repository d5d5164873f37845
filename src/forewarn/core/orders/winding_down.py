"""Wind an order down: finish what has started, and begin nothing else.

This happens to the orders of an aborted rollout. Moves and work that have not started are cancelled, even
within a started event. Machines that have moved stay where they are: to bring them back would be new work,
which needs new notice.
"""

from dataclasses import replace

from forewarn.core.basic_types import (
    EXTERNAL,
    EventStatus,
    HostTask,
    Kind,
    OrderId,
    OrderState,
    StageKind,
    StageState,
    StepState,
)
from forewarn.core.draft import Draft
from forewarn.core.model.order import HostStep, Order, Stage, Step
from forewarn.core.orders import departures, events, host_steps, host_work, stages, steps
from forewarn.core.redaction import machine_names

# The reason names at most this many machines that have moved.
NAMED = 10


def begin(draft: Draft, order_id: OrderId, *, by: str, why: str) -> None:
    """Cancel everything in an order that has not started."""
    order = draft.orders[order_id]
    for event in draft.events_of(order_id):
        if event.status is EventStatus.SCHEDULED:
            events.end(draft, event, Kind.EVENT_CANCELLED, why=why, by=by)
    terms = replace(order.terms, winding_down=why, paused="")
    order = draft.put_order(replace(order, terms=terms, waiting=(), withdrawals=0))
    for index in range(len(order.stages)):
        order = draft.put_order(_cancel_unstarted(draft, order, index, why=why))
    order = host_steps.with_steps(order, lambda step: _host_step(draft, order, step, why=why))
    draft.wake([draft.put_order(order)])


def end(draft: Draft, order: Order) -> Order:
    """End an order after everything that had started, and name the machines that have moved."""
    work = host_steps.find(order, HostTask.WORK)
    if work is not None:
        done = work.state is StepState.DONE  # then only the return of the machines was cancelled
    else:
        cancelled = (step for step in order.steps if step.state is StepState.MOOT)
        done = all(step.why != order.terms.winding_down for step in cancelled)
    why = "; ".join(filter(None, (order.terms.winding_down, _moved(draft, order))))
    draft.record(Kind.ORDER_DONE if done else Kind.ORDER_CANCELLED, order, by=order.by, reason=why)
    host_work.uncordon(draft, order)
    return departures.ended(draft, order, OrderState.DONE if done else OrderState.CANCELLED, why=why)


def _cancel_unstarted(draft: Draft, order: Order, index: int, *, why: str) -> Order:
    """Cancel the steps of a stage that have not started, and remove their machines from its events."""
    stage = order.stages[index]
    off = {step.machine: step for step in stage.steps if _has_not_started(order, stage, step)}
    off |= {step.machine: step for step in stage.steps if _failed_unstarted(draft, order, index, step)}
    for event in draft.events_of(order.id):
        for machine in off if event.stage == index else ():
            events.remove_machine(draft, draft.events[event.id], machine, why=why)
    moot = {machine: steps.abandon(draft, order, step, why=why) for machine, step in off.items()}
    for machine in off:
        departures.wake_others(draft, order, machine)
    order = stages.put_steps(order, index, moot)
    if stage.state in (StageState.QUEUED, StageState.ANNOUNCED):
        order = stages.put_stage(order, index, replace(order.stages[index], state=StageState.DONE))
    return order


def _has_not_started(order: Order, stage: Stage, step: Step) -> bool:
    """Return whether a step has not started: a move starts by itself, other work starts with its stage."""
    if _is_not_taken_up(order, step):
        return True
    if stage.kind is StageKind.HOST and not _is_work_begun(order):
        return step.state in (StepState.WAITING, StepState.RUNNING)
    by_itself = stages.starts_per_event(stage) or stage.state is not StageState.STARTED
    return by_itself and step.state is StepState.WAITING


def _failed_unstarted(draft: Draft, order: Order, index: int, step: Step) -> bool:
    """Return whether a step failed before it started, so that a retry would announce or begin it.

    The driver refused it in advance, or no host could take its machine. A failed move that now goes another
    way has not started either: no event has announced that.
    """
    if step.state is not StepState.FAILED or step.begun_at is None:
        return step.state is StepState.FAILED
    started = (event for event in draft.events_of(order.id) if event.status is EventStatus.STARTED)
    told = any(event.stage == index and events.announced_steps(event, (step,)) for event in started)
    return stages.starts_per_event(order.stages[index]) and not told


def _is_work_begun(order: Order) -> bool:
    work = host_steps.find(order, HostTask.WORK)
    return work is not None and work.begun_at is not None and not _is_not_taken_up(order, work)


def _is_not_taken_up(order: Order, step: Step | HostStep) -> bool:
    """Return whether an external program may begin a step, and has not reported that it did."""
    outside = order.driver_of(step) == EXTERNAL and step.taken_up_at is None
    return outside and step.state is StepState.RUNNING


def _host_step(draft: Draft, order: Order, step: HostStep, *, why: str) -> HostStep:
    """Cancel a host step, unless it belongs to work that has started or undoes that work."""
    before = host_steps.find(order, HostTask.BEFORE)
    undoes_before = step.task is HostTask.AFTER and before is not None and before.begun_at is not None
    uncordons = step.task is HostTask.UNCORDON and host_work.was_cordoned_by_step(order)
    goes_on = _is_work_begun(order) or undoes_before or uncordons
    unstarted = step.state is StepState.WAITING or _is_not_taken_up(order, step)
    return host_steps.abandon(draft, step, why=why) if unstarted and not goes_on else step


def _moved(draft: Draft, order: Order) -> str:
    """Name the machines that have left the host, and their hosts now."""
    left = (stage.steps for stage in order.stages if stage.kind is StageKind.EVACUATE)
    moved = [draft.machines.get(step.machine) for its in left for step in its if step.state is StepState.DONE]
    there = [
        f"{machine_names([each.name])} on {each.host}"
        for each in moved
        if each is not None and each.host != order.host
    ]
    more = f" and {len(there) - NAMED} more" if len(there) > NAMED else ""
    return f"machines that have moved stay there: {', '.join(there[:NAMED])}{more}" if there else ""
