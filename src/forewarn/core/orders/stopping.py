"""Holds that stop what is under way: drivers are asked to call it off, and nothing more of it begins."""

from dataclasses import replace

from forewarn.core.admission import holds
from forewarn.core.draft import Draft
from forewarn.core.model.constraints import Hold
from forewarn.core.model.order import Order
from forewarn.core.orders import abandonment
from forewarn.core.words import Action, OrderId, StageState, StepState

_NOT_OVER = (StepState.WAITING, StepState.RUNNING)


def stop(draft: Draft, order: OrderId, hold: Hold) -> bool:
    """Call an order off that a hold reaches while it is under way; return whether it is."""
    mine = draft.orders[order]
    if not (_is_under_way(mine) and _is_reached(draft, mine, hold)):
        return False
    terms = replace(mine.terms, stopped_by=hold.id, stopped_because=hold.reason)
    abandonment.begin(draft, draft.put_order(replace(mine, terms=terms)), by=hold.by)
    return True


def _is_under_way(order: Order) -> bool:
    """Return whether steps of it run or may begin at any moment.

    Machines of a failed host are down: bringing them back is not called off.
    """
    if not order.open or order.terms.abandoned_by or order.action is Action.FAIL:
        return False
    started = (stage for stage in order.stages if stage.state is StageState.STARTED)
    machines = any(step.state in _NOT_OVER for stage in started for step in stage.steps)
    return machines or bool(order.running_host_steps)


def _is_reached(draft: Draft, order: Order, hold: Hold) -> bool:
    known = [draft.machines[step.machine] for step in order.steps if step.machine in draft.machines]
    hosts = {order.host, *(machine.host for machine in known)}
    return bool(holds.reaching([hold], hosts=hosts, projects={machine.project for machine in known}))
