"""One machine at a time: added, changed, moved by other hands, removed."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, replace

from forewarn.core.basic_types import (
    HUMAN_SOURCES,
    EXTERNAL,
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
from forewarn.core.model.group import Group
from forewarn.core.model.machine import TRAITS, Machine
from forewarn.core.orders import departures
from forewarn.core.text_formats import paired

# What a declaration says of a machine that may change at any time, because it disturbs no guest.
PLAIN = tuple(trait for trait in TRAITS if trait != "update_domain")


def put(draft: Draft, spec: MachineSpec, known: Machine | None, *, by: str) -> Machine:
    """Add a machine, or make one what is declared, its host included: other hands may have moved it."""
    if known is None:
        return add(draft, replace(spec, source=PUT), by=by)
    changed = change(draft, known, replace(spec, source=_speaker(draft, known, spec)), by=by)
    if spec.host is None or spec.host == known.host:
        return changed
    return move(draft, changed, spec.host, by=by)


def _speaker(draft: Draft, known: Machine, spec: MachineSpec) -> str:
    """Return who speaks for a machine that is put: a person, as soon as it is not what a source says."""
    same = replace(spec, host=known.host, source=known.source) == spec_of(known, draft.groups[known.group])
    return known.source if same or known.source in HUMAN_SOURCES else PUT


def remove(draft: Draft, machine: Machine, *, by: str, why: str = "removed") -> None:
    """Take a machine out of the fleet."""
    departures.remove_from_fleet(draft, machine, why=why, by=by)


def spec_of(machine: Machine, group: Group) -> MachineSpec:
    """Return how a machine would be declared now."""
    plain = {name: getattr(machine, name) for name in PLAIN}
    return MachineSpec(
        name=machine.name,
        host=machine.host,
        group=None if group.kind is GroupKind.STANDALONE else group.name,
        project=machine.project,
        vm_id=machine.id,
        source=machine.source,
        update_domain=machine.update_domain,
        **plain,
    )


def add(draft: Draft, spec: MachineSpec, *, by: str, running: bool = True) -> Machine:
    """Add a machine that is not known yet; one that does not run needs no host."""
    if spec.host is not None:
        _check_host(draft, spec.host, spec.name)
    elif running:
        raise Invalid(f'machine "{spec.name}": host: expected the host that carries it first')
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
        update_domain=spec.update_domain,
        **{name: getattr(spec, name) for name in PLAIN},
    )
    draft.record(Kind.MACHINE_ADDED, machine, by=by)
    return draft.put_machine(machine)


def _id_for(draft: Draft, spec: MachineSpec) -> MachineId:
    if spec.vm_id is None:
        return MachineId(draft.new_id().lower())
    if spec.vm_id in draft.machines:
        raise Conflict(
            f'machine "{spec.name}": vm-id: "{draft.machines[spec.vm_id].name}" has {spec.vm_id}: '
            "give this one its own, or rename that one"
        )
    return spec.vm_id


def change(draft: Draft, known: Machine, spec: MachineSpec, *, by: str) -> Machine:
    """Make a machine what is declared, but leave it on the host it is on."""
    if spec.vm_id not in (None, known.id):
        raise Conflict(
            f'machine "{spec.name}": vm-id: it is {known.id}, and cannot become {spec.vm_id}: '
            "leave vm-id out, or, if this is another machine, first remove the one there "
            f"(forewarn machine delete {known.name})"
        )
    _check_bare_metal(draft, spec)
    own = draft.groups[known.group]
    alone = spec.group is None and own.kind is GroupKind.STANDALONE
    group = own.name if alone else _group_for(draft, spec, known.id)
    if (spec.name, group, spec.update_domain) != (known.name, own.name, known.update_domain):
        _refuse_while_announced(draft, known)
        draft.wake(departures.open_orders_with(draft, known.id))  # they may wait for what is no longer so
    plain = {name: getattr(spec, name) for name in PLAIN}
    changed = replace(
        known,
        name=spec.name,
        group=group,
        project=spec.project,
        source=spec.source,
        update_domain=spec.update_domain,
        **plain,
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
    """Have a machine on the host where other hands have brought it."""
    recovered = _is_recovered_outside(draft, machine)
    _check_host(draft, host, machine.name)
    departures.remove_from_host_orders(draft, machine, why=f"moved to {host} by {by}")
    # Nothing is being done to it, so it runs where it was moved to, unless it was stopped there for good.
    stays_down = machine.state is MachineState.STOPPED and machine.host is not None
    state = MachineState.STOPPED if stays_down else MachineState.RUNNING
    moved = replace(machine, host=host, state=machine.state if recovered else state)
    draft.record(Kind.MACHINE_MOVED, moved, by=by, reason=f"{machine.host or 'nowhere'} to {host}")
    return draft.put_machine(moved)


def _is_recovered_outside(draft: Draft, machine: Machine) -> bool:
    """Return whether others bring it up again and say on which host; whoever else is at it, chooses that."""
    for order in departures.open_orders_with(draft, machine.id):
        for step in order.steps:
            if step.machine == machine.id and step.state is StepState.RUNNING:
                if step.work is Work.RECOVER and order.driver == EXTERNAL:
                    return True
                hands = f"in the hands of order {order.id} ({order.action})"
                raise Conflict(f'machine "{machine.name}" is {hands}')
    return False


def _check_bare_metal(draft: Draft, spec: MachineSpec) -> None:
    # Of its own host and of the one that it is named after: there may be thousands of others.
    concerned = {spec.host, HostName(spec.name)}
    bare_metal = {name for name in concerned if name in draft.hosts and draft.hosts[name].bare_metal}
    check_bare_metal(spec, bare_metal, f'machine "{spec.name}"')


def _check_host(draft: Draft, host: HostName, machine: MachineName) -> None:
    if host not in draft.hosts:
        raise Invalid(f'machine "{machine}": host: expected one of the hosts, got {host!r}')
    state = draft.hosts[host].state
    if state in (HostState.FAILED, HostState.LOST):
        raise Conflict(f'host "{host}" is {state}: it cannot take "{machine}"')


def check_bare_metal(spec: MachineSpec, bare_metal: Collection[HostName], where: str) -> None:
    """Refuse another machine on bare metal, and bare metal that is elsewhere or can leave."""
    own = HostName(spec.name)
    if own in bare_metal:
        if spec.host not in (None, own):
            raise Invalid(
                f'{where}: host: expected "{own}", which is bare metal, or nothing, got "{spec.host}"'
            )
        if spec.mobility is not Mobility.NONE:
            raise Invalid(f'{where}: mobility: expected "none", for it is bare metal, got "{spec.mobility}"')
    elif spec.host in bare_metal:
        raise Invalid(
            f'{where}: host: expected another, for "{spec.host}" is bare metal and carries itself alone'
        )


def _group_for(draft: Draft, spec: MachineSpec, machine: MachineId) -> GroupName:
    """Return the declared group, or make the group of its own that a standalone machine is."""
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
    for event in draft.events.values():
        if event.listed and any(named.machine == machine.id for named in event.resources):
            raise Conflict(
                f'machine "{machine.name}" is named in event {event.id}: '
                "it cannot be renamed or regrouped until that is over"
            )


def differences(before: Machine, after: Machine) -> Iterable[str]:
    """Write what has changed."""
    names = (each.name for each in fields(Machine) if each.name != "last_host")  # which its host says
    for name in sorted(names, key=TRAITS.__contains__):
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            yield f"{name.replace('_', '-')} {_said(old)} to {_said(new)}"


def _said(value: object) -> str:
    if isinstance(value, Mapping):
        return paired(value)
    return "none" if value in (None, "") else f"{value}"
