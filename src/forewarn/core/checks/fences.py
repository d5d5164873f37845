"""Hosts that have failed or are lost: nobody runs elsewhere before they are fenced (rule 13)."""

from collections.abc import Iterator

from forewarn.core.checks.change import Change, begun
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.slice import Slice
from forewarn.core.words import Action, HostName, HostState, HostTask, Kind, MachineId, StepState, Work

_AWAY = (HostState.FAILED, HostState.LOST)
_BRINGS_UP = (Work.RECOVER, Work.START)


def hosts_are_fenced_before_others_take_over(change: Change) -> Iterator[str]:
    """Rule 13: no machine leaves a failed or lost host unless that is fenced, or somebody vouches for it."""
    for order in change.after.orders.values():
        known = change.before.orders.get(order.id)
        vouched = order.action is Action.FAIL and bool(order.terms.fenced)
        written = any(each.kind == Kind.HOST_FENCED and each.order == order.id for each in change.records)
        if vouched and not (known is not None and known.terms.fenced) and not written:
            yield f"nobody knows who vouched for {order.host} in {order.id}"
        before, fenced = begun(known), _is_fenced(order) and not _failed_again(change.after, order)
        for step in order.steps:
            begins = step.begun_at is not None and (step.machine, step.begun_at) not in before
            if not begins or not step.moves or fenced:
                continue
            if order.action is Action.FAIL or _was_away(change, step.machine):
                yield f"{step.name} is moved by {order.id}, and its host was not fenced"


def machines_stay_on_hosts_that_are_not_fenced(change: Change) -> Iterator[str]:
    """Rule 13: a machine is on a failed or lost host until that is fenced, or those who know say otherwise.

    These are whoever carries out an eviction, a move, or a recovery that was begun before the host failed
    once more, and people who declare where a machine is.
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
    """Return whether a machine was to be recovered from a host that was not fenced, restored since or not."""
    failure = _newest_failure(fleet, machine.host)
    if failure is None or _is_fenced(failure):
        return False
    return any(step.machine == machine.id and step.state is StepState.WAITING for step in failure.steps)


def nothing_is_brought_up_on_a_failed_host(change: Change) -> Iterator[str]:
    """Rule 13: who is being started on a host that fails may run there, and is recovered with it."""
    for order in change.after.orders.values():
        for step in order.steps:
            host = None if step.target is None else change.after.hosts[step.target]
            up = step.state is StepState.RUNNING and step.work in _BRINGS_UP
            if up and host is not None and host.state is HostState.FAILED:
                yield f"{step.name} is still brought up by {order.id} on {host.name}, which failed"


def _may_leave(change: Change, machine: Machine) -> bool:
    """Return whether the host of a machine is fenced, or was when its recovery began."""
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
    """Return whether the host that carried a machine has failed or is lost."""
    known = change.before.machines.get(machine)
    host = None if known is None or known.host is None else change.after.hosts.get(known.host)
    return host is not None and host.state in _AWAY
