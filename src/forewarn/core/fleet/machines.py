"""Adding, changing, moving and removing one machine."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import fields, replace
from typing import Any

from forewarn.core.basic_types import (
    EXTERNAL,
    HUMAN_SOURCES,
    PUT,
    STANDALONE,
    GroupKind,
    GroupName,
    HostName,
    HostState,
    Kind,
    MachineId,
    MachineName,
    MachineState,
    Mobility,
    StepState,
    Work,
)
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.model.declaration import MachineSpec
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.machine import TRAITS, Machine
from forewarn.core.orders import departures
from forewarn.core.text_formats import hint, shown_value


def put(draft: Draft, spec: MachineSpec, known: Machine | None, *, by: str) -> Machine:
    """Add a machine, or change it to its declaration, including its host."""
    if known is None:
        return add(draft, replace(spec, source=PUT), by=by)
    same = replace(spec, host=known.host, source=known.source) == spec_of(known, draft.groups[known.group])
    changed = change(draft, known, replace(spec, source=put_source(known.source, same=same)), by=by)
    return changed if spec.host in (None, known.host) else move(draft, changed, spec.host, by=by)


def put_source(source: str, *, same: bool) -> str:
    """Return the source of a thing after a person put it: that person, unless nothing changed."""
    return source if same or source in HUMAN_SOURCES else PUT


def remove(draft: Draft, machine: Machine, *, by: str, why: str = "removed") -> None:
    """Remove a machine from the fleet."""
    departures.remove_from_fleet(draft, machine, why=why, by=by)


def spec_of(machine: Machine, group: Group) -> MachineSpec:
    """Return the declaration of a machine as it is now."""
    return MachineSpec(
        name=machine.name,
        host=machine.host,
        group=None if group.kind is GroupKind.STANDALONE else group.name,
        project=machine.project,
        vm_id=machine.id,
        source=machine.source,
        **_traits(machine),
    )


def _traits(machine: Machine | MachineSpec) -> dict[str, Any]:
    return {name: getattr(machine, name) for name in TRAITS}


def add(draft: Draft, spec: MachineSpec, *, by: str, running: bool = True) -> Machine:
    """Add a new machine; one that is stopped needs no host."""
    if spec.host is not None:
        _check_host(draft, spec.host, spec.name)
    elif running:
        raise Invalid(f'machine "{spec.name}": host: expected its first host')
    _check_bare_metal(draft, spec)
    id_ = _id_for(draft, spec)
    machine = Machine(
        id=id_,
        name=spec.name,
        project=spec.project,
        group=_group_for(draft, spec, id_),
        host=spec.host if running else None,
        last_host=None if running else spec.host,
        state=MachineState.RUNNING if running else MachineState.STOPPED,
        source=spec.source,
        **_traits(spec),
    )
    draft.record(Kind.MACHINE_ADDED, machine, by=by)
    return draft.put_machine(machine)


def _id_for(draft: Draft, spec: MachineSpec) -> MachineId:
    if spec.vm_id is None:
        return MachineId(draft.new_id().lower())
    if spec.vm_id in draft.machines:
        raise Conflict(
            f'machine "{spec.name}": vm-id: "{draft.machines[spec.vm_id].name}" has {spec.vm_id}: '
            "give this machine its own, or rename the other"
        )
    return spec.vm_id


def change(draft: Draft, known: Machine, spec: MachineSpec, *, by: str) -> Machine:
    """Change a machine to its declaration, but leave it on its host."""
    if spec.vm_id not in (None, known.id):
        raise Conflict(
            f'machine "{spec.name}": vm-id: it is {known.id} and cannot become {spec.vm_id}: '
            "leave vm-id out, or, if this is another machine, first remove the one there "
            f"(forewarn machine delete {known.name})"
        )
    _check_bare_metal(draft, spec)
    own = draft.groups[known.group]
    alone = spec.group is None and own.kind is GroupKind.STANDALONE
    group = own.name if alone else _group_for(draft, spec, known.id)
    if (spec.name, group, spec.update_domain) != (known.name, own.name, known.update_domain):
        _refuse_while_announced(draft, known)
        draft.wake(departures.open_orders_with(draft, known.id))  # their reasons to wait may be gone
    changed = replace(
        known, name=spec.name, group=group, project=spec.project, source=spec.source, **_traits(spec)
    )
    if changed == known:
        return known
    if own.kind is GroupKind.STANDALONE:
        if alone:
            draft.put_group(replace(own, project=spec.project))
        else:
            del draft.groups[own.name]
    draft.record(Kind.MACHINE_CHANGED, changed, by=by, reason=", ".join(differences(known, changed)))
    return draft.put_machine(changed)


def move(draft: Draft, machine: Machine, host: HostName, *, by: str) -> Machine:
    """Record that a machine was moved to a host outside forewarn."""
    recovered = _is_recovered_outside(draft, machine)
    _check_host(draft, host, machine.name)
    departures.remove_from_host_orders(draft, machine, why=f"moved to {host} by {by}")
    # No step of it is under way, so it runs on the new host, unless it was stopped while on a host.
    stays_down = machine.state is MachineState.STOPPED and machine.host is not None
    state = MachineState.STOPPED if stays_down else MachineState.RUNNING
    moved = replace(machine, host=host, state=machine.state if recovered else state)
    draft.record(Kind.MACHINE_MOVED, moved, by=by, reason=f"{machine.host or 'nowhere'} to {host}")
    return draft.put_machine(moved)


def _is_recovered_outside(draft: Draft, machine: Machine) -> bool:
    """Whether an external recovery of the machine is under way; refuse during any other step of it."""
    for order in departures.open_orders_with(draft, machine.id):
        for step in order.steps:
            if step.machine == machine.id and step.state is StepState.RUNNING:
                if step.work is Work.RECOVER and order.driver == EXTERNAL:
                    return True
                raise Conflict(
                    f'machine "{machine.name}" is in a running step of order {order.id} ({order.action})'
                )
    return False


def _check_bare_metal(draft: Draft, spec: MachineSpec) -> None:
    # Check the machine's host and the host with its name only: there may be thousands of others.
    concerned = {spec.host, HostName(spec.name)}
    bare_metal = {name for name in concerned if name in draft.hosts and draft.hosts[name].bare_metal}
    check_bare_metal(spec, bare_metal, f'machine "{spec.name}"')


def _check_host(draft: Draft, host: HostName, machine: MachineName) -> None:
    if host not in draft.hosts:
        raise Invalid(f'machine "{machine}": host: expected one of the hosts, got {host!r}')
    state = draft.hosts[host].state
    if state in (HostState.FAILED, HostState.LOST):
        raise Conflict(f'host "{host}" is {state}: it cannot take "{machine}"')


def check_known(where: str, section: str, name: str, known: Collection[str]) -> None:
    """Refuse a name that a section of the fleet does not declare."""
    if name not in known:
        raise Invalid(f"{where}: expected one of the {section}, got {name!r}{hint(name, sorted(known))}")


def check_bare_metal(spec: MachineSpec, bare_metal: Collection[HostName], where: str) -> None:
    """Refuse another machine on a bare-metal host, and a bare-metal machine that is elsewhere or can move."""
    own = HostName(spec.name)
    if own in bare_metal:
        if spec.host not in (None, own):
            raise Invalid(
                f'{where}: host: expected "{own}", which is bare metal, or nothing, got "{spec.host}"'
            )
        if spec.mobility is not Mobility.NONE:
            raise Invalid(
                f'{where}: mobility: expected "none" because it is bare metal, got "{spec.mobility}"'
            )
    elif spec.host in bare_metal:
        raise Invalid(f'{where}: host: expected another host, because "{spec.host}" is bare metal')


def _group_for(draft: Draft, spec: MachineSpec, machine: MachineId) -> GroupName:
    """Return the declared group; for a standalone machine, create its own."""
    if spec.group is not None:
        return spec.group
    own = Group(
        name=GroupName(f"{STANDALONE}{machine}"),
        project=spec.project,
        kind=GroupKind.STANDALONE,
        born=draft.number + 1,
    )
    return draft.put_group(own).name


def _refuse_while_announced(draft: Draft, machine: Machine) -> None:
    for event in listed_events(draft, machine):
        raise Conflict(
            f'machine "{machine.name}" is named in event {event.id}: '
            "it cannot be renamed or regrouped until the event is over"
        )


def listed_events(draft: Draft, machine: Machine) -> Iterator[Event]:
    """Yield the listed events that name a machine."""
    for event in draft.events.values():
        known = event.listed and event.group == machine.group
        if known and any(named.machine == machine.id for named in event.resources):
            yield event


def differences(before: Machine, after: Machine) -> Iterable[str]:
    """Describe the changed fields."""
    names = (each.name for each in fields(Machine) if each.name != "last_host")  # `host` says it
    for name in sorted(names, key=TRAITS.__contains__):
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            yield f"{name.replace('_', '-')} {shown_value(old)} to {shown_value(new)}"
