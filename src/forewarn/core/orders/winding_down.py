"""Orders that end early: what has started ends, and nothing else of them begins.

The orders of an aborted rollout do. Moves and work that have not started are called off, also within an
event that has started; nothing is announced any more. Machines that have moved stay where they are, for to
bring them back would be new work with new notice.
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
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.order import HostStep, Order, Stage, Step
from forewarn.core.orders import departures, events, host_steps, host_work, stages, steps
from forewarn.core.redaction import machine_names

# So many machines are named that stay where they have moved.
NAMED = 10


def begin(draft: Draft, order: OrderId, *, by: str, why: str) -> None:
    """Call off all of an order that has not started; what has started goes on to its end."""
    mine = draft.orders[order]
    for event in draft.events_of(order):
        if event.status is EventStatus.SCHEDULED:
            events.end(draft, event, Kind.EVENT_CANCELLED, why=why, by=by)
    terms = replace(mine.terms, winding_down=why, paused="")
    mine = draft.put_order(replace(mine, terms=terms, waiting=(), withdrawals=0))
    for index in range(len(mine.stages)):
        mine = draft.put_order(_called_off(draft, mine, index, why=why))
    mine = host_steps.with_steps(mine, lambda step: _host_step(draft, mine, step, why=why))
    draft.wake([draft.put_order(mine)])


def waiting(order: Order) -> tuple[Waiting, ...]:
    """Return why nothing more of an order begins, if that is so."""
    why = order.terms.winding_down
    ends = f"ends once what has started is over: {why}"
    return (Waiting(what=f"order {order.id}", reason=ends),) if why else ()


def end(draft: Draft, order: Order) -> Order:
    """End an order of which all is over that had started, and say which machines are elsewhere now."""
    done = not _was_called_off(order)
    why = "; ".join(filter(None, (order.terms.winding_down, _away(draft, order))))
    draft.record(Kind.ORDER_DONE if done else Kind.ORDER_CANCELLED, order, by=order.by, reason=why)
    host_work.release(draft, order)
    return departures.ended(draft, order, OrderState.DONE if done else OrderState.CANCELLED, why=why)


def _called_off(draft: Draft, order: Order, index: int, *, why: str) -> Order:
    """Call off the steps of a stage that have not started, and take their machines out of its events."""
    stage = order.stages[index]
    off = {step.machine: step for step in stage.steps if _has_not_started(order, stage, step)}
    off |= {step.machine: step for step in stage.steps if _failed_unstarted(draft, order, index, step)}
    for event in draft.events_of(order.id):
        for machine in off if event.stage == index else ():
            events.take_out(draft, draft.events[event.id], machine, why=why)
    moot = {machine: steps.abandon(draft, order, step, why=why) for machine, step in off.items()}
    for machine in off:
        departures.wake_others(draft, order, machine)
    order = stages.put_steps(order, index, moot)
    if stage.state in (StageState.QUEUED, StageState.ANNOUNCED):
        order = stages.put_stage(order, index, replace(order.stages[index], state=StageState.DONE))
    return order


def _has_not_started(order: Order, stage: Stage, step: Step) -> bool:
    """Return whether a step is called off: each move starts by itself, all else with its stage."""
    if _is_not_taken_up(order, step):
        return True
    if stage.kind is StageKind.HOST and not _is_work_begun(order):
        return step.state in (StepState.WAITING, StepState.RUNNING)
    by_itself = stages.is_apart(stage) or stage.state is not StageState.STARTED
    return by_itself and step.state is StepState.WAITING


def _failed_unstarted(draft: Draft, order: Order, index: int, step: Step) -> bool:
    """Return whether a step failed before it started, so that a retry would announce it or begin it.

    Its driver has refused it beforehand, or no host would take its machine. A move that failed and now goes
    in another way has not started either: no event has told guests of that.
    """
    if step.state is not StepState.FAILED or step.begun_at is None:
        return step.state is StepState.FAILED
    started = (event for event in draft.events_of(order.id) if event.status is EventStatus.STARTED)
    told = any(event.stage == index and events.told_by(event, (step,)) for event in started)
    return stages.is_apart(order.stages[index]) and not told


def _is_work_begun(order: Order) -> bool:
    work = host_steps.find(order, HostTask.WORK)
    return work is not None and work.begun_at is not None and not _is_not_taken_up(order, work)


def _is_not_taken_up(order: Order, step: Step | HostStep) -> bool:
    """Return whether a program outside forewarn may begin a step, and has not reported that it did."""
    outside = order.driver_of(step) == EXTERNAL and step.taken_up_at is None
    return outside and step.state is StepState.RUNNING


def _host_step(draft: Draft, order: Order, step: HostStep, *, why: str) -> HostStep:
    """Call off a step on the host, unless it belongs to what has started or undoes that."""
    before = host_steps.find(order, HostTask.BEFORE)
    undoes_before = step.task is HostTask.AFTER and before is not None and before.begun_at is not None
    uncordons = step.task is HostTask.UNCORDON and host_work.was_cordoned_by_step(order)
    goes_on = _is_work_begun(order) or undoes_before or uncordons
    may_be_called_off = step.state is StepState.WAITING or _is_not_taken_up(order, step)
    if goes_on or not may_be_called_off:
        return step
    return host_steps.abandon(draft, step, why=why)


def _was_called_off(order: Order) -> bool:
    """Return whether work was called off; of work on a host that is done, only the way back was."""
    work = host_steps.find(order, HostTask.WORK)
    if work is not None:
        return work.state is not StepState.DONE
    why = order.terms.winding_down
    return any(step.state is StepState.MOOT and step.why == why for step in order.steps)


def _away(draft: Draft, order: Order) -> str:
    """Name the machines that have left the host, and where they are."""
    left = (stage.steps for stage in order.stages if stage.kind is StageKind.EVACUATE)
    moved = [draft.machines.get(step.machine) for its in left for step in its if step.state is StepState.DONE]
    there = [
        f"{machine_names([each.name])} on {each.host}"
        for each in moved
        if each is not None and each.host != order.host
    ]
    more = f" and {len(there) - NAMED} more" if len(there) > NAMED else ""
    return f"machines that have moved stay there: {', '.join(there[:NAMED])}{more}" if there else ""
