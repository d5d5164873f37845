"""Work on hosts, and failed or lost hosts: notice, moves, fencing (rules 5 and 13)."""

from collections.abc import Iterator

from forewarn.core.basic_types import (
    EXTERNAL,
    Action,
    EventStatus,
    GroupName,
    HostName,
    HostState,
    HostTask,
    Kind,
    MachineId,
    MachineState,
    StepState,
    Work,
)
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order, Stage
from forewarn.core.model.slice import Slice
from tests.rules.change import MOVING, Change, begun

_MOVES_AT_ONCE = 2


def work_on_whole_hosts_begins_once(change: Change) -> Iterator[str]:
    """Rule 5: work on a whole host begins once, and after every machine on it had an event."""
    for order in change.after.orders.values():
        known = change.before.orders.get(order.id)
        if not (order.terms.whole or order.terms.together):
            continue
        begun = _begun_on_host(order)
        if len(begun) > 1:
            yield f"{order.id} on the whole of {order.host} began twice"
        if not begun or (known and _begun_on_host(known)):
            continue
        told = {step.machine for step in begun[0].steps if step.state is not StepState.MOOT}
        for machine in change.after.machines.values():
            carried = machine.host == order.host and machine.state is not MachineState.STOPPED
            if carried and machine.id not in told:
                yield f"{order.id} began on the whole of {order.host}, but {machine.name} had no event"


def _begun_on_host(order: Order) -> list[Stage]:
    return [stage for stage in order.stages if stage.started_at is not None and stage.kind not in MOVING]


def work_on_hosts_is_announced_to_all_machines(change: Change) -> Iterator[str]:
    """Rule 5: when work on a host begins, each machine on it has a started event, in one domain per group."""
    for order in change.after.orders.values():
        known = change.before.orders.get(order.id)
        begins = _begun_on_host(order) and not (known and _begun_on_host(known))
        if order.action is not Action.SERVICE or not begins:
            continue
        started = _named_in_started(change.after, order)
        domains: dict[GroupName, set[int]] = {}
        for machine in change.after.machines.values():
            if machine.host != order.host or machine.state is MachineState.STOPPED:
                continue
            domains.setdefault(machine.group, set()).add(machine.update_domain)
            if machine.id not in started:
                yield f"work on {order.host} began, and {machine.name} has no started event"
        for group, found in domains.items():
            exempt = order.terms.together or change.after.groups[group].policy.gang
            if len(found) > 1 and not exempt:
                yield f"work on {order.host} began, which carries update domains {sorted(found)} of {group}"


def _named_in_started(fleet: Slice, order: Order) -> set[MachineId]:
    mine = (event for event in fleet.events.values() if event.order == order.id)
    started = (event for event in mine if event.status is EventStatus.STARTED)
    return {named.machine for event in started for named in event.resources}


def concurrent_moves_are_limited(change: Change) -> Iterator[str]:
    """No more machines leave a host together than the host allows (by default two)."""
    for order in change.after.orders.values():
        host = change.after.hosts[order.host] if order.host is not None else None
        at_once = (host.at_once if host is not None else None) or _MOVES_AT_ONCE
        for stage in order.stages if order.driver != EXTERNAL else ():
            moving = [step for step in stage.steps if step.state is StepState.RUNNING]
            if stage.kind in MOVING and len(moving) > at_once:
                yield f"{len(moving)} machines leave {order.host} at once"


def cordons_end_with_their_order(change: Change) -> Iterator[str]:
    """A host is cordoned for an order only while the order is open."""
    for host in change.after.hosts.values():
        if host.cordoned_for is not None and host.cordoned_for not in change.after.orders:
            yield f"{host.name} is cordoned for {host.cordoned_for}, which is over"


def machines_move_to_sound_hosts(change: Change) -> Iterator[str]:
    """A machine moves to a host that is reachable, and neither cordoned nor degraded nor failed."""
    for order in change.after.orders.values():
        known = change.before.orders.get(order.id)
        before = begun(known)
        running = (step for step in order.steps if step.state is StepState.RUNNING)
        for step in running:
            if step.target is None or (step.machine, step.begun_at) in before:
                continue
            target = change.after.hosts[step.target]
            if target.state is not HostState.OK:
                yield f"{step.name} goes to {step.target}, which is {target.state}"
            if target.unreachable_since is not None and order.placed_by_forewarn:
                yield f"{step.name} goes to {step.target}, which cannot be reached"


_AWAY = (HostState.FAILED, HostState.LOST)
_BRINGS_UP = (Work.RECOVER, Work.START)


def hosts_are_fenced_before_machines_leave(change: Change) -> Iterator[str]:
    """Rule 13: no machine leaves a failed or lost host before the host is fenced or confirmed isolated."""
    for order in change.after.orders.values():
        known = change.before.orders.get(order.id)
        confirmed = order.action is Action.FAIL and bool(order.terms.fenced)
        written = any(each.kind == Kind.HOST_FENCED and each.order == order.id for each in change.records)
        if confirmed and not (known is not None and known.terms.fenced) and not written:
            yield f"no record says who confirmed that {order.host} in {order.id} is isolated"
        before, fenced = begun(known), _is_fenced(order) and not _failed_again(change.after, order)
        for step in order.steps:
            begins = step.begun_at is not None and (step.machine, step.begun_at) not in before
            if not begins or not step.moves or fenced:
                continue
            if order.action is Action.FAIL or _was_away(change, step.machine):
                yield f"{step.name} is moved by {order.id}, and its host was not fenced"


def machines_stay_on_hosts_that_are_not_fenced(change: Change) -> Iterator[str]:
    """Rule 13: a machine stays on a failed or lost host until the host is fenced.

    Exceptions are reports of an eviction, a move, or a recovery that began before the host failed again, and
    declarations of people.
    """
    told = {
        (record.project, record.machine)
        for record in change.records
        if record.kind in (Kind.STEP_DONE, Kind.MACHINE_MOVED)
    }
    for machine in change.after.machines.values():
        known = change.before.machines.get(machine.id)
        if known is None or known.host is None or known.host == machine.host:
            continue
        if (
            (_was_away(change, machine.id) or _waits_for_a_fence(change.before, known))
            and not _may_leave(change, known)
            and (known.project, known.name) not in told
        ):
            yield f"{machine.name} has left {known.host}, which is not fenced"


def _waits_for_a_fence(fleet: Slice, machine: Machine) -> bool:
    """Whether a machine waits for its recovery from a host that was not fenced, even if it is restored."""
    failure = _newest_failure(fleet, machine.host)
    if failure is None or _is_fenced(failure):
        return False
    return any(step.machine == machine.id and step.state is StepState.WAITING for step in failure.steps)


def nothing_starts_on_a_failed_host(change: Change) -> Iterator[str]:
    """Rule 13: a machine that is being started on a host that fails is recovered with the host."""
    for order in change.after.orders.values():
        for step in order.steps:
            host = None if step.target is None else change.after.hosts[step.target]
            up = step.state is StepState.RUNNING and step.work in _BRINGS_UP
            if up and host is not None and host.state is HostState.FAILED:
                yield f"{step.name} is still being started by {order.id} on {host.name}, which failed"


def _may_leave(change: Change, machine: Machine) -> bool:
    """Whether the host of a machine is fenced, or was when the machine's recovery began."""
    recovered = any(
        step.machine == machine.id and step.state is StepState.RUNNING
        for order in change.before.orders.values()
        if order.action is Action.FAIL
        for step in order.steps
    )
    newest = _newest_failure(change.after, machine.host) or _newest_failure(change.before, machine.host)
    return recovered or (newest is not None and _is_fenced(newest))


def _is_fenced(order: Order) -> bool:
    done = any(step.task is HostTask.FENCE and step.state is StepState.DONE for step in order.host_steps)
    return done or (order.action is Action.FAIL and bool(order.terms.fenced))


def _newest_failure(fleet: Slice, host: HostName | None) -> Order | None:
    mine = (order for order in fleet.orders.values() if order.host == host and order.action is Action.FAIL)
    return max(mine, key=lambda order: order.number, default=None)


def _failed_again(fleet: Slice, order: Order) -> bool:
    newest = _newest_failure(fleet, order.host)
    return order.action is Action.FAIL and newest is not None and newest.id != order.id


def _was_away(change: Change, machine: MachineId) -> bool:
    """Whether the host that carried a machine failed or is lost."""
    known = change.before.machines.get(machine)
    host = None if known is None or known.host is None else change.after.hosts.get(known.host)
    return host is not None and host.state in _AWAY
