"""Whom changes wake: which orders and rollouts may go on after them."""

from collections.abc import Iterable, Mapping
from itertools import chain

from forewarn.core.copies import replace
from forewarn.core.model.changes import Changes
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine
from forewarn.core.model.slice import Slice
from forewarn.core.words import GroupName, HostName, Kind, MachineState


def with_wakes(changes: Changes, base: Slice, *, groups: Mapping[GroupName, Group]) -> Changes:
    """Return changes with whom they wake; `base` is what was before, `groups` what is now."""
    return replace(
        changes,
        relieved_groups=frozenset(_relieved(changes, base)),
        hosts_with_news=frozenset(chain(_gaining_hosts(changes), _lost_or_found(changes, base))),
        changed_groups_and_hosts=frozenset(name for name in _stirred(changes) if name is not None),
        machine_found_off=any(_found_off(changes)),
        budgets_tightened=any(
            name in groups and groups[name].policy.budget for name in _tightened(changes, base)
        ),
    )


# What orders wait for whose machines find no room, as others wait for a group; no group is called so.
ROOM = GroupName("room/")


def _relieved(changes: Changes, base: Slice) -> Iterable[GroupName]:
    yield from (event.group for event in changes.events if not event.listed or _names_fewer(event, base))
    if changes.hosts or any(map(_makes_room, changes.machines_before.values())):
        yield ROOM
    for machine in changes.machines:
        before = changes.machines_before.get(machine.id)
        if machine.state is not MachineState.RUNNING:
            continue
        if before is None or (before.state, before.group) != (machine.state, machine.group):
            yield machine.group
    for group in changes.groups:
        known = base.groups.get(group.name)
        if known is not None and known.policy != group.policy:
            yield group.name


def _names_fewer(event: Event, base: Slice) -> bool:
    """Return whether a machine has left an event: budgets and `freezes-at-once` count those that it names."""
    before = base.events.get(event.id)
    return before is not None and len(event.resources) < len(before.resources)


def _gaining_hosts(changes: Changes) -> Iterable[HostName]:
    """Return the hosts that machines have come to, or do not come to any more."""
    after = {machine.id: machine.destination for machine in changes.machines}
    for id_, known in changes.machines_before.items():
        if known.bound_for is not None and after.get(id_) != known.bound_for:
            yield known.bound_for
    for machine in changes.machines:
        before = changes.machines_before.get(machine.id)
        if machine.host is not None and (before is None or before.host != machine.host):
            yield machine.host


def _lost_or_found(changes: Changes, base: Slice) -> Iterable[HostName]:
    """Return the hosts that can be reached no more, or again: what waits for that says so."""
    for host in changes.hosts:
        before = base.hosts.get(host.name)
        if before is not None and (before.unreachable_since is None) != (host.unreachable_since is None):
            yield host.name


def _stirred(changes: Changes) -> Iterable[str | None]:
    """Return the groups and hosts that anything has changed about, before and after."""
    yield from (event.group for event in changes.events)
    yield from (order.host for order in changes.orders)
    for machine in chain(changes.machines, changes.machines_before.values()):
        yield from (machine.group, machine.host)
    yield from (group.name for group in changes.groups)
    yield from (host.name for host in changes.hosts)
    yield from chain(changes.removed_groups, changes.removed_hosts)


def _tightened(changes: Changes, base: Slice) -> Iterable[GroupName]:
    """Return the groups that have lost a machine, or need more than before."""
    after = {machine.id: machine.group for machine in changes.machines}
    for id_, machine in changes.machines_before.items():
        if after.get(id_) != machine.group:
            yield machine.group
    for group in changes.groups:
        known = base.groups.get(group.name)
        if known is not None and group.policy.budget > known.policy.budget:
            yield group.name


def _found_off(changes: Changes) -> Iterable[bool]:
    """Return of each machine whether others have stopped it: forewarn itself records a step."""
    changed = {record.machine for record in changes.records if record.kind is Kind.MACHINE_CHANGED}
    for machine in changes.machines:
        before = changes.machines_before.get(machine.id)
        ran = before is not None and before.state is not MachineState.STOPPED
        yield ran and machine.state is MachineState.STOPPED and machine.name in changed


def _makes_room(before: Machine) -> bool:
    """Return whether a machine that has changed may have left room: it took something, where it was."""
    return bool(before.resources) and before.destination is not None
