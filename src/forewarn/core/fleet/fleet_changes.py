"""The changes of a declaration, split into parts: each can be saved alone and leaves a valid fleet."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias, TypeVar

from forewarn.core.basic_types import (
    DECLARED,
    PUT,
    GroupKind,
    GroupName,
    HostName,
    MachineId,
    MachineName,
    Mobility,
    OrderId,
    ProjectName,
    StepState,
)
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict
from forewarn.core.fleet import machines
from forewarn.core.model import declaration
from forewarn.core.model.declaration import FleetDefaults, FleetSpec, GroupSpec, HostSpec, MachineSpec
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.project import Project
from forewarn.core.model.slice import Slice
from forewarn.core.text_formats import counted

# A known host is loaded with all machines on it.
_KNOWN_HOST_WEIGHS = 20

Name = TypeVar("Name", HostName, GroupName, ProjectName)
Claim: TypeAlias = tuple[str, object]  # a property that only one machine may have
Node: TypeAlias = MachineId | GroupName
StepStates: TypeAlias = tuple[tuple[OrderId, int, StepState | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredMachine:
    """A declared machine, and the id of the known machine that it declares."""

    spec: MachineSpec
    known: MachineId | None
    running: bool = True  # False: a new machine begins as stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedMachine:
    """A known machine, as its source reports it now."""

    # The machine, and forewarn's steps on it, before the source was asked. If either has changed since, the
    # report is stale.
    before: Machine
    open_steps: StepStates
    host: HostName | None = None  # the host that defines it
    running: bool = False
    gone: bool = False  # no host defines it


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetChange:
    """Objects to add, change and remove in one transaction."""

    defaults: FleetDefaults | None = None  # None: unchanged
    projects: tuple[Project, ...] = ()
    hosts: tuple[HostSpec, ...] = ()
    groups: tuple[GroupSpec, ...] = ()
    removed_machines: tuple[MachineId, ...] = ()
    machines: tuple[DeclaredMachine, ...] = ()
    seen: tuple[ObservedMachine, ...] = ()
    removed_groups: tuple[GroupName, ...] = ()
    removed_hosts: tuple[HostName, ...] = ()
    removed_projects: tuple[ProjectName, ...] = ()


def difference(base: Slice, spec: FleetSpec) -> FleetChange:
    """Return all changes of a declaration as one part; it is empty if nothing differs.

    A declaration removes only what an earlier declaration added. Objects that a person put or a driver
    imported stay until a declaration names them.
    """
    declared = _declared_machines(base, spec)
    present = {each.known for each in declared}
    return FleetChange(
        defaults=None if spec.defaults == base.defaults else spec.defaults,
        projects=tuple(each for each in spec.projects if base.projects.get(each.name) != each),
        hosts=tuple(each for each in spec.hosts if _differs(base.hosts.get(each.name), each)),
        groups=tuple(each for each in spec.groups if _differs(base.groups.get(each.name), each)),
        removed_machines=tuple(
            id_
            for _, id_ in sorted((_key(machine), id_) for id_, machine in base.machines.items())
            if id_ not in present and base.machines[id_].source == DECLARED
        ),
        machines=tuple(each for each in declared if _is_changed(base, each)),
        removed_groups=tuple(
            name
            for name in _undeclared(base.groups, {each.name for each in spec.groups})
            if base.groups[name].kind is not GroupKind.STANDALONE
        ),
        removed_hosts=tuple(_undeclared(base.hosts, {each.name for each in spec.hosts})),
        removed_projects=tuple(_undeclared(base.projects, {each.name for each in spec.projects})),
    )


def _undeclared(known: Mapping[Name, Host | Group | Project], wanted: Collection[Name]) -> Iterator[Name]:
    """Yield the objects that were declared before and are not any more."""
    return (name for name in sorted(known.keys() - wanted) if known[name].source == DECLARED)


def cut(whole: FleetChange, base: Slice, *, at_once: int) -> list[FleetChange]:
    """Split changes into parts of about `at_once` objects; dependent changes stay together."""
    if _size(whole) <= at_once:
        return [] if whole == FleetChange() else [whole]
    parts: list[dict[str, list[Any]]] = [{}]
    filled = 0
    for weight, things in _pieces(whole, base):
        if not any(things.values()):
            continue
        if filled and filled + weight > at_once:
            parts.append({})
            filled = 0
        filled += weight
        for name, values in things.items():
            parts[-1].setdefault(name, []).extend(values)
    return [
        FleetChange(
            defaults=next(iter(part.pop("defaults", ())), None),
            **{name: tuple(values) for name, values in part.items()},
        )
        for part in parts
    ]


def _pieces(whole: FleetChange, base: Slice) -> Iterator[tuple[int, Mapping[str, Sequence[Any]]]]:
    """Yield the changes that stay together, each with its weight, in the order in which they are saved."""
    deep = {each.name for each in whole.groups if _is_deep(base.groups.get(each.name), each)}
    yield 1, {"defaults": [whole.defaults] if whole.defaults else [], "projects": whole.projects}
    for host in whole.hosts:
        yield _KNOWN_HOST_WEIGHS if host.name in base.hosts else 1, {"hosts": [host]}
    yield from ((1, {"groups": [each]}) for each in whole.groups if each.name not in deep)
    yield from ((1, {"removed_machines": [each]}) for each in whole.removed_machines)
    yield from ((1, {"seen": [each]}) for each in whole.seen)
    for groups, changed in _dependent_changes(whole, base, deep):
        yield len(groups) + len(changed), {"groups": groups, "machines": changed}
    # Ordered by host, because a part loads the hosts that it names.
    new = (each for each in whole.machines if each.known is None)
    yield from ((1, {"machines": [each]}) for each in sorted(new, key=lambda each: each.spec.host or ""))
    yield from ((1, {"removed_groups": [each]}) for each in whole.removed_groups)
    yield from ((1, {"removed_hosts": [each]}) for each in whole.removed_hosts)
    yield 0, {"removed_projects": whole.removed_projects}


def _size(part: FleetChange) -> int:
    return sum(len(things) for each in fields(part) if isinstance(things := getattr(part, each.name), tuple))


def claims(machine: MachineSpec | Machine) -> Iterator[Claim]:
    """Yield the properties that no other machine may have."""
    yield "name", (machine.project, machine.name.casefold())
    if machine.address is not None:
        yield "address", (machine.network, machine.address)
    if machine.port is not None:
        yield "port", machine.port
    id_ = machine.id if isinstance(machine, Machine) else machine.vm_id
    if id_ is not None:
        yield "vm-id", id_


def _declared_machines(base: Slice, spec: FleetSpec) -> list[DeclaredMachine]:
    """Find the known machine of each declared one: by its vm-id, otherwise by its name."""
    claimed = {each.vm_id for each in spec.machines if each.vm_id is not None}
    # A group that moves to another project takes its machines along.
    projects = {group.name: group.project for group in spec.groups}
    named = {
        (projects.get(machine.group, machine.project), machine.name.casefold()): id_
        for id_, machine in base.machines.items()
        if id_ not in claimed
    }
    return [
        DeclaredMachine(spec=each, known=each.vm_id if each.vm_id in base.machines else named.get(_key(each)))
        for each in spec.machines
    ]


def _key(machine: MachineSpec | Machine) -> tuple[ProjectName, str]:
    return machine.project, machine.name.casefold()


def _is_changed(base: Slice, declared: DeclaredMachine) -> bool:
    if declared.known is None:
        return True
    machine, spec = base.machines[declared.known], declared.spec
    # A declaration does not move it.
    wanted = replace(spec, host=machine.host, vm_id=spec.vm_id or machine.id)
    return machines.spec_of(machine, base.groups[machine.group]) != wanted


def _differs(known: Host | Group | None, wanted: HostSpec | GroupSpec) -> bool:
    """Whether something is new or differs from its declaration."""
    return known is None or any(
        getattr(known, each.name) != getattr(wanted, each.name) for each in fields(wanted)
    )


def _is_deep(known: Group | None, wanted: GroupSpec) -> bool:
    """Whether a change of a group also changes its machines."""
    deep = ("kind", "project", "update_domains")
    return known is not None and any(getattr(known, name) != getattr(wanted, name) for name in deep)


def _dependent_changes(
    whole: FleetChange, base: Slice, deep: set[GroupName]
) -> Iterator[tuple[tuple[GroupSpec, ...], tuple[DeclaredMachine, ...]]]:
    """Group changed machines and deeply changed groups by what must change together."""
    changed = {each.known: each for each in whole.machines if each.known is not None}
    holders = {claim: id_ for id_ in changed for claim in claims(base.machines[id_])}
    links: list[tuple[Node, Node]] = [(name, name) for name in sorted(deep)]
    for id_, each in changed.items():
        groups = (base.machines[id_].group, each.spec.group)
        links.append((id_, id_))
        links += [(id_, group) for group in groups if group is not None and group in deep]
        links += [(id_, holders[claim]) for claim in claims(each.spec) if claim in holders]
    changing = {each.name: each for each in whole.groups if each.name in deep}
    for nodes in _connected(links):
        yield (
            tuple(changing[GroupName(node)] for node in nodes if node in changing),
            tuple(changed[MachineId(node)] for node in nodes if node in changed),
        )


def _connected(links: Iterable[tuple[Node, Node]]) -> Iterable[list[Node]]:
    """Return the connected components of a graph, each in the order of its first links."""
    components: dict[Node, list[Node]] = {}
    for link in links:
        small, large = sorted((components.setdefault(node, [node]) for node in link), key=len)
        if small is not large:
            large += small
            components |= dict.fromkeys(small, large)
    ordered: dict[int, list[Node]] = {}
    for node, component in components.items():
        ordered.setdefault(id(component), []).append(node)
    return ordered.values()


def host_part(known: Host | None, wanted: HostSpec) -> FleetChange:
    """Return the change that puts a host; a bare-metal host comes with its machine."""
    if known is not None:
        present = declaration.host_spec(known)
        source = machines.put_source(known.source, same=wanted == present)
        return FleetChange(hosts=(replace(wanted, source=source),))
    machine = MachineSpec(name=MachineName(wanted.name), host=wanted.name, mobility=Mobility.NONE, source=PUT)
    own = (DeclaredMachine(spec=machine, known=None),) if wanted.bare_metal else ()
    return FleetChange(hosts=(replace(wanted, source=PUT),), machines=own)


def group_part(
    draft: Draft, known: Group | None, wanted: GroupSpec, members: Sequence[Machine]
) -> FleetChange:
    """Return the change that puts a group; a group that changes its project takes its machines along."""
    _check_group(draft, wanted, members)
    if known is None:
        return FleetChange(groups=(replace(wanted, source=PUT),))
    same = wanted == declaration.group_spec(known)
    moved = [
        replace(machines.spec_of(each, known), project=wanted.project)
        for each in members
        if each.project != wanted.project
    ]
    return FleetChange(
        groups=(replace(wanted, source=machines.put_source(known.source, same=same)),),
        machines=tuple(DeclaredMachine(spec=each, known=each.vm_id) for each in moved),
    )


def project_part(known: Project | None, wanted: Project) -> FleetChange:
    """Return the change that puts a project."""
    source = PUT if known is None else machines.put_source(known.source, same=wanted == known)
    return FleetChange(projects=(replace(wanted, source=source),))


def _check_group(draft: Draft, wanted: GroupSpec, members: Sequence[Machine]) -> None:
    where = f'group "{wanted.name}"'
    machines.check_known(f"{where}: project", "projects", wanted.project, draft.projects)
    highest = max(members, key=lambda each: each.update_domain, default=None)
    if highest is not None and highest.update_domain >= wanted.update_domains:
        raise Conflict(
            f"{where}: update-domains: expected at least {highest.update_domain + 1}, because "
            f'"{highest.name}" is in update domain {highest.update_domain}: change that first'
        )
    budget = wanted.policy.budget
    if budget and budget >= len(members):
        expected = f"expected fewer than its {counted(len(members), 'machine')}, got {budget}"
        raise Conflict(f"{where}: policy.budget: {expected}")
