"""Hosts that drivers cannot reach, and hosts that do not come back from work on them."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from forewarn.core.basic_types import FOREWARN, Action, HostName, HostState, HostTask, Kind, StepState
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import HostStep, Order, Step
from forewarn.core.time_formats import format_span, format_span_briefly, format_time
from forewarn.core.orders import departures, host_steps
from forewarn.core.policy import Policy


def note_unreachable(draft: Draft, host: HostName, *, why: str) -> None:
    """Note that the driver of a host cannot reach it; nothing if that is known."""
    known = draft.hosts.get(host)
    if known is None or known.unreachable_since is not None:
        return
    draft.put_host(replace(known, unreachable_since=draft.now))
    draft.record(Kind.HOST_UNREACHABLE, known, by=FOREWARN, reason=why)


def note_reachable(draft: Draft, host: HostName, *, why: str = "") -> None:
    """Note that a host can be used again; nothing if that is known. What waits for it is looked at."""
    known = draft.hosts.get(host)
    if known is None or known.unreachable_since is None:
        return
    away = format_span_briefly((draft.now - known.unreachable_since).total_seconds())
    draft.put_host(replace(known, unreachable_since=None))
    draft.record(Kind.HOST_REACHABLE, known, by=FOREWARN, reason=why or f"after {away}")


AWAY = frozenset({HostState.LOST, HostState.FAILED})
# Found out later than that, the service was away itself, or its clock has jumped ...
LATE = timedelta(minutes=1)
# ... and those who do the work are heard first.
HEARD_WITHIN = timedelta(minutes=5)


def look(draft: Draft, order: Order, policy: Policy) -> Order:
    """Take the host of an order to be lost if the work on it has run for too long."""
    work, host = _work(order), _host(draft, order)
    if work is None or host is None or host.state in AWAY:
        return order
    back_by = work.back_by or (work.begun_at or draft.now) + policy.return_by
    if draft.now - back_by > LATE:
        back_by = draft.now + HEARD_WITHIN
    if draft.now < back_by:
        return host_steps.put(order, replace(work, back_by=back_by))
    draft.put_host(replace(host, state=HostState.LOST))
    why = f"not back by {format_time(back_by)}, {format_span(draft.now - (work.begun_at or draft.now))} after"
    draft.record(Kind.HOST_LOST, order, by=FOREWARN, reason=f"{why} the work on it began")
    return host_steps.put(order, replace(work, back_by=back_by, host_was=host.state))


def due_at(draft: Draft, order: Order) -> datetime | None:
    """Return when the host of an order is to be back, if it is not lost already."""
    work, host = _work(order), _host(draft, order)
    is_away = host is None or host.state in AWAY
    return None if work is None or is_away else work.back_by


def lost(draft: Draft, order: Order) -> tuple[Waiting, ...]:
    """Return that the host of an order is lost, and what there is to choose."""
    work, host = _work(order), _host(draft, order)
    if work is None or host is None or host.state is not HostState.LOST:
        return ()
    late = "" if work.back_by is None else f"it was to be back by {format_time(work.back_by)}; "
    fail = f"`forewarn host fail {host.name}` fences it and recovers its machines"
    wait = f"`forewarn host wait {host.name}` gives it more time"
    reason = f"lost: {late}{fail}, {wait}; if it comes back, it goes on by itself"
    return (Waiting(what=f"host {host.name}", reason=reason, stuck=True),)


def strands(draft: Draft, order: Order, step: Step) -> bool:
    """Return whether an order cannot move a machine because its host is away (rule 13)."""
    machine = draft.machines.get(step.machine)
    away = machine is not None and is_away(draft, machine)
    return away and step.moves and order.action is not Action.FAIL


def is_away(draft: Draft, machine: Machine) -> bool:
    """Return whether the host of a machine has failed or is lost."""
    host = draft.hosts.get(machine.host) if machine.host is not None else None
    return host is not None and host.state in AWAY


def stranded(draft: Draft, order: Order, affected: Iterable[Step]) -> tuple[Waiting, ...]:
    """Return the machines that cannot be moved because their host is away."""
    return tuple(
        Waiting(
            what=step.name,
            reason=f"is on {draft.machines[step.machine].host}, which is away: fail that first",
        )
        for step in affected
        if step.state is StepState.WAITING and strands(draft, order, step)
    )


def come_back(draft: Draft, order: Order, step: HostStep) -> None:
    """Let a host that was lost be what it was before, now that word of the work on it has come."""
    host = _host(draft, order)
    if step.task is HostTask.WORK and host is not None and host.state is HostState.LOST:
        _is_back(draft, order, host, step, by=FOREWARN, why="word of the work on it has come")


def wait(draft: Draft, host: Host, *, by: str, why: str = "", policy: Policy) -> Order:
    """Give a host that is lost as much time again to come back."""
    orders = departures.orders_on(draft, host.name)
    order = next((each for each in orders if _work(each) is not None), None)
    work = None if order is None else _work(order)
    if host.state is HostState.LOST and work is None:
        ways = "retry its order, fail it, or abandon its order and restore it"
        raise Conflict(f'host "{host.name}" is lost, and no work on it is under way: {ways}')
    if order is None or work is None or host.state is not HostState.LOST:
        raise Conflict(f'host "{host.name}" is {host.state}: only one that is lost is waited for')
    back_by = draft.now + policy.return_by
    said = f"waited for until {format_time(back_by)}"
    _is_back(draft, order, host, work, by=by, why=f"{said}: {why}" if why else said)
    again = replace(work, back_by=back_by, host_was=None)
    return draft.put_order(host_steps.put(draft.orders[order.id], again))


def _is_back(draft: Draft, order: Order, host: Host, step: HostStep, *, by: str, why: str) -> None:
    state = step.host_was or HostState.CORDONED
    draft.put_host(replace(host, state=state))
    wake(draft, host.name)
    reason = f"{host.state} to {state}: {why}"
    draft.record(Kind.HOST_CHANGED, host, order=order.id, by=by, reason=reason)


def wake(draft: Draft, host: HostName) -> None:
    """Have the orders on the machines of a host looked at that is not away any more."""
    for machine in draft.machines_on(host):
        draft.wake(departures.open_orders_with(draft, machine.id))


def _work(order: Order) -> HostStep | None:
    """Find the work on a host itself, while it runs."""
    step = host_steps.find(order, HostTask.WORK)
    return step if step is not None and step.state is StepState.RUNNING else None


def _host(draft: Draft, order: Order) -> Host | None:
    return None if order.host is None else draft.hosts.get(order.host)
