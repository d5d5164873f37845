"""Fencing: no machine comes back elsewhere while the host that it was on may still touch it (rule 13)."""

from forewarn.core.copies import replace
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict
from forewarn.core.model.host import Host
from forewarn.core.model.order import HostStep, Order
from forewarn.core.model.waiting import Waiting
from forewarn.core.orders import departures, host_steps, stages, steps
from forewarn.core.policy import Policy
from forewarn.core.words import EXTERNAL, HOOK, SIMULATED, Action, HostState, HostTask, Kind, StepState


def go_on(draft: Draft, order: Order, policy: Policy) -> Order:
    """Have a failed host fenced as soon as a machine is to be recovered; all of them are down until then."""
    if order.action is not Action.FAIL or is_fenced(order):
        return order
    waiting = [step for step in order.steps if step.state is StepState.WAITING]
    for step in waiting:
        steps.take_down(draft, step)
    known = host_steps.find(order, HostTask.FENCE)
    fence = known or HostStep(task=HostTask.FENCE, driver=_driver(order, policy))
    if fence.state is not StepState.WAITING or not waiting:
        return order
    return host_steps.put(order, host_steps.begin(draft, order, fence))


def _driver(order: Order, policy: Policy) -> str:
    """Return who fences: a hook, the host's own driver if it can; else it is for those outside to do."""
    if order.terms.rehearsal:
        return SIMULATED
    if HostTask.FENCE in policy.hooks:
        return HOOK
    return order.driver if order.driver in policy.fencing else EXTERNAL


def is_fenced(order: Order) -> bool:
    """Return whether the machines of a failed host may be recovered."""
    fence = host_steps.find(order, HostTask.FENCE)
    return bool(order.terms.fenced) or (fence is not None and fence.state is StepState.DONE)


def not_fenced(order: Order) -> tuple[Waiting, ...]:
    """Return that machines wait for their host to be fenced, and what to do about it."""
    waits = any(step.state is StepState.WAITING for step in order.steps)
    if order.action is not Action.FAIL or is_fenced(order) or not waits:
        return ()
    vouch = f"`forewarn host fail {order.host} --fenced REASON` (POST /v1/hosts/{{name}}/fail) vouches for it"
    reason = f"its machines are recovered once it is fenced, so that none runs twice; {vouch}"
    return (Waiting(what=f"host {order.host}", reason=reason),)


def not_empty(draft: Draft, order: Order) -> tuple[Waiting, ...]:
    """Return the machines that are just leaving a failed host: if that fails, they are recovered too."""
    host = draft.hosts.get(order.host) if order.host and order.action is Action.FAIL else None
    if host is None or host.state is not HostState.FAILED:
        return ()
    there, departing = draft.machines_on(host.name), stages.departing(draft)
    leaving = ((machine.name, departing[machine.id]) for machine in there if machine.id in departing)
    return tuple(
        Waiting(what=name, reason=f"waits for order {by.id} ({by.action}) to finish with it")
        for name, by in leaving
    )


def check_abandoned(draft: Draft, order: Order) -> None:
    """Refuse to give machines up that may still run on a failed host: they could be started elsewhere."""
    host = draft.hosts.get(order.host) if order.host else None
    away = host is not None and host.state is HostState.FAILED
    if away and not_fenced(order):
        vouch = f"vouch for it (`forewarn host fail {order.host} --fenced REASON`)"
        raise Conflict(f'host "{order.host}" is failed, and not fenced: {vouch}, or restore it, first')
    for waits in not_empty(draft, order):
        ways = "let that end, or restore the host, first"
        raise Conflict(f'host "{order.host}" is failed, and {waits}: {ways}')


def vouched_from_the_start(draft: Draft, order: Order) -> Order:
    """Note who vouches for a host that is only now said to have failed."""
    if not order.terms.fenced:
        return order
    said = replace(order, terms=replace(order.terms, fenced=_said(order.by, order.terms.fenced)))
    _record(draft, said, by=order.by)
    return draft.put_order(said)


def vouch(draft: Draft, host: Host, *, by: str, why: str) -> Order:
    """Take somebody's word that a failed host touches its machines no more; they are recovered now."""
    failed = (order for order in departures.orders_on(draft, host.name) if order.action is Action.FAIL)
    order = next(failed, None)
    if order is None or is_fenced(order):
        raise Conflict(f'host "{host.name}" is {host.state}, and nothing waits for it to be fenced')
    said = _said(by, why)
    order = replace(order, terms=replace(order.terms, fenced=said))
    order = host_steps.with_steps(order, lambda step: host_steps.abandon(draft, step, why=said))
    _record(draft, order, by=by)
    return draft.put_order(order)


def _said(by: str, why: str) -> str:
    return f"{by}: {why}" if by else why


def _record(draft: Draft, order: Order, *, by: str) -> None:
    draft.record(Kind.HOST_FENCED, order, by=by, reason=f"vouched for by {order.terms.fenced}")
