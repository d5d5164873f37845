"""Track a rollout: its waves, its failures and its end; pause, resume and abort it."""

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
from forewarn.core.policy import Policy
from forewarn.core.rollouts import machine_health
from forewarn.core.rollouts.machine_health import UnwellMachine
from forewarn.core.time_formats import format_time

Orders: TypeAlias = Mapping[OrderId, Order]
UnwellMachines: TypeAlias = Sequence[UnwellMachine]


def settle(rollout: Rollout, orders: Orders, quiet: UnwellMachines = (), *, now: datetime) -> Rollout:
    """Update the waves from their orders. `quiet` has the machines that are not healthy yet.

    A poll does not wake a paused rollout, so a wave that waits for polls is updated when it is resumed.
    """
    paused = rollout.state is RolloutState.PAUSED and not rollout.aborting

    def settled(wave: Wave) -> Wave:
        checking = bool(quiet) or (paused and wave.state is WaveState.CHECKING)
        return wave_now(wave, orders, checking=checking, now=now)

    rollout = replace(rollout, waves=tuple(map(settled, rollout.waves)))
    if rollout.open and not unfinished(rollout):
        if rollout.aborting:
            # It cannot be resumed, so its failed hosts count as abandoned.
            undone = tuple(host for host, _ in _failed_hosts(rollout, orders))
            rollout = replace(rollout, abandoned=rollout.abandoned + undone)
            return _ended(rollout, RolloutState.ABORTED, now=now)
        if not rollout.left and not trouble(rollout, orders):
            return _ended(rollout, RolloutState.DONE, now=now)
    if rollout.aborting:
        return replace(rollout, waiting=_finishing(rollout, orders))
    return as_paused(rollout, orders) if rollout.state is RolloutState.PAUSED else rollout


def _finishing(rollout: Rollout, orders: Orders) -> tuple[Waiting, ...]:
    """Return the orders that must end before the abort is complete."""
    failed = (*trouble(rollout, orders), *stuck(rollout, orders))
    reason = "started work is finished before the rollout is aborted"
    busy = (
        Waiting(what=orders[id_].host or "", reason=reason)
        for wave in unfinished(rollout)
        for id_ in wave.orders
        if orders[id_].open and orders[id_].state is not OrderState.FAILED
    )
    return (*failed, *busy)


def wave_now(wave: Wave, orders: Orders, *, checking: bool, now: datetime) -> Wave:
    """Update one wave from its orders. `checking` tells that some machines have not polled again."""
    if wave.state in (WaveState.PLANNED, WaveState.DONE):
        return wave
    mine = [orders[order] for order in wave.orders]
    starts = (stage.started_at for order in mine for stage in order.stages)
    started_at = min((time for time in starts if time is not None), default=None)
    wave = replace(wave, started_at=started_at)
    if not wave.coming and not any(order.open for order in mine):
        if checking:
            return replace(wave, state=WaveState.CHECKING)
        ended = [order.ended_at for order in mine if order.ended_at is not None]
        over = now if wave.state is WaveState.CHECKING else max(ended)
        undone = tuple(host for host, id_ in wave.ordered if orders[id_].state is not OrderState.DONE)
        return replace(wave, state=WaveState.DONE, ended_at=over, undone=undone)
    started = any(has_begun(order) for order in mine)
    return replace(wave, state=WaveState.STARTED if started else WaveState.ANNOUNCED)


def has_begun(order: Order) -> bool:
    """Return whether an order has done any work. Such an order is finished, not withdrawn."""
    # An evacuation without machines is done at once, and is no work.
    return any(
        stage.state is StageState.STARTED
        or (stage.state is StageState.DONE and (bool(stage.steps) or stage.kind is StageKind.HOST))
        for stage in order.stages
    )


def unfinished(rollout: Rollout) -> tuple[Wave, ...]:
    """Return the waves under way."""
    return tuple(wave for wave in rollout.begun if wave.state is not WaveState.DONE)


def trouble(rollout: Rollout, orders: Orders) -> tuple[Waiting, ...]:
    """Return the failed hosts that pause a rollout: more than it tolerates, and not abandoned."""
    failed = _failed_hosts(rollout, orders)
    return tuple(Waiting(what=host, reason=_describe_failure(order)) for host, order in failed)


def _failed_hosts(rollout: Rollout, orders: Orders) -> list[tuple[HostName, Order]]:
    tolerated = {order.id for order in _tolerated(rollout, orders)}
    return [
        (host, orders[id_])
        for wave in rollout.begun
        for host, id_ in wave.ordered
        if id_ in orders and host not in rollout.abandoned and id_ not in tolerated
        if orders[id_].state in (OrderState.FAILED, OrderState.CANCELLED)
    ]


def orders_to_abandon(rollout: Rollout, orders: Orders) -> tuple[Order, ...]:
    """Return the failed orders that a rollout abandons by itself, once none of their steps runs."""
    return tuple(order for order in _tolerated(rollout, orders) if not order.driven)


def _tolerated(rollout: Rollout, orders: Orders) -> tuple[Order, ...]:
    """Return the failed orders if the rollout tolerates that many, and none after a failed health check.

    A failed health check casts doubt on the work on all later hosts.
    """
    mine = (
        orders[id_]
        for wave in unfinished(rollout)
        for host, id_ in wave.ordered
        if id_ in orders and host not in rollout.abandoned
    )
    failed = tuple(order for order in mine if order.open and order.state is OrderState.FAILED)
    unhealthy = any(
        step.task is HostTask.HEALTH and step.state is StepState.FAILED
        for order in failed
        for step in order.host_steps
    )
    return () if unhealthy or len(failed) > rollout.failures_left else failed


def without(rollout: Rollout, hosts: Iterable[HostName]) -> Rollout:
    """Return a rollout without hosts whose orders failed."""
    return replace(rollout, abandoned=(*rollout.abandoned, *hosts))


def stuck(rollout: Rollout, orders: Orders) -> tuple[Waiting, ...]:
    """Return the reasons of orders under way that only a person can resolve."""
    under_way = (orders[id_] for wave in unfinished(rollout) for id_ in wave.orders if orders[id_].open)
    return tuple(wait for order in under_way for wait in order.waiting if wait.stuck)


def held(orders: Orders, holds: Iterable[Hold]) -> tuple[Waiting, ...]:
    """Return the holds that some of these orders wait for."""
    known = {in_force.waiting(hold) for hold in holds}
    waiting = (wait for order in orders.values() if order.open for wait in order.waiting)
    return tuple(dict.fromkeys(wait for wait in waiting if wait in known))


def _describe_failure(order: Order) -> str:
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
    """Refuse to change a rollout that is over or being aborted, or whose version is not the caller's."""
    if not rollout.open:
        # The last change explains an abort, but not a rollout that is done.
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
    """Refuse to pause a paused rollout."""
    if rollout.state is RolloutState.PAUSED:
        raise Conflict(f"rollout {rollout.id} is paused already: {rollout.why}")


def _said(rollout: Rollout) -> str:
    change = rollout.last_change
    return (
        "" if change is None else f", {change.what} by {change.by or 'forewarn'} at {format_time(change.at)}"
    )


def with_change(rollout: Rollout, what: str, *, by: str, now: datetime) -> Rollout:
    """Return a rollout with its last change, for the answer to a conflicting request."""
    return replace(rollout, version=rollout.version + 1, last_change=LastChange(what=what, by=by, at=now))


def paused(rollout: Rollout, orders: Orders, *, why: str, now: datetime) -> Rollout:
    """Pause a rollout. Hosts whose orders were cancelled before their start return to the plan."""
    rollout = replace(_returned(rollout, orders, now=now), state=RolloutState.PAUSED, why=why)
    return replace(as_paused(rollout, orders), blocked=False, due_at=None)


def resumed(
    rollout: Rollout, orders: Orders, quiet: UnwellMachines = (), *, now: datetime, policy: Policy
) -> Rollout:
    """Resume a rollout without the hosts whose orders were abandoned; excuse unhealthy machines."""
    if rollout.state is not RolloutState.PAUSED:
        raise Conflict(f"rollout {rollout.id} is {rollout.state}, there is nothing to resume{_said(rollout)}")
    failed = _failed_hosts(rollout, orders)
    for host, order in failed:
        if order.open:
            raise Conflict(f"{host}: {_describe_failure(order)}")
    excused = tuple(machine_health.unwell(rollout, orders.values(), quiet, now=now, policy=policy))
    return replace(
        rollout,
        state=RolloutState.RUNNING,
        why="",
        waiting=(),
        abandoned=(*rollout.abandoned, *(host for host, _ in failed)),
        excused=rollout.excused + excused,
    )


def aborted(rollout: Rollout, orders: Orders, *, why: str, now: datetime) -> Rollout:
    """Abort a rollout: drop the hosts that have not begun, and finish the others first."""
    begun = {id_: order for id_, order in orders.items() if has_begun(order)}
    rollout = replace(_returned(rollout, orders, staying=begun, now=now), aborting=True, why=why)
    return replace(rollout, waves=rollout.begun, blocked=False, due_at=None)


def _returned(
    rollout: Rollout, orders: Orders, *, staying: Collection[OrderId] = (), now: datetime
) -> Rollout:
    """Return hosts without orders, or with cancelled orders, from their waves to the plan."""
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
