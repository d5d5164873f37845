"""Checks of a fleet between two transactions: places of machines, overdue events, reasons to wait."""

from datetime import datetime

from forewarn.core.basic_types import HINTS, EventStatus, HostName, HostState, MachineState, StepState
from forewarn.core.catalogue import ACTIONS
from forewarn.core.model.slice import Slice
from forewarn.core.policy import Policy


def misplaced(fleet: Slice) -> list[str]:
    """Return the machines in impossible places, and the names in events that no machine has."""
    lost = [
        f"{event.id} names {named.name}, which left the fleet"
        for event in fleet.events.values()
        for named in event.resources
        if named.machine not in fleet.machines
    ]
    homeless = [
        f"{machine.name} is {machine.state} on no host"
        for machine in fleet.machines.values()
        if machine.host is None and machine.state is not MachineState.STOPPED
    ]
    # A machine runs until its eviction is done.
    leaving = {
        step.machine
        for order in fleet.orders.values()
        if ACTIONS[order.action].leaves
        for step in order.steps
        if step.state is StepState.RUNNING
    }
    dead = [
        f"{machine.name} is running on {machine.host}, which failed"
        for machine in fleet.machines.values()
        if machine.state is MachineState.RUNNING and _has_failed(fleet, machine.host)
        if machine.id not in leaving
    ]
    return lost + homeless + dead


def _has_failed(fleet: Slice, host: HostName | None) -> bool:
    return host is not None and fleet.hosts[host].state is HostState.FAILED


def overdue(fleet: Slice, *, now: datetime, policy: Policy) -> list[str]:
    """Rules 4 and 11, after a tick: return the events that are overdue, or that should be armed."""
    scheduled = [event for event in fleet.events.values() if event.status is EventStatus.SCHEDULED]
    late = [
        f"{event.id} is {now - event.not_before} past its NotBefore"
        for event in scheduled
        if now >= event.not_before + policy.stale_after
    ]
    unarmed = [
        f"{event.id} is not armed, {event.not_before - now} before its NotBefore"
        for event in scheduled
        if event.armed_at is None and event.type not in HINTS
        if event.not_before - now <= policy.notice(event.type)
    ]
    return late + unarmed


def unexplained(fleet: Slice) -> list[str]:
    """Rule 10: return the orders that wait without a reason."""
    return [
        f"order {order.id} is {order.state} for no reason"
        for order in fleet.orders.values()
        if order.state in ("queued", "announced", "failed") and not order.waiting
    ]
