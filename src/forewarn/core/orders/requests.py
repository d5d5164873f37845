"""What may be ordered, on a machine or on a host, and when."""

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
from forewarn.core.time_formats import format_time
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

NO_TERMS = OrderTerms()


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRequest:
    """Who asks, why, who shall do it, and on what terms."""

    by: str
    reason: str = ""
    driver: str | None = None  # None: whoever does the work on its host
    work: Work | None = None  # what a move does to its machine: a Freeze if it goes live
    terms: OrderTerms = NO_TERMS


def may_move(action: Action, work: Work | None = None) -> bool:
    """Return whether an order may give machines another host, for which their room must be known."""
    done = work or ACTIONS[action].work
    return action is Action.SERVICE or (done is not None and WORKS[done].moves)


def is_limited(action: Action) -> bool:
    """Return whether a project may have only so many orders of this kind scheduled."""
    return ACTIONS[action].source is Source.USER and action is not Action.START


def on_machine(
    draft: Draft, machine: MachineId, action: Action, request: OrderRequest, *, scheduled: int, policy: Policy
) -> Order:
    """Place an order on one machine; `scheduled` is how many of its project's wait to start."""
    target = draft.machines[machine]
    if request.terms.rehearsal:
        rehearsal_rules.check_machine(target, draft.projects)
    _check_state(draft, target, action)
    bare_metal.check_machine(draft, target, action)
    _check_first(draft, target, action)
    _check_limit(draft, target, action, scheduled=scheduled, policy=policy)
    if action is Action.MOVE:
        _check_move(draft, target, request)
    work = request.work or ACTIONS[action].work
    order = _place(draft, request, action, target, work=work, policy=policy)
    order = _with_chooser(draft, order, policy)
    if ACTIONS[action].leaves:
        departures.leave_scheduled(
            draft, target, why=f"superseded by {action} (order {order.id})", keep=order.id
        )
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
        vouched = fencing.vouch(draft, target, by=request.by, why=request.terms.fenced)
        return lifecycle.advance(draft, vouched.id, policy=policy)
    _check_host(draft, target, action)
    bare_metal.check_host(target, action, work, request.terms)
    if action is Action.SERVICE:
        request = replace(request, terms=service.with_mode(request.terms, target))
    order = _place(draft, request, action, target, work=work or ACTIONS[action].work, policy=policy)
    order = _with_chooser(draft, order, policy)
    if action is Action.MAINTENANCE:
        _check_possible(draft, order, host, policy)
    if action is Action.SERVICE:
        service.check_possible(draft, order, policy)
    _clear_the_way(draft, order, host)
    _change_host(draft, target, action, by=request.by)
    order = fencing.vouched_from_the_start(draft, order)
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
        driver=_driver(draft, request, work, machine=machine, host=host.name if host else None),
        terms=request.terms,
        created_at=draft.now,
    )
    if host is not None:
        cordoned_by = draft.defaults.driver_of(host.driver)
        order = replace(order, host_steps=host_work.plan(order, policy, cordoned_by))
    draft.record(Kind.ORDER_PLACED, order, by=order.by, reason=_described(order))
    return draft.put_order(order)


def _with_chooser(draft: Draft, order: Order, policy: Policy) -> Order:
    """Note once and for all whether the driver chooses where machines go."""
    chooses = order.driver in policy.choosing_hosts
    return (
        draft.put_order(replace(order, terms=replace(order.terms, driver_chooses=True))) if chooses else order
    )


def _driver(
    draft: Draft, request: OrderRequest, work: Work | None, *, machine: Machine | None, host: HostName | None
) -> str:
    """Choose who does the work, once and for all: what is declared later is for later orders."""
    if request.driver is not None:
        return request.driver
    if request.terms.rehearsal:
        return SIMULATED  # whoever else works on the host: in a rehearsal nothing is really done
    where = machine.host or machine.last_host if machine else host
    known = draft.hosts.get(where) if where is not None else None
    if machine is not None and known is None and work is not None and WORKS[work].moves:
        return draft.defaults.driver_of(placement.driver_where_chosen(draft, machine))
    return draft.defaults.driver_of(known.driver if known else None)


def check_heartbeat(order: Order) -> None:
    """Refuse a heartbeat that would be asked of a driver of our own."""
    drivers = {order.driver, *(step.driver for step in order.host_steps)}
    if order.terms.heartbeat is not None and EXTERNAL not in drivers:
        here = driver_named(order.driver)
        raise Invalid(f'heartbeat_seconds: expected only where driver is "external", but here it is {here}')


def _described(order: Order) -> str:
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
    """Refuse a move that its machine, or the host that is named, does not allow."""
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
    if why := placement.why_not_there(draft, machine, to):
        raise Conflict(f"{named} cannot move: {why}; name another host, or none")


def _check_first(draft: Draft, machine: Machine, action: Action) -> None:
    """Refuse a second order on a machine, but for those after which it is gone; a hint stands in no way."""
    for other in draft.orders.values():
        if (
            other.open
            and other.machine == machine.id
            and (ACTIONS[other.action].leaves or not ACTIONS[action].leaves)
            and (recommends(other.action) == recommends(action) or ACTIONS[other.action].leaves)
        ):
            raise Conflict(f'machine "{machine.name}" has {_in_the_way(other)}')


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
            raise Conflict(f'host "{host.name}" is lost, and order {other.id} is still at it: {ways} first')
    if action in (Action.MAINTENANCE, Action.SERVICE, Action.DEGRADE):
        for other in departures.orders_on(draft, host.name):
            raise Conflict(f'host "{host.name}" has {_in_the_way(other)}')


def _in_the_way(order: Order) -> str:
    """Name an order that keeps another one away, and what can be done about it."""
    match order.state:
        case _ if order.terms.abandoned_by:
            way = f"which is being {order.given_up}: wait until it is over"
        case OrderState.QUEUED | OrderState.ANNOUNCED:
            way = f"which is {order.state}: wait until it is done, or `forewarn order cancel {order.id}`"
        case OrderState.FAILED:
            way = f"which is failed: `forewarn order retry {order.id}` or `forewarn order abandon {order.id}`"
        case _ if order.due_at is not None and steps.all_over(order):
            ends = f"{format_time(order.due_at)}, when slow guests have seen that too"
            way = f"whose work is done, and which ends at {ends}: try again then"
        case _:
            way = f"which is {order.state}: wait until it is done, or `forewarn order abandon {order.id}`"
    return f"order {order.id} ({order.action}), {way}"


def _check_possible(draft: Draft, order: Order, host: HostName, policy: Policy) -> None:
    concerned = [machine for machine in draft.machines_on(host) if machine.state is not MachineState.STOPPED]
    work = work_of(order)
    affected = tuple(stages.step_of(machine, work) for machine in concerned)
    reasons.check_possible(draft, order, affected, policy)


def _clear_the_way(draft: Draft, order: Order, host: HostName) -> None:
    """End what a failure supersedes, or what a restored host no longer needs."""
    match order.action:
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
        lost_hosts.wake(draft, host.name)
    if state is not host.state:
        draft.record(Kind.HOST_CHANGED, host, by=by, reason=f"{host.state} to {state}")
    draft.put_host(replace(host, state=state, cordoned_for=None))
    if state is HostState.OK:  # machines may wait to come back to it
        draft.wake(departures.orders_on(draft, host.name))
