"""Place orders on machines and hosts, or refuse them."""

from dataclasses import dataclass, replace

from forewarn.core import rehearsal_rules
from forewarn.core.basic_types import (
    EXTERNAL,
    SIMULATED,
    Action,
    HostName,
    HostState,
    Kind,
    MachineId,
    MachineState,
    Mobility,
    OrderId,
    OrderState,
    Priority,
    Source,
    Work,
)
from forewarn.core.catalogue import ACTIONS, MAINTENANCE_WORK, WORKS
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict, Invalid, LimitReached
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order, OrderTerms
from forewarn.core.orders import (
    bare_metal,
    departures,
    fencing,
    host_work,
    lifecycle,
    lost_hosts,
    placement,
    reasons,
    service,
    stages,
    steps,
    superseding,
)
from forewarn.core.orders.interventions import cancel
from forewarn.core.orders.recommendations import recommends
from forewarn.core.policy import Policy, work_of
from forewarn.core.redaction import driver_named
from forewarn.core.time_formats import format_time

NO_TERMS = OrderTerms()


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRequest:
    """The caller, reason, driver and terms of a new order."""

    by: str
    reason: str = ""
    driver: str | None = None  # None: the driver of the host
    work: Work | None = None  # for a move: Freeze if it is live
    terms: OrderTerms = NO_TERMS


def may_move(action: Action, work: Work | None = None) -> bool:
    """Return whether an order may move machines to another host, so that free capacity must be loaded."""
    done = work or ACTIONS[action].work
    return action is Action.SERVICE or (done is not None and WORKS[done].moves)


def is_limited(action: Action) -> bool:
    """Return whether an action counts against the limit of scheduled orders of a project."""
    return ACTIONS[action].source is Source.USER and action is not Action.START


def on_machine(
    draft: Draft, machine: MachineId, action: Action, request: OrderRequest, *, scheduled: int, policy: Policy
) -> Order:
    """Place an order on one machine. `scheduled` is how many orders of its project have not started."""
    target = draft.machines[machine]
    if request.terms.rehearsal:
        rehearsal_rules.check_machine(target, draft.projects)
    _check_state(draft, target, action)
    bare_metal.check_machine(draft, target, action)
    _check_no_other_order(draft, target, action)
    _check_limit(draft, target, action, scheduled=scheduled, policy=policy)
    if action is Action.MOVE:
        _check_move(draft, target, request)
    order = _place(draft, request, action, target, work=request.work or ACTIONS[action].work, policy=policy)
    if ACTIONS[action].leaves:
        why = f"superseded by {action} (order {order.id})"
        departures.remove_from_scheduled(draft, target, why=why, keep=order.id)
    return lifecycle.advance(draft, order.id, policy=policy)


def on_host(
    draft: Draft,
    host: HostName,
    action: Action,
    request: OrderRequest,
    *,
    work: Work | None = None,
    policy: Policy,
) -> Order:
    """Place an order on a host."""
    if action is Action.MAINTENANCE and work not in MAINTENANCE_WORK:
        raise Invalid(f"action {work or ''!r}: expected freeze, reboot or redeploy")
    target = draft.hosts[host]
    if request.terms.rehearsal:
        rehearsal_rules.check_host(target, draft.machines_on(host), draft.projects)
    if action is Action.FAIL and request.terms.fenced and target.state is HostState.FAILED:
        confirmed = fencing.confirm_fenced(draft, target, by=request.by, why=request.terms.fenced)
        return lifecycle.advance(draft, confirmed.id, policy=policy)
    _check_host(draft, target, action)
    bare_metal.check_host(target, action, work, request.terms)
    if action is Action.SERVICE:
        request = replace(request, terms=service.with_mode(request.terms, target))
    order = _place(draft, request, action, target, work=work or ACTIONS[action].work, policy=policy)
    _check_and_supersede(draft, order, host, policy)
    _change_host(draft, target, action, by=request.by)
    if order.terms.fenced:
        order = fencing.confirm(draft, order, by=order.by, why=order.terms.fenced)
    if order.work is None:
        draft.record(Kind.ORDER_DONE, order, by=order.by)
        return draft.put_order(departures.ended(draft, order, OrderState.DONE))
    return lifecycle.advance(draft, order.id, policy=policy)


def _place(
    draft: Draft,
    request: OrderRequest,
    action: Action,
    target: Machine | Host,
    *,
    work: Work | None,
    policy: Policy,
) -> Order:
    machine, host = (target, None) if isinstance(target, Machine) else (None, target)
    driver, terms = _driver(draft, request, work, target), request.terms
    if driver in policy.choosing_hosts:
        terms = replace(terms, driver_chooses=True)
    order = Order(
        id=OrderId(draft.new_id()),
        number=draft.number + 1,
        action=action,
        work=work,
        source=ACTIONS[action].source,
        project=machine.project if machine else None,
        machine=machine.id if machine else None,
        machine_name=machine.name if machine else None,
        host=host.name if host else None,
        by=request.by,
        reason=request.reason,
        driver=driver,
        terms=terms,
        created_at=draft.now,
    )
    if host is not None:
        cordoned_by = draft.defaults.driver_of(host.driver)
        order = replace(order, host_steps=host_work.plan(order, policy, cordoned_by))
    draft.record(Kind.ORDER_PLACED, order, by=order.by, reason=_describe(order))
    return draft.put_order(order)


def _driver(draft: Draft, request: OrderRequest, work: Work | None, target: Machine | Host) -> str:
    """Return the driver of a new order. A later change of the fleet does not affect it."""
    if request.driver is not None:
        return request.driver
    if request.terms.rehearsal:
        return SIMULATED  # a rehearsal never calls the real driver of the host
    if isinstance(target, Host):
        return draft.defaults.driver_of(target.driver)
    where = target.host or target.last_host
    known = draft.hosts.get(where) if where is not None else None
    if known is None and work is not None and WORKS[work].moves:
        return draft.defaults.driver_of(placement.driver_of_best_host(draft, target))
    return draft.defaults.driver_of(known.driver if known else None)


def check_heartbeat(order: Order) -> None:
    """Refuse a heartbeat if no step has the external driver."""
    drivers = {order.driver, *(step.driver for step in order.host_steps)}
    if order.terms.heartbeat is not None and EXTERNAL not in drivers:
        here = driver_named(order.driver)
        raise Invalid(f'heartbeat_seconds: expected only where driver is "external", but here it is {here}')


def _describe(order: Order) -> str:
    said = f"{order.action}"
    if order.action is Action.MAINTENANCE:
        said += f" {order.work}"
    if order.action is Action.SERVICE:
        said += f" {order.terms.mode}"
    if order.action is Action.MOVE:
        said += " live" if order.work is Work.FREEZE else ""
        said += f" to {order.terms.to}" if order.terms.to is not None else ""
    if order.simulated and not order.terms.rehearsal:
        said += ", simulated"
    if order.terms.rehearsal:
        said += f" (rehearsal of {order.terms.rehearsal})"
    return f"{said}: {order.reason}" if order.reason else said


def _check_state(draft: Draft, machine: Machine, action: Action) -> None:
    host = draft.hosts.get(machine.host) if machine.host else None
    away = host is not None and host.state in (HostState.FAILED, HostState.LOST)
    if host is not None and away and action is not Action.TERMINATE:
        first = "it is recovered" if host.state is HostState.FAILED else "fail it, or wait for it"
        raise Conflict(
            f'machine "{machine.name}" is on host "{host.name}", which is {host.state}: {first} first'
        )
    stopped = machine.state is MachineState.STOPPED
    if action is Action.START and not stopped:
        raise Conflict(f'machine "{machine.name}" is {machine.state}, there is nothing to start')
    if stopped and action not in (Action.START, Action.TERMINATE):
        raise Conflict(f'machine "{machine.name}" is stopped: start it first')
    if ACTIONS[action].spot_only and machine.priority is not Priority.SPOT:
        raise Conflict(f'machine "{machine.name}" is {machine.priority}: only spot machines are evicted')


def _check_move(draft: Draft, machine: Machine, request: OrderRequest) -> None:
    """Refuse a move that the machine's mobility or the named target does not allow."""
    live, to = request.work is Work.FREEZE, request.terms.to
    named = f'machine "{machine.name}"'
    if machine.mobility is Mobility.NONE:
        way = f"forewarn machine put {machine.name} --mobility cold, or live"
        raise Conflict(f"{named} has mobility none, so it stays on its host: if it can move, {way}")
    if machine.mobility is Mobility.LIVE_ONLY and not live:
        raise Conflict(f"{named} has mobility live-only, so no move redeploys it: move it live")
    if to is None:
        return
    if to == machine.host:
        raise Conflict(f"{named} is on host {to} already")
    if why := placement.why_unsuitable(draft, machine, to):
        raise Conflict(f"{named} cannot move: {why}; name another host, or none")


def _check_no_other_order(draft: Draft, machine: Machine, action: Action) -> None:
    """Refuse a second order on a machine. Orders that remove it, and recommendations, are exempt."""
    for other in draft.orders.values():
        if (
            other.open
            and other.machine == machine.id
            and (ACTIONS[other.action].leaves or not ACTIONS[action].leaves)
            and (recommends(other.action) == recommends(action) or ACTIONS[other.action].leaves)
        ):
            raise Conflict(f'machine "{machine.name}" has {_conflicting(other)}')


def _check_limit(draft: Draft, machine: Machine, action: Action, *, scheduled: int, policy: Policy) -> None:
    at_once = ACTIONS[action].only_if_enabled and not draft.groups[machine.group].enabled
    if at_once or not is_limited(action):
        return
    if scheduled >= policy.user_orders:
        raise LimitReached(
            f"project {machine.project} has {scheduled} operations scheduled, its limit: "
            "wait until some have started, or cancel some"
        )


def _check_host(draft: Draft, host: Host, action: Action) -> None:
    allowed = {
        Action.CORDON: (HostState.OK, HostState.CORDONED),
        Action.UNCORDON: (HostState.OK, HostState.CORDONED),
        Action.RESTORE: tuple(HostState),
        Action.FAIL: tuple(state for state in HostState if state is not HostState.FAILED),
    }.get(action, (HostState.OK, HostState.CORDONED, HostState.DEGRADED))
    if host.state not in allowed:
        way = "fail it, or wait for it," if host.state is HostState.LOST else "restore it"
        hint = f": {way} first" if action is not Action.FAIL else ""
        raise Conflict(f'host "{host.name}" is {host.state}{hint}')
    if action is Action.RESTORE and host.state is HostState.LOST:
        for other in departures.orders_on(draft, host.name):
            ways = "wait for it, fail it, or abandon that order"
            raise Conflict(
                f'host "{host.name}" is lost, and order {other.id} still works on it: {ways} first'
            )
    if action in (Action.MAINTENANCE, Action.SERVICE, Action.DEGRADE):
        for other in departures.orders_on(draft, host.name):
            raise Conflict(f'host "{host.name}" has {_conflicting(other)}')


def _conflicting(order: Order) -> str:
    """Name an order that prevents another one, and the next step of the operator."""
    match order.state:
        case _ if order.terms.abandoned_by:
            way = f"which is being {order.given_up}: wait until it is over"
        case OrderState.QUEUED | OrderState.ANNOUNCED:
            way = f"which is {order.state}: wait until it is done, or `forewarn order cancel {order.id}`"
        case OrderState.FAILED:
            way = f"which is failed: `forewarn order retry {order.id}` or `forewarn order abandon {order.id}`"
        case _ if order.due_at is not None and steps.all_finished(order.all_steps):
            ends = f"{format_time(order.due_at)}, when slow guests have seen that too"
            way = f"whose work is done, and which ends at {ends}: try again then"
        case _:
            way = f"which is {order.state}: wait until it is done, or `forewarn order abandon {order.id}`"
    return f"order {order.id} ({order.action}), {way}"


def _check_and_supersede(draft: Draft, order: Order, host: HostName, policy: Policy) -> None:
    """Refuse impossible work on a host, or end the orders that a failure or a restore makes obsolete."""
    match order.action:
        case Action.MAINTENANCE:
            running = (each for each in draft.machines_on(host) if each.state is not MachineState.STOPPED)
            affected = tuple(stages.step_of(machine, work_of(order)) for machine in running)
            reasons.check_possible(draft, order, affected, policy)
        case Action.SERVICE:
            service.check_possible(draft, order, policy)
        case Action.FAIL:
            superseding.supersede(draft, order, host)
        case Action.RESTORE:
            for other in departures.orders_on(draft, host):
                if other.action is Action.DEGRADE:
                    cancel(draft, other.id, by=order.by, why=f"host {host} was restored")
        case _:
            pass


def _change_host(draft: Draft, host: Host, action: Action, *, by: str) -> None:
    state = {
        Action.DEGRADE: HostState.DEGRADED,
        Action.FAIL: HostState.FAILED,
        Action.CORDON: HostState.CORDONED,
        Action.RESTORE: HostState.OK,
        Action.UNCORDON: HostState.OK,
    }.get(action)
    if state is None:
        return
    if host.state in lost_hosts.AWAY:
        lost_hosts.wake_machine_orders(draft, host.name)
    if state is not host.state:
        draft.record(Kind.HOST_CHANGED, host, by=by, reason=f"{host.state} to {state}")
    draft.put_host(replace(host, state=state, cordoned_for=None))
    if state is HostState.OK:  # machines may wait to return to it
        draft.wake(departures.orders_on(draft, host.name))
