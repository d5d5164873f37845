"""Fencing: a machine is not recovered elsewhere while its old host may still run it (rule 13)."""

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


def advance(draft: Draft, order: Order, policy: Policy) -> Order:
    """Fence a failed host as soon as one of its machines needs it; until then its machines are down.

    A host with only departing machines is fenced too: the driver that removes them may never answer.
    """
    if order.action is not Action.FAIL or order.is_fenced:
        return order
    for step in order.steps:
        if step.state is StepState.WAITING:
            steps.take_down(draft, step)
    known = host_steps.find(order, HostTask.FENCE)
    fence = known or HostStep(task=HostTask.FENCE, driver=_driver(order, policy))
    if fence.state is not StepState.WAITING or not _is_needed(draft, order):
        return order
    return host_steps.put(order, host_steps.begin(draft, order, fence))


def _driver(order: Order, policy: Policy) -> str:
    """Return the driver that fences: a hook, the host's driver if it can fence, or an external program."""
    if order.terms.rehearsal:
        return SIMULATED
    if HostTask.FENCE in policy.hooks:
        return HOOK
    return order.driver if order.driver in policy.fencing else EXTERNAL


def is_host_fenced(draft: Draft, host: HostName | None) -> bool:
    """Return whether a host has failed and is fenced, so nothing runs on it."""
    known, failure = draft.hosts.get(host) if host else None, host_failures.newest_failure(draft, host)
    failed = known is not None and known.state is HostState.FAILED
    return failed and failure is not None and failure.is_fenced


def _is_needed(draft: Draft, order: Order) -> bool:
    waits = any(step.state is StepState.WAITING for step in order.steps)
    return waits or bool(host_failures.departing_machines(draft, order))


def cancel_unneeded(draft: Draft, order: Order) -> Order:
    """Make the fence step moot: no machine waits for it."""
    if order.action is not Action.FAIL:
        return order
    why = "no machine waits for it any more"
    return host_steps.with_steps(order, lambda step: host_steps.abandon(draft, step, why=why))


def why_not_fenced(draft: Draft, order: Order) -> tuple[Waiting, ...]:
    """Return that machines wait for their host to be fenced, and how an operator can confirm that it is."""
    if order.action is not Action.FAIL or order.is_fenced or not _is_needed(draft, order):
        return ()
    confirm = (
        f"`forewarn host fail {order.host} --fenced REASON` (POST /v1/hosts/{{name}}/fail) confirms that"
    )
    reason = f"its machines are recovered once it is fenced, so that none runs twice; {confirm}"
    return (Waiting(what=f"host {order.host}", reason=reason),)


def check_may_abandon(draft: Draft, order: Order) -> None:
    """Refuse to abandon machines that may still run on a failed host, so that no order starts them twice."""
    host = draft.hosts.get(order.host) if order.host else None
    away = host is not None and host.state is HostState.FAILED
    if away and why_not_fenced(draft, order):
        confirm = f"confirm that it is off (`forewarn host fail {order.host} --fenced REASON`)"
        raise Conflict(f'host "{order.host}" is failed, and not fenced: {confirm}, or restore it, first')
    for waits in host_failures.why_not_empty(draft, order):
        ways = "let that end, or restore the host, first"
        raise Conflict(f'host "{order.host}" is failed, and {waits}: {ways}')


def confirm_fenced(draft: Draft, host: Host, *, by: str, why: str) -> Order:
    """Record that an operator confirms that an already failed host is fenced."""
    order = host_failures.newest_failure(draft, host.name)
    if order is None or order.is_fenced:
        raise Conflict(f'host "{host.name}" is {host.state}, and nothing waits for it to be fenced')
    return confirm(draft, order, by=by, why=why)


def confirm(draft: Draft, order: Order, *, by: str, why: str) -> Order:
    """Record that an operator confirms that the host of a failure is fenced."""
    said = f"{by}: {why}" if by else why
    order = replace(order, terms=replace(order.terms, fenced=said))
    order = host_steps.with_steps(order, lambda step: host_steps.abandon(draft, step, why=said))
    _record(draft, order, by=by)
    draft.put_order(order)
    superseding.end_departures(draft, order)
    return draft.orders[order.id]


def _record(draft: Draft, order: Order, *, by: str) -> None:
    draft.record(Kind.HOST_FENCED, order, by=by, reason=f"confirmed by {order.terms.fenced}")
