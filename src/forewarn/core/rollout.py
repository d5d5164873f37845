"""What a rollout does next: which hosts may be announced now, and why all others wait.

Nothing here places or cancels orders; it says which are to be. Deciding twice changes nothing the second
time. Only one wave is under way at a time; what is not begun is cut anew when machines have moved.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeAlias

from forewarn.core import health, waves
from forewarn.core.errors import Conflict
from forewarn.core.model import Order, Step, Waiting
from forewarn.core.moments import stamp
from forewarn.core.policy import Policy
from forewarn.core.scene import Scene, Timings, not_now
from forewarn.core.waves import NOBODY, Rollout, RolloutState, Wave, WaveState, Word
from forewarn.core.words import GroupName, HostName, OrderId, OrderState, StageState

Orders: TypeAlias = Mapping[OrderId, Order]
Quiet: TypeAlias = Sequence[Step]

# How often a machine that must poll again is asked after: guests poll once a second.
LOOK_FOR_POLLS = timedelta(seconds=5)


# What has become of it


def settle(rollout: Rollout, orders: Orders, quiet: Quiet = (), *, now: datetime) -> Rollout:
    """Bring its waves up to date with their orders; `quiet` are the machines that must still poll again."""
    checking = bool(quiet)
    settled = tuple(_settled(wave, orders, checking=checking, now=now) for wave in rollout.waves)
    rollout = replace(rollout, waves=settled)
    if rollout.open and not unfinished(rollout):
        if rollout.aborting:
            return _ended(rollout, RolloutState.ABORTED, now=now)
        if not rollout.left and not trouble(rollout, orders):
            return _ended(rollout, RolloutState.DONE, now=now)
    if rollout.aborting:
        return replace(rollout, waiting=_finishing(rollout, orders))
    return _as_paused(rollout, orders) if rollout.state is RolloutState.PAUSED else rollout


def _finishing(rollout: Rollout, orders: Orders) -> tuple[Waiting, ...]:
    """Say what is finished before an abort is complete."""
    failed = trouble(rollout, orders)
    reason = "what has started is finished before the rollout is aborted"
    busy = (
        Waiting(what=orders[id_].host or "", reason=reason)
        for wave in unfinished(rollout)
        for id_ in wave.orders
        if orders[id_].open and orders[id_].state is not OrderState.FAILED
    )
    return (*failed, *busy)


def _settled(wave: Wave, orders: Orders, *, checking: bool, now: datetime) -> Wave:
    if wave.state in (WaveState.PLANNED, WaveState.DONE):
        return wave
    mine = [orders[order] for order in wave.orders]
    if not any(order.open for order in mine):
        if checking:
            return replace(wave, state=WaveState.CHECKING)
        ended = [order.ended_at for order in mine if order.ended_at is not None]
        over = now if wave.state is WaveState.CHECKING else max(ended)
        return replace(wave, state=WaveState.DONE, ended_at=over)
    started = any(has_begun(order) for order in mine)
    return replace(wave, state=WaveState.STARTED if started else WaveState.ANNOUNCED)


def has_begun(order: Order) -> bool:
    """Say whether an order has done anything yet; one that has is not withdrawn but finished."""
    begun = (StageState.STARTED, StageState.DONE)
    return any(stage.state in begun for stage in order.stages)


def unfinished(rollout: Rollout) -> tuple[Wave, ...]:
    """Return the waves that are under way."""
    return tuple(wave for wave in rollout.begun if wave.state is not WaveState.DONE)


def trouble(rollout: Rollout, orders: Orders) -> tuple[Waiting, ...]:
    """Say what went wrong with its hosts that no person has settled yet."""
    found = []
    for wave in rollout.begun:
        for host, id_ in zip(wave.hosts, wave.orders, strict=True):
            order = orders.get(id_)
            if order is None or host in rollout.given_up:
                continue
            if order.state in (OrderState.FAILED, OrderState.CANCELLED):
                found.append(Waiting(what=host, reason=_what_went_wrong(order)))
    return tuple(found)


def _what_went_wrong(order: Order) -> str:
    if order.open:
        first = f" ({order.waiting[0].what} {order.waiting[0].reason})" if order.waiting else ""
        return f"order {order.id} failed{first}: retry or abandon it"
    return f"order {order.id} was {order.state}: {order.why}"


def _ended(rollout: Rollout, state: RolloutState, *, now: datetime) -> Rollout:
    return replace(rollout, state=state, ended_at=now, waiting=(), blocked=False, aborting=False, due_at=None)


# What people may ask for


def check_open(rollout: Rollout, *, version: int | None = None) -> None:
    """Refuse to change what is over or on its way there, or what has changed since somebody looked."""
    if not rollout.open:
        raise Conflict(f"rollout {rollout.id} is {rollout.state}{_said(rollout)}")
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
    word = rollout.last_word
    return "" if word is None else f", {word.what} by {word.by or 'forewarn'} at {stamp(word.at)}"


def told(rollout: Rollout, what: str, *, by: str, now: datetime) -> Rollout:
    """Keep the last word about a rollout, so that whoever comes second is told what changed."""
    return replace(rollout, version=rollout.version + 1, last_word=Word(what=what, by=by, at=now))


def paused(rollout: Rollout, orders: Orders, *, why: str, now: datetime) -> Rollout:
    """Pause, once what was only announced has been cancelled: those hosts are as if never begun."""
    rollout = replace(_returned(rollout, orders, now=now), state=RolloutState.PAUSED, why=why)
    return replace(_as_paused(rollout, orders), blocked=False, due_at=None)


def _as_paused(rollout: Rollout, orders: Orders) -> Rollout:
    why = Waiting(what=f"rollout {rollout.id}", reason=f"paused: {rollout.why}")
    return replace(rollout, waiting=(why, *trouble(rollout, orders)))


def resumed(rollout: Rollout, orders: Orders, quiet: Quiet = (), *, now: datetime) -> Rollout:
    """Go on; a host whose order was abandoned is given up, a machine that is not healthy is excused."""
    if rollout.state is not RolloutState.PAUSED:
        raise Conflict(f"rollout {rollout.id} is {rollout.state}, there is nothing to resume{_said(rollout)}")
    for problem in trouble(rollout, orders):
        if _order_of(rollout, HostName(problem.what), orders).open:
            raise Conflict(f"{problem.what}: {problem.reason}")
    given_up = tuple(HostName(problem.what) for problem in trouble(rollout, orders))
    excused = tuple(health.unwell(rollout, orders.values(), quiet, now=now))
    return replace(
        rollout,
        state=RolloutState.RUNNING,
        why="",
        waiting=(),
        given_up=rollout.given_up + given_up,
        excused=rollout.excused + excused,
    )


def aborted(rollout: Rollout, orders: Orders, *, why: str, now: datetime) -> Rollout:
    """Give up what has not started; what has is finished first."""
    rollout = replace(_returned(rollout, orders, now=now), aborting=True, why=why)
    return replace(rollout, waves=rollout.begun, blocked=False, due_at=None)


def _order_of(rollout: Rollout, host: HostName, orders: Orders) -> Order:
    places = (
        id_
        for wave in rollout.begun
        for name, id_ in zip(wave.hosts, wave.orders, strict=True)
        if name == host
    )
    return orders[next(places)]


def _returned(rollout: Rollout, orders: Orders, *, now: datetime) -> Rollout:
    """Take the hosts whose orders were cancelled out of their waves."""
    kept = []
    for wave in rollout.begun:
        pairs = [
            (host, id_)
            for host, id_ in zip(wave.hosts, wave.orders, strict=True)
            if id_ not in orders or orders[id_].state is not OrderState.CANCELLED
        ]
        if pairs:
            hosts, ids = zip(*pairs, strict=True)
            checking = wave.state is WaveState.CHECKING
            wave = replace(wave, hosts=hosts, orders=ids)
            kept.append(_settled(wave, orders, checking=checking, now=now))
    begun = replace(rollout, waves=tuple(kept))
    planned = [
        replace(wave, hosts=tuple(h for h in wave.hosts if h in begun.left)) for wave in rollout.planned
    ]
    back = tuple(h for h in begun.left if not any(h in wave.hosts for wave in planned))
    first = (Wave(hosts=back),) if back else ()
    return replace(begun, waves=(*kept, *first, *planned))


# What is next


def resting_until(rollout: Rollout) -> datetime | None:
    """Say until when the gap after the last wave lasts."""
    ended = [wave.ended_at for wave in rollout.begun if wave.ended_at is not None]
    return max(ended) + rollout.gap if ended else None


def is_ready(rollout: Rollout, *, now: datetime) -> bool:
    """Say whether the next wave may be chosen."""
    going = rollout.open and rollout.state is RolloutState.RUNNING and not rollout.aborting
    resting = resting_until(rollout)
    return going and not unfinished(rollout) and bool(rollout.left) and (resting is None or resting <= now)


def rest(rollout: Rollout, orders: Orders, quiet: Quiet = (), *, now: datetime) -> Rollout:
    """Say when to look again: after the gap, when a machine should be healthy, or when an order changes."""
    if rollout.state is not RolloutState.RUNNING or rollout.aborting:
        return replace(rollout, due_at=None)
    under_way = unfinished(rollout)
    if any(wave.state is WaveState.CHECKING for wave in under_way):
        return replace(rollout, due_at=now + LOOK_FOR_POLLS)
    if under_way:
        return replace(rollout, due_at=health.look_at(rollout, orders.values(), quiet, now=now))
    resting = resting_until(rollout)
    if resting is None or resting <= now:
        return replace(rollout, due_at=None)
    return replace(rollout, due_at=resting, waiting=())


def next_wave(
    rollout: Rollout, scene: Scene, *, now: datetime, policy: Policy
) -> tuple[Rollout, tuple[HostName, ...]]:
    """Cut anew what is not begun, and choose the hosts that may be announced now.

    If there is none, it is looked at again when the first window lets it, or when the fleet changes.
    """
    rollout = replan(_without_departed(rollout, scene), scene)
    if not rollout.left:
        return replace(rollout, blocked=False), ()
    timings = Timings(rollout, scene, policy)
    reasons = {host: why_not(host, scene, timings, now=now) for host in rollout.left}
    free = [host for host in rollout.left if not reasons[host]]
    first = rollout.planned[0].hosts
    chosen = first if all(not reasons[host] for host in first) else ()
    spare = {group: budget.spare for group, budget in scene.budgets.items()}
    chosen = waves.pick(chosen or free, scene.footprints, at_once=rollout.hosts_at_once, spare=spare)
    if chosen != first and chosen:
        rest = [host for host in rollout.left if host not in chosen]
        rollout = replace(rollout, waves=(*rollout.begun, Wave(hosts=chosen), *_cut(rest, rollout, scene)))
    blocking = tuple(dict.fromkeys(why for host in rollout.left for why in reasons[host]))
    opening = (timings.tell_at(host, now) for host in rollout.left)
    due_at = min((moment for moment in opening if moment is not None and moment > now), default=None)
    return replace(rollout, waiting=blocking, blocked=not chosen, due_at=due_at), chosen


def why_not(host: HostName, scene: Scene, timings: Timings, *, now: datetime) -> tuple[Waiting, ...]:
    """Say why a host cannot be announced at this moment."""
    outside: tuple[Waiting, ...] = ()
    if timings.tell_at(host, now) != now:
        outside = timings.of(host).why_not_tell(host, now=now)
    return (*not_now(host, scene), *outside)


def _without_departed(rollout: Rollout, scene: Scene) -> Rollout:
    """Forget hosts that have left the fleet before their turn."""
    gone = {host for host in rollout.left if host not in scene.hosts}
    return replace(rollout, hosts=tuple(host for host in rollout.hosts if host not in gone))


def replan(rollout: Rollout, scene: Scene) -> Rollout:
    """Cut anew what is not begun, unless it still holds good."""
    good = waves.holds_good(
        rollout.planned,
        rollout.left,
        scene.footprints,
        at_once=rollout.hosts_at_once,
        spare=_spare_at_best(scene),
    )
    if good:
        return rollout
    return replace(rollout, waves=(*rollout.begun, *_cut(rollout.left, rollout, scene)))


def _cut(hosts: Sequence[HostName], rollout: Rollout, scene: Scene) -> tuple[Wave, ...]:
    spare = _spare_at_best(scene)
    return waves.cut(hosts, scene.footprints, at_once=rollout.hosts_at_once, spare=spare)


def _spare_at_best(scene: Scene) -> dict[GroupName, int]:
    return {group: budget.members - budget.needs for group, budget in scene.budgets.items()}


def begin(rollout: Rollout, placed: Mapping[HostName, OrderId], scene: Scene) -> Rollout:
    """Turn the first planned wave into one whose hosts have orders."""
    first, *rest = rollout.planned
    wave = replace(first, state=WaveState.ANNOUNCED, orders=tuple(placed[host] for host in first.hosts))
    conflicts = _conflicts(first, rest[0], scene) if rest else ()
    waiting = tuple(dict.fromkeys((*rollout.waiting, *conflicts)))
    return replace(rollout, waves=(*rollout.begun, wave, *rest), waiting=waiting)


def _conflicts(wave: Wave, after: Wave, scene: Scene) -> tuple[Waiting, ...]:
    """Say which update domains of the next wave wait for one of this wave."""
    told: dict[GroupName, int] = {}
    for host in wave.hosts:
        for group, counts in scene.footprints.get(host, NOBODY).domains.items():
            told.setdefault(group, min(counts))
    found = []
    for host in after.hosts:
        for group, counts in scene.footprints.get(host, NOBODY).domains.items():
            if group in told and min(counts) != told[group]:
                reason = f"update domain {min(counts)} waits for domain {told[group]}"
                found.append(Waiting(what=group, reason=reason, group=group))
    return tuple(dict.fromkeys(found))


def reasons(rollout: Rollout, *, now: datetime) -> tuple[Waiting, ...]:
    """Say for everything that is not begun why it waits, in the order of the waves."""
    if not rollout.open or rollout.aborting:
        return rollout.waiting
    begun = len(rollout.begun)
    turns = tuple(
        Waiting(what=host, reason=f"wave {begun + place} waits for wave {begun + place - 1}")
        for place, wave in enumerate(rollout.planned, start=1)
        if begun + place > 1
        for host in wave.hosts
    )
    resting = resting_until(rollout) if rollout.left and not unfinished(rollout) else None
    gap: tuple[Waiting, ...] = ()
    if resting is not None and resting > now:
        gap = (Waiting(what=f"wave {begun + 1}", reason=f"the gap lasts until {stamp(resting)}"),)
    return (*rollout.waiting, *gap, *turns)
