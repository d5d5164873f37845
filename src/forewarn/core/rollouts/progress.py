"""How far a rollout is: its waves, its troubles, its end; and how people pause, resume and abort it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias

from forewarn.core.admission import holds as in_force
from forewarn.core.basic_types import (
    HostName,
    HostTask,
    OrderId,
    OrderState,
    StageKind,
    StageState,
    StepState,
)
from forewarn.core.errors import Conflict
from forewarn.core.model.constraints import Hold, Waiting
from forewarn.core.model.order import Order
from forewarn.core.model.rollout import LastChange, Rollout, RolloutState, Wave, WaveState
from forewarn.core.time_formats import format_time
from forewarn.core.policy import Policy
from forewarn.core.rollouts import machine_health
from forewarn.core.rollouts.machine_health import UnwellMachine

Orders: TypeAlias = Mapping[OrderId, Order]
UnwellMachines: TypeAlias = Sequence[UnwellMachine]


def settle(rollout: Rollout, orders: Orders, quiet: UnwellMachines = (), *, now: datetime) -> Rollout:
    """Bring its waves up to date with their orders; `quiet` are the machines that are not well yet.

    No poll wakes what is paused: a wave whose polls are awaited then is settled when a person resumes.
    """
    paused = rollout.state is RolloutState.PAUSED and not rollout.aborting

    def settled(wave: Wave) -> Wave:
        checking = bool(quiet) or (paused and wave.state is WaveState.CHECKING)
        return wave_now(wave, orders, checking=checking, now=now)

    rollout = replace(rollout, waves=tuple(map(settled, rollout.waves)))
    if rollout.open and not unfinished(rollout):
        if rollout.aborting:
            # Nobody resumes it, and so settles what went wrong.
            undone = tuple(HostName(problem.what) for problem in trouble(rollout, orders))
            rollout = replace(rollout, abandoned=rollout.abandoned + undone)
            return _ended(rollout, RolloutState.ABORTED, now=now)
        if not rollout.left and not trouble(rollout, orders):
            return _ended(rollout, RolloutState.DONE, now=now)
    if rollout.aborting:
        return replace(rollout, waiting=_finishing(rollout, orders))
    return as_paused(rollout, orders) if rollout.state is RolloutState.PAUSED else rollout


def _finishing(rollout: Rollout, orders: Orders) -> tuple[Waiting, ...]:
    """Return what is finished before an abort is complete."""
    failed = (*trouble(rollout, orders), *stuck(rollout, orders))
    reason = "what has started is finished before the rollout is aborted"
    busy = (
        Waiting(what=orders[id_].host or "", reason=reason)
        for wave in unfinished(rollout)
        for id_ in wave.orders
        if orders[id_].open and orders[id_].state is not OrderState.FAILED
    )
    return (*failed, *busy)


def wave_now(wave: Wave, orders: Orders, *, checking: bool, now: datetime) -> Wave:
    """Bring one wave up to date with its orders; `checking`: its machines have not all polled again."""
    if wave.state in (WaveState.PLANNED, WaveState.DONE):
        return wave
    mine = [orders[order] for order in wave.orders]
    wave = replace(wave, started_at=_started_at(mine))
    if not wave.coming and not any(order.open for order in mine):
        if checking:
            return replace(wave, state=WaveState.CHECKING)
        ended = [order.ended_at for order in mine if order.ended_at is not None]
        over = now if wave.state is WaveState.CHECKING else max(ended)
        undone = tuple(host for host, id_ in wave.ordered if orders[id_].state is not OrderState.DONE)
        return replace(wave, state=WaveState.DONE, ended_at=over, undone=undone)
    started = any(has_begun(order) for order in mine)
    return replace(wave, state=WaveState.STARTED if started else WaveState.ANNOUNCED)


def _started_at(mine: Sequence[Order]) -> datetime | None:
    moments = (stage.started_at for order in mine for stage in order.stages)
    return min((moment for moment in moments if moment is not None), default=None)


def has_begun(order: Order) -> bool:
    """Return whether an order has done anything yet; one that has is not withdrawn but finished."""
    # Where nobody has to leave a host, that part of the work on it is done before anything is.
    return any(
        stage.state is StageState.STARTED
        or (stage.state is StageState.DONE and (bool(stage.steps) or stage.kind is StageKind.HOST))
        for stage in order.stages
    )


def unfinished(rollout: Rollout) -> tuple[Wave, ...]:
    """Return the waves that are under way."""
    return tuple(wave for wave in rollout.begun if wave.state is not WaveState.DONE)


def trouble(rollout: Rollout, orders: Orders) -> tuple[Waiting, ...]:
    """Return what went wrong with its hosts that no person has settled yet, and that it cannot bear."""
    borne = {order.id for order in _bearable(rollout, orders)}
    found = []
    for wave in rollout.begun:
        for host, id_ in wave.ordered:
            order = orders.get(id_)
            if order is None or host in rollout.abandoned:
                continue
            if order.state in (OrderState.FAILED, OrderState.CANCELLED) and order.id not in borne:
                found.append(Waiting(what=host, reason=_what_went_wrong(order)))
    return tuple(found)


def failed_orders(rollout: Rollout, orders: Orders) -> tuple[Order, ...]:
    """Return its orders that failed and that nobody has given up yet."""
    mine = (
        orders[id_]
        for wave in unfinished(rollout)
        for host, id_ in wave.ordered
        if id_ in orders and host not in rollout.abandoned
    )
    return tuple(order for order in mine if order.open and order.state is OrderState.FAILED)


def orders_to_abandon(rollout: Rollout, orders: Orders) -> tuple[Order, ...]:
    """Return the failed orders that a rollout gives up by itself: as many as it may, once nothing runs."""
    failed = _bearable(rollout, orders)
    # Machines whose host was worked on in vain are not well again by waiting.
    return tuple(order for order in failed if not order.driven)


def _bearable(rollout: Rollout, orders: Orders) -> tuple[Order, ...]:
    """Return the failed orders that it can go on without: not too many, and none where what it did is ill.

    A host that is asked after its health and is not well says something about all that come after it.
    """
    failed = failed_orders(rollout, orders)
    ill = any(
        step.task is HostTask.HEALTH and step.state is StepState.FAILED
        for order in failed
        for step in order.host_steps
    )
    return () if ill or len(failed) > rollout.failures_left else failed


def without(rollout: Rollout, hosts: Iterable[HostName]) -> Rollout:
    """Return a rollout that goes on without hosts whose orders failed."""
    return replace(rollout, abandoned=(*rollout.abandoned, *hosts))


def stuck(rollout: Rollout, orders: Orders) -> tuple[Waiting, ...]:
    """Return the reasons of its orders that only a person can do something about."""
    under_way = (orders[id_] for wave in unfinished(rollout) for id_ in wave.orders if orders[id_].open)
    return tuple(wait for order in under_way for wait in order.waiting if wait.stuck)


def held(orders: Orders, holds: Iterable[Hold]) -> tuple[Waiting, ...]:
    """Return the holds for which some of these orders wait."""
    known = {in_force.waiting(hold) for hold in holds}
    waiting = (wait for order in orders.values() if order.open for wait in order.waiting)
    return tuple(dict.fromkeys(wait for wait in waiting if wait in known))


def _what_went_wrong(order: Order) -> str:
    if order.open:
        first = f" ({order.waiting[0].what} {order.waiting[0].reason})" if order.waiting else ""
        return f"order {order.id} failed{first}: retry or abandon it"
    return f"order {order.id} was {order.state}: {order.why}"


def as_paused(rollout: Rollout, orders: Orders) -> Rollout:
    """Return a paused rollout with its reasons."""
    why = Waiting(what=f"rollout {rollout.id}", reason=f"paused: {rollout.why}")
    return replace(rollout, waiting=(why, *trouble(rollout, orders)))


def _ended(rollout: Rollout, state: RolloutState, *, now: datetime) -> Rollout:
    return replace(rollout, state=state, ended_at=now, waiting=(), blocked=False, aborting=False, due_at=None)


def check_open(rollout: Rollout, *, version: int | None = None) -> None:
    """Refuse to change what is over or being aborted, or is not at the version the caller has seen."""
    if not rollout.open:
        # Who paused or resumed what is done is no answer to anything.
        said = _said(rollout) if rollout.state is RolloutState.ABORTED else ""
        raise Conflict(f"rollout {rollout.id} is {rollout.state}{said}")
    if rollout.aborting:
        raise Conflict(f"rollout {rollout.id} is being aborted: {rollout.why}")
    if version is not None and version != rollout.version:
        raise Conflict(
            f"rollout {rollout.id} has changed since version {version}: "
            f"it is {rollout.state} (version {rollout.version}){_said(rollout)}"
        )


def check_running(rollout: Rollout) -> None:
    """Refuse to pause what is paused."""
    if rollout.state is RolloutState.PAUSED:
        raise Conflict(f"rollout {rollout.id} is paused already: {rollout.why}")


def _said(rollout: Rollout) -> str:
    change = rollout.last_change
    return (
        "" if change is None else f", {change.what} by {change.by or 'forewarn'} at {format_time(change.at)}"
    )


def with_change(rollout: Rollout, what: str, *, by: str, now: datetime) -> Rollout:
    """Return a rollout with its last change, which a request that comes second is answered with."""
    return replace(rollout, version=rollout.version + 1, last_change=LastChange(what=what, by=by, at=now))


def paused(rollout: Rollout, orders: Orders, *, why: str, now: datetime) -> Rollout:
    """Pause, once what was only announced has been cancelled: those hosts are as if never begun."""
    rollout = replace(_returned(rollout, orders, now=now), state=RolloutState.PAUSED, why=why)
    return replace(as_paused(rollout, orders), blocked=False, due_at=None)


def resumed(rollout: Rollout, orders: Orders, quiet: UnwellMachines = (), *, now: datetime, policy: Policy) -> Rollout:
    """Go on without the hosts whose orders were abandoned; machines that are not healthy are excused."""
    if rollout.state is not RolloutState.PAUSED:
        raise Conflict(f"rollout {rollout.id} is {rollout.state}, there is nothing to resume{_said(rollout)}")
    for problem in trouble(rollout, orders):
        if _order_of(rollout, HostName(problem.what), orders).open:
            raise Conflict(f"{problem}")
    abandoned = tuple(HostName(problem.what) for problem in trouble(rollout, orders))
    excused = tuple(machine_health.unwell(rollout, orders.values(), quiet, now=now, policy=policy))
    return replace(
        rollout,
        state=RolloutState.RUNNING,
        why="",
        waiting=(),
        abandoned=rollout.abandoned + abandoned,
        excused=rollout.excused + excused,
    )


def aborted(rollout: Rollout, orders: Orders, *, why: str, now: datetime) -> Rollout:
    """Return a rollout without the hosts that have not begun; on the others, what has started ends first."""
    begun = {id_: order for id_, order in orders.items() if has_begun(order)}
    rollout = replace(_returned(rollout, orders, staying=begun, now=now), aborting=True, why=why)
    return replace(rollout, waves=rollout.begun, blocked=False, due_at=None)


def _order_of(rollout: Rollout, host: HostName, orders: Orders) -> Order:
    ids = (id_ for wave in rollout.begun for name, id_ in wave.ordered if name == host)
    return orders[next(ids)]


def _returned(
    rollout: Rollout, orders: Orders, *, staying: Collection[OrderId] = (), now: datetime
) -> Rollout:
    """Take the hosts whose orders were cancelled, or not placed yet, out of their waves."""
    kept = []
    for wave in rollout.begun:
        pairs = [
            (host, id_)
            for host, id_ in wave.ordered
            if id_ not in orders or id_ in staying or orders[id_].state is not OrderState.CANCELLED
        ]
        if pairs:
            hosts, ids = zip(*pairs, strict=True)
            checking = wave.state is WaveState.CHECKING
            wave = replace(wave, hosts=hosts, orders=ids)
            kept.append(wave_now(wave, orders, checking=checking, now=now))
    begun = replace(rollout, waves=tuple(kept))
    planned = [
        replace(wave, hosts=tuple(h for h in wave.hosts if h in begun.left)) for wave in rollout.planned
    ]
    back = tuple(h for h in begun.left if not any(h in wave.hosts for wave in planned))
    first = (Wave(hosts=back),) if back else ()
    return replace(begun, waves=(*kept, *first, *planned))
