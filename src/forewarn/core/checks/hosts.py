"""Work on hosts: who is told before it begins, who leaves, and where they go (rule 5)."""

from collections.abc import Iterator

from forewarn.core.checks.change import MOVING, Change, begun
from forewarn.core.model.order import Order, Stage
from forewarn.core.model.slice import Slice
from forewarn.core.words import (
    EXTERNAL,
    Action,
    EventStatus,
    GroupName,
    HostState,
    MachineId,
    MachineState,
    StepState,
)

_MOVES_AT_ONCE = 2


def whole_hosts_are_done_in_one_go(change: Change) -> Iterator[str]:
    """Rule 5: work on a whole host begins once, and every machine that the host carries then was told."""
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
                yield f"{order.id} began on the whole of {order.host}, and {machine.name} was not told"


def _begun_on_host(order: Order) -> list[Stage]:
    return [stage for stage in order.stages if stage.started_at is not None and stage.kind not in MOVING]


def hosts_are_worked_on_with_everybody_told(change: Change) -> Iterator[str]:
    """Rule 5: as the work on a host begins, all on it have a started event, of one domain of each group."""
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


def moves_go_a_few_at_a_time(change: Change) -> Iterator[str]:
    """No more machines leave a host together than it says, or two."""
    for order in change.after.orders.values():
        host = change.after.hosts[order.host] if order.host is not None else None
        at_once = (host.at_once if host is not None else None) or _MOVES_AT_ONCE
        for stage in order.stages if order.driver != EXTERNAL else ():
            moving = [step for step in stage.steps if step.state is StepState.RUNNING]
            if stage.kind in MOVING and len(moving) > at_once:
                yield f"{len(moving)} machines leave {order.host} at once"


def cordons_are_given_back(change: Change) -> Iterator[str]:
    """A host is cordoned for an order only as long as that is open."""
    for host in change.after.hosts.values():
        if host.cordoned_for is not None and host.cordoned_for not in change.after.orders:
            yield f"{host.name} is cordoned for {host.cordoned_for}, which is over"


def machines_move_to_sound_hosts(change: Change) -> Iterator[str]:
    """A machine moves to a host that can be reached, and is neither cordoned nor degraded nor failed."""
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
            if target.unreachable_since is not None and order.placed_here:
                yield f"{step.name} goes to {step.target}, which cannot be reached"
