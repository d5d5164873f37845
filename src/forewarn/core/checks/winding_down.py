"""Orders of aborted rollouts: what has started ends, and nothing else begins."""

from collections.abc import Iterator

from forewarn.core.checks.change import Change
from forewarn.core.model.order import Order
from forewarn.core.words import HostTask

# These follow what has begun: they undo it, or see whether the host can be given back.
_FOLLOWING = (HostTask.AFTER, HostTask.HEALTH, HostTask.UNCORDON)


def nothing_begins_that_winds_down(change: Change) -> Iterator[str]:
    """Of an order that winds down nothing is announced, and no step begins that had not begun before."""
    for id_, order in change.after.orders.items():
        known = change.before.orders.get(id_)
        if not order.terms.winding_down or known is None:
            continue
        for event in change.after.events.values():
            if event.order == id_ and event.id not in change.before.events:
                yield f"{event.id} was announced for {id_}, which winds down"
        for what in sorted(_begun(order) - _begun(known)):
            yield f"{what} of {id_} began, which winds down"


def _begun(order: Order) -> set[str]:
    moves = {
        f"{stage.kind} of {step.name}"
        for stage in order.stages
        for step in stage.steps
        if step.begun_at is not None
    }
    on_host = (step for step in order.host_steps if step.begun_at is not None)
    return moves | {f"{step.task} of the host" for step in on_host if step.task not in _FOLLOWING}
