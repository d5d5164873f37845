"""Fencing: no machine comes back elsewhere while the host that it was on may still touch it (rule 13)."""

from dataclasses import replace

from forewarn.core.basic_types import (
    EXTERNAL,
    HOOK,
    SIMULATED,
    Action,
    HostName,
    HostState,
    HostTask,
    Kind,
    StepState,
)
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.host import Host
from forewarn.core.model.order import HostStep, Order
from forewarn.core.orders import host_failures, host_steps, steps, superseding
from forewarn.core.policy import Policy


def go_on(draft: Draft, order: Order, policy: Policy) -> Order:
    """Have a failed host fenced as soon as a machine is to be recovered; all of them are down until then.

    So is one that only carries machines that are just leaving: whoever sees to that may not answer any more.
    """
    if order.action is not Action.FAIL or is_fenced(order):
        return order
    waiting = [step for step in order.steps if step.state is StepState.WAITING]
    for step in waiting:
        steps.take_down(draft, step)
    known = host_steps.find(order, HostTask.FENCE)
    fence = known or HostStep(task=HostTask.FENCE, driver=_driver(order, policy))
    if fence.state is not StepState.WAITING or not _is_needed(draft, order):
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
    return order.is_fenced


def is_gone(draft: Draft, host: HostName | None) -> bool:
    """Return whether nothing runs on a host any more, for it has failed and is fenced."""
    known, failure = draft.hosts.get(host) if host else None, host_failures.newest_of(draft, host)
    failed = known is not None and known.state is HostState.FAILED
    return failed and failure is not None and is_fenced(failure)


def _is_needed(draft: Draft, order: Order) -> bool:
    """Return whether anybody waits for a failed host to be fenced."""
    waits = any(step.state is StepState.WAITING for step in order.steps)
    return waits or bool(host_failures.leaving(draft, order))


def let_be(draft: Draft, order: Order) -> Order:
    """Fence a host no more that nobody waits for."""
    if order.action is not Action.FAIL:
        return order
    why = "nobody waits for it any more"
    return host_steps.with_steps(order, lambda step: host_steps.abandon(draft, step, why=why))


def not_fenced(draft: Draft, order: Order) -> tuple[Waiting, ...]:
    """Return that machines wait for their host to be fenced, and what to do about it."""
    if order.action is not Action.FAIL or is_fenced(order) or not _is_needed(draft, order):
        return ()
    vouch = f"`forewarn host fail {order.host} --fenced REASON` (POST /v1/hosts/{{name}}/fail) vouches for it"
    reason = f"its machines are recovered once it is fenced, so that none runs twice; {vouch}"
    return (Waiting(what=f"host {order.host}", reason=reason),)


def check_abandoned(draft: Draft, order: Order) -> None:
    """Refuse to give machines up that may still run on a failed host: they could be started elsewhere."""
    host = draft.hosts.get(order.host) if order.host else None
    away = host is not None and host.state is HostState.FAILED
    if away and not_fenced(draft, order):
        vouch = f"vouch for it (`forewarn host fail {order.host} --fenced REASON`)"
        raise Conflict(f'host "{order.host}" is failed, and not fenced: {vouch}, or restore it, first')
    for waits in host_failures.not_empty(draft, order):
        ways = "let that end, or restore the host, first"
        raise Conflict(f'host "{order.host}" is failed, and {waits}: {ways}')


def vouched_from_the_start(draft: Draft, order: Order) -> Order:
    """Note who vouches for a host that is only now said to have failed."""
    if not order.terms.fenced:
        return order
    said = replace(order, terms=replace(order.terms, fenced=_said(order.by, order.terms.fenced)))
    return _vouched(draft, said, by=order.by)


def vouch(draft: Draft, host: Host, *, by: str, why: str) -> Order:
    """Take somebody's word that a failed host touches its machines no more; they are recovered now."""
    order = host_failures.newest_of(draft, host.name)
    if order is None or is_fenced(order):
        raise Conflict(f'host "{host.name}" is {host.state}, and nothing waits for it to be fenced')
    said = _said(by, why)
    order = replace(order, terms=replace(order.terms, fenced=said))
    order = host_steps.with_steps(order, lambda step: host_steps.abandon(draft, step, why=said))
    return _vouched(draft, order, by=by)


def _vouched(draft: Draft, order: Order, *, by: str) -> Order:
    _record(draft, order, by=by)
    draft.put_order(order)
    superseding.end_departures(draft, order)
    return draft.orders[order.id]


def _said(by: str, why: str) -> str:
    return f"{by}: {why}" if by else why


def _record(draft: Draft, order: Order, *, by: str) -> None:
    draft.record(Kind.HOST_FENCED, order, by=by, reason=f"vouched for by {order.terms.fenced}")
