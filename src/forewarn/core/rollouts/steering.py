"""What people may ask of a rollout that is under way: pause, resume, abort; and who changed it last."""

from collections.abc import Collection
from datetime import datetime

from forewarn.core.copies import replace
from forewarn.core.errors import Conflict
from forewarn.core.model.order import Order
from forewarn.core.model.rollout import LastChange, Rollout, RolloutState, Wave, WaveState
from forewarn.core.moments import format_time
from forewarn.core.policy import Policy
from forewarn.core.rollouts import machine_health
from forewarn.core.rollouts.progress import Orders, Quiet, as_paused, has_begun, trouble, wave_now
from forewarn.core.words import HostName, OrderId, OrderState


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


def resumed(rollout: Rollout, orders: Orders, quiet: Quiet = (), *, now: datetime, policy: Policy) -> Rollout:
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
