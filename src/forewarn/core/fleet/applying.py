"""Applying a declared fleet.

A declaration names a machine's first host. Orders move the machine afterwards, and applying leaves it there.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from typing import Any

from forewarn.core.basic_types import (
    EXTERNAL,
    HOOK,
    SYNCHRONOUS_DRIVERS,
    GroupName,
    HostName,
    Kind,
    MachineId,
    ProjectName,
)
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.fleet import machines, outside_changes
from forewarn.core.fleet.fleet_changes import DeclaredMachine, FleetChange, claims
from forewarn.core.model.declaration import FleetDefaults, FleetSpec, GroupSpec, HostSpec, MachineSpec
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import HostStep, Order, Step
from forewarn.core.model.project import Project
from forewarn.core.text_formats import counted, shown_value

WORK_WAITS = "hosts without a driver now use `external`: their work waits for a report"


def apply(draft: Draft, part: FleetChange, *, by: str) -> tuple[str, ...]:
    """Apply a part of a declaration, and return each change as a line.

    The draft contains everything that the part names, and the members of groups and projects that it removes.
    """
    return (
        *_apply_projects(draft, part.projects, by=by),
        *_apply_defaults(draft, part.defaults),
        *_apply_hosts(draft, part.hosts, by=by),
        *_apply_groups(draft, part.groups, by=by),
        *_remove_machines(draft, part.removed_machines, by=by),
        *outside_changes.apply_reports(draft, part.seen, by=by),
        *_apply_machines(draft, part.machines, by=by),
        *_drop_groups(draft, part.removed_groups, by=by),
        *_drop_hosts(draft, part.removed_hosts, by=by),
        *_drop_projects(draft, part.removed_projects, by=by),
    )


def validate(spec: FleetSpec) -> None:
    """Refuse a contradictory declaration, with the name of the field."""
    groups = {group.name: group for group in spec.groups}
    hosts = frozenset(host.name for host in spec.hosts)
    bare_metal = frozenset(host.name for host in spec.hosts if host.bare_metal)
    projects = frozenset(project.name for project in spec.projects)
    for group in spec.groups:
        machines.check_known(f"groups.{group.name}: project", "projects", group.project, projects)
    _check_budgets(spec)
    seen: dict[tuple[str, object], str] = {}
    for index, machine in enumerate(spec.machines):
        where = f'machines[{index}] "{machine.name}"'
        _check_machine(machine, where, groups=groups, hosts=hosts, projects=projects)
        machines.check_bare_metal(machine, bare_metal, where)
        for what, key in claims(machine):
            if (what, key) in seen:
                raise Invalid(f"{where}: {what}: expected a unique one, but {seen[what, key]} has it too")
            seen[what, key] = where


def _check_machine(
    machine: MachineSpec,
    where: str,
    *,
    groups: Mapping[GroupName, GroupSpec],
    hosts: frozenset[HostName],
    projects: frozenset[ProjectName],
) -> None:
    if machine.host is not None:
        machines.check_known(f"{where}: host", "hosts", machine.host, hosts)
    if machine.group is None:
        machines.check_known(f"{where}: project", "projects", machine.project, projects)
        return
    machines.check_known(f"{where}: group", "groups", machine.group, groups)
    group = groups[machine.group]
    if machine.update_domain >= group.update_domains:
        raise Invalid(
            f"{where}: update-domain: expected 0 to {group.update_domains - 1}, got {machine.update_domain}"
        )


def _check_budgets(spec: FleetSpec) -> None:
    sizes = Counter(machine.group for machine in spec.machines)
    for group in spec.groups:
        # If all machines had to be healthy, none could ever be maintained.
        if group.policy.budget and group.policy.budget >= sizes[group.name]:
            least = (
                f"expected fewer than its {counted(sizes[group.name], 'machine')}, got {group.policy.budget}"
            )
            raise Invalid(f"groups.{group.name}: policy.budget: {least}")


def _apply_projects(draft: Draft, projects: Iterable[Project], *, by: str) -> Iterable[str]:
    for wanted in projects:
        known = draft.projects.get(wanted.name)
        draft.projects[wanted.name] = wanted
        if known is None:
            draft.record(Kind.PROJECT_ADDED, wanted, by=by, reason=wanted.name)
            yield f"+ project {wanted.name}"
        elif known != wanted:
            draft.record(Kind.PROJECT_CHANGED, wanted, by=by, reason=wanted.name)
            draft.wake_all()  # its windows may have opened or closed
            yield f"~ project {wanted.name}: {', '.join(_differences(known, wanted))}"


def _apply_defaults(draft: Draft, wanted: FleetDefaults | None) -> Iterable[str]:
    known = draft.defaults
    if wanted is not None and wanted != known:
        draft.defaults = wanted
        said = f"~ defaults: {', '.join(_differences(known, wanted))}"
        # A file without a driver may have left it out by mistake, and work that ran by itself now stops.
        unsaid = wanted.driver is None and known.driver_of(None) != EXTERNAL
        yield f"{said}: {WORK_WAITS}" if unsaid else said


def _apply_hosts(draft: Draft, hosts: Iterable[HostSpec], *, by: str) -> Iterable[str]:
    for wanted in hosts:
        known = draft.hosts.get(wanted.name)
        changed = replace(known or Host(name=wanted.name), **_declared(wanted))
        if known is None:
            draft.record(Kind.HOST_ADDED, draft.put_host(changed), by=by)
            yield f"+ host {wanted.name}"
        elif known != changed:
            check_host_change(draft, known, changed)
            draft.put_host(changed)
            said = ", ".join(_differences(known, changed))
            draft.record(Kind.HOST_CHANGED, changed, by=by, reason=said)
            yield f"~ host {wanted.name}: {said}"


def _declared(wanted: HostSpec | GroupSpec) -> dict[str, Any]:
    return {each.name: getattr(wanted, each.name) for each in fields(wanted)}


def _apply_groups(draft: Draft, groups: Iterable[GroupSpec], *, by: str) -> Iterable[str]:
    for wanted in groups:
        known = draft.groups.get(wanted.name)
        new = Group(name=wanted.name, born=draft.number + 1, project=wanted.project, kind=wanted.kind)
        changed = replace(known or new, **_declared(wanted))
        if known is None:
            draft.record(Kind.GROUP_ADDED, draft.put_group(changed), by=by)
            yield f"+ group {wanted.name}"
        elif changed != known:
            _refuse_while_announced(draft, known, changed)
            draft.record(Kind.GROUP_CHANGED, draft.put_group(changed), by=by)
            yield f"~ group {wanted.name}: {', '.join(_differences(known, changed))}"


def _differences(before: Any, after: Any) -> Iterable[str]:
    """Describe the changed fields; of a nested value, its changed fields."""
    for each in fields(before):
        old, new = getattr(before, each.name), getattr(after, each.name)
        if old == new:
            continue
        if is_dataclass(old):
            yield from _differences(old, new)
        else:
            name = each.name.replace("_", "-")
            plain = name == "resources" or all(
                isinstance(value, int | str | timedelta | None) for value in (old, new)
            )
            yield f"{name} {shown_value(old)} to {shown_value(new)}" if plain else name


def _refuse_while_announced(draft: Draft, known: Group, changed: Group) -> None:
    """Refuse another kind or project while events are listed: guests would see the event change."""
    deep = (known.kind, known.project) != (changed.kind, changed.project)
    if deep and draft.listed_domains(known.name):
        raise Conflict(
            f'group "{known.name}" has listed events: its kind and project cannot change until they are over'
        )


def _remove_machines(draft: Draft, ids: Iterable[MachineId], *, by: str) -> Iterable[str]:
    for id_ in ids:
        if id_ in draft.machines:
            machine = draft.machines[id_]
            machines.remove(draft, machine, by=by)
            yield f"- machine {machine.name}"


def _apply_machines(draft: Draft, declared: Sequence[DeclaredMachine], *, by: str) -> Iterable[str]:
    others = _others_by_name(draft, declared)
    for each in declared:
        wanted = each.spec
        known = draft.machines.get(each.known or wanted.vm_id or MachineId(""))
        known = known or others.get((wanted.project, wanted.name.casefold()))
        if known is None:
            added = machines.add(draft, wanted, by=by, running=each.running)
            yield f"+ machine {added.name}{f' on {added.host}' if added.host else ', stopped'}"
            continue
        own = draft.hosts.get(HostName(wanted.name))
        if own is not None and own.bare_metal and known.host not in (None, own.name):
            raise Conflict(
                f'hosts.{own.name}: bare-metal: machine "{known.name}" is on "{known.host}": '
                "move it there, or omit bare-metal"
            )
        changed = machines.change(draft, known, wanted, by=by)
        if changed != known:
            yield f"~ machine {wanted.name}: {', '.join(machines.differences(known, changed))}"


def _others_by_name(
    draft: Draft, declared: Iterable[DeclaredMachine]
) -> Mapping[tuple[ProjectName, str], Machine]:
    """Return the machines that were added after the declaration was compared with the fleet."""
    expected = {each.known for each in declared}
    others = (machine for machine in draft.machines.values() if machine.id not in expected)
    return {(machine.project, machine.name.casefold()): machine for machine in others}


def _drop_groups(draft: Draft, names: Iterable[GroupName], *, by: str) -> Iterable[str]:
    members = {machine.group: machine for machine in draft.machines.values()}
    for name in names:
        if name in members:
            raise Conflict(f'groups: "{name}" still has "{members[name].name}": remove it, or keep the group')
        if name in draft.groups:
            draft.record(Kind.GROUP_REMOVED, draft.groups.pop(name), by=by)
            yield f"- group {name}"


def _drop_hosts(draft: Draft, names: Iterable[HostName], *, by: str) -> Iterable[str]:
    carrying = {machine.host: machine for machine in draft.machines.values()}
    for name in names:
        if name in carrying:
            raise Conflict(
                f'hosts: "{name}" still carries "{carrying[name].name}": move it, or keep the host'
            )
        for order in draft.orders.values():
            if order.open and order.host == name:
                raise Conflict(
                    f'hosts: "{name}" has order {order.id} ({order.action}): cancel it, or keep the host'
                )
        if name in draft.hosts:
            draft.record(Kind.HOST_REMOVED, draft.hosts.pop(name), by=by)
            yield f"- host {name}"


def _drop_projects(draft: Draft, names: Iterable[ProjectName], *, by: str) -> Iterable[str]:
    members: dict[ProjectName, Machine | Group] = {group.project: group for group in draft.groups.values()}
    members |= {machine.project: machine for machine in draft.machines.values()}
    for name in names:
        if name in members:
            raise Conflict(
                f'projects: "{name}" still has "{members[name].name}": remove it, or keep the project'
            )
        if name in draft.projects:
            del draft.projects[name]
            draft.record(Kind.PROJECT_REMOVED, None, by=by, reason=name)
            yield f"- project {name}"


def check_host_change(draft: Draft, known: Host, changed: Host) -> None:
    """Refuse a change of a host that would break its machines or its work; the draft contains both."""
    _check_bare_metal(draft, changed)
    if known.uri != changed.uri:
        _check_uri(draft, changed.name)


def _check_bare_metal(draft: Draft, host: Host) -> None:
    """Refuse to declare a host as bare metal while another machine is on it, or moves there."""
    if not host.bare_metal:
        return
    where, way = f"hosts.{host.name}: bare-metal", "or omit bare-metal"
    for machine in draft.machines_on(host.name):
        if HostName(machine.name) != host.name:
            raise Conflict(f'{where}: it still carries "{machine.name}": move it, {way}')
    for machine in draft.machines.values():
        if machine.bound_for == host.name != machine.host:
            raise Conflict(f'{where}: "{machine.name}" is moving here: wait for it, cancel its order, {way}')


def _check_uri(draft: Draft, host: HostName) -> None:
    """Refuse another connection while a driver works there: it would look at another hypervisor.

    A driver that cannot tell the state of its step may need the other connection.
    """
    for order in draft.orders.values():
        for step in order.driven:
            by_connection = order.driver_of(step) not in (*SYNCHRONOUS_DRIVERS, HOOK)
            if by_connection and not step.why and host in _hosts(draft, order, step):
                raise Conflict(
                    f"hosts.{host}: uri: order {order.id} ({order.action}) is working there on "
                    f'"{step.name}": change the uri afterwards, or abandon the order first'
                )


def _hosts(draft: Draft, order: Order, step: Step | HostStep) -> tuple[HostName | None, ...]:
    """Return the hosts of a step."""
    if isinstance(step, HostStep):
        return (order.host,)
    machine = draft.machines.get(step.machine)
    return step.target, None if machine is None else machine.host
