"""Hosts that their driver cannot reach, and hosts that do not come back from work on them."""

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
from forewarn.core.orders import departures, host_steps
from forewarn.core.policy import Policy
from forewarn.core.time_formats import format_span, format_span_briefly, format_time


def note_unreachable(draft: Draft, host: HostName, *, why: str) -> None:
    """Note that the driver of a host cannot reach it, unless that is known."""
    known = draft.hosts.get(host)
    if known is None or known.unreachable_since is not None:
        return
    draft.put_host(replace(known, unreachable_since=draft.now))
    draft.record(Kind.HOST_UNREACHABLE, known, by=FOREWARN, reason=why)


def note_reachable(draft: Draft, host: HostName, *, why: str = "") -> None:
    """Note that the driver of a host can reach it again, unless that is known."""
    known = draft.hosts.get(host)
    if known is None or known.unreachable_since is None:
        return
    away = format_span_briefly((draft.now - known.unreachable_since).total_seconds())
    draft.put_host(replace(known, unreachable_since=None))
    draft.record(Kind.HOST_REACHABLE, known, by=FOREWARN, reason=why or f"after {away}")


AWAY = frozenset({HostState.LOST, HostState.FAILED})
# If forewarn notices the deadline later than this, it was down itself, or its clock jumped. The program that
# works on the host then gets some time to report before the host is marked as lost.
LATE = timedelta(minutes=1)
HEARD_WITHIN = timedelta(minutes=5)


def mark_if_overdue(draft: Draft, order: Order, policy: Policy) -> Order:
    """Mark the host of an order as lost if the work on it takes too long."""
    work, host = _running_work(order), _host(draft, order)
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
    """Return when the host of an order must be back, unless it is lost already."""
    work, host = _running_work(order), _host(draft, order)
    is_away = host is None or host.state in AWAY
    return None if work is None or is_away else work.back_by


def why_lost(draft: Draft, order: Order) -> tuple[Waiting, ...]:
    """Return that the host of an order is lost, and what the operator can do."""
    work, host = _running_work(order), _host(draft, order)
    if work is None or host is None or host.state is not HostState.LOST:
        return ()
    late = "" if work.back_by is None else f"it was due back by {format_time(work.back_by)}; "
    fail = f"`forewarn host fail {host.name}` fences it and recovers its machines"
    wait = f"`forewarn host wait {host.name}` gives it more time"
    reason = f"lost: {late}{fail}, {wait}; if it comes back, the order goes on by itself"
    return (Waiting(what=f"host {host.name}", reason=reason, stuck=True),)


def is_stranded(draft: Draft, order: Order, step: Step) -> bool:
    """Return whether a machine cannot move because its host is lost or failed (rule 13)."""
    machine = draft.machines.get(step.machine)
    away = machine is not None and is_away(draft, machine)
    return away and step.moves and order.action is not Action.FAIL


def is_away(draft: Draft, machine: Machine) -> bool:
    """Return whether the host of a machine is lost or failed."""
    host = draft.hosts.get(machine.host) if machine.host is not None else None
    return host is not None and host.state in AWAY


def stranded_machines(draft: Draft, order: Order, affected: Iterable[Step]) -> tuple[Waiting, ...]:
    """Return the machines that cannot move because their host is lost or failed."""
    return tuple(
        Waiting(
            what=step.name,
            reason=f"is on {draft.machines[step.machine].host}, which is away: fail that first",
        )
        for step in affected
        if step.state is StepState.WAITING and is_stranded(draft, order, step)
    )


def note_returned(draft: Draft, order: Order, step: HostStep) -> None:
    """Restore the state of a lost host, because a report on the work on it has arrived."""
    host = _host(draft, order)
    if step.task is HostTask.WORK and host is not None and host.state is HostState.LOST:
        _mark_back(draft, order, host, step, by=FOREWARN, why="a report on the work on it has arrived")


def wait(draft: Draft, host: Host, *, by: str, why: str = "", policy: Policy) -> Order:
    """Give a lost host the full time again to come back."""
    works = ((each, _running_work(each)) for each in departures.orders_on(draft, host.name))
    order, work = next((found for found in works if found[1] is not None), (None, None))
    if host.state is HostState.LOST and work is None:
        ways = "retry its order, fail it, or abandon its order and restore it"
        raise Conflict(f'host "{host.name}" is lost, and no work on it is under way: {ways}')
    if order is None or work is None or host.state is not HostState.LOST:
        raise Conflict(f'host "{host.name}" is {host.state}: only a lost host can be waited for')
    back_by = draft.now + policy.return_by
    said = f"waited for until {format_time(back_by)}"
    _mark_back(draft, order, host, work, by=by, why=f"{said}: {why}" if why else said)
    again = replace(work, back_by=back_by, host_was=None)
    return draft.put_order(host_steps.put(draft.orders[order.id], again))


def _mark_back(draft: Draft, order: Order, host: Host, step: HostStep, *, by: str, why: str) -> None:
    state = step.host_was or HostState.CORDONED
    draft.put_host(replace(host, state=state))
    wake_machine_orders(draft, host.name)
    reason = f"{host.state} to {state}: {why}"
    draft.record(Kind.HOST_CHANGED, host, order=order.id, by=by, reason=reason)


def wake_machine_orders(draft: Draft, host: HostName) -> None:
    """Wake the orders on the machines of a host that is no longer lost or failed."""
    for machine in draft.machines_on(host):
        draft.wake(departures.open_orders_with(draft, machine.id))


def _running_work(order: Order) -> HostStep | None:
    step = host_steps.find(order, HostTask.WORK)
    return step if step is not None and step.state is StepState.RUNNING else None


def _host(draft: Draft, order: Order) -> Host | None:
    return None if order.host is None else draft.hosts.get(order.host)
