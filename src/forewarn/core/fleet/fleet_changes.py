"""What a declaration changes, in parts: each can be saved by itself and leaves a fleet that may be."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias, TypeVar

from forewarn.core.basic_types import (
    HUMAN_SOURCES,
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
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.fleet import machines
from forewarn.core.model import declaration
from forewarn.core.model.declaration import FleetDefaults, FleetSpec, GroupSpec, HostSpec, MachineSpec
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.project import Project
from forewarn.core.model.slice import Slice
from forewarn.core.text_formats import counted, hint

# A host that is known is loaded with all that it carries.
_KNOWN_HOST_WEIGHS = 20

Name = TypeVar("Name", HostName, ProjectName)
Claim: TypeAlias = tuple[str, object]  # what no two machines may have at once
Node: TypeAlias = MachineId | GroupName
Hands: TypeAlias = tuple[tuple[OrderId, int, StepState | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredMachine:
    """A machine as it is declared, and which one it is, if it is known."""

    spec: MachineSpec
    known: MachineId | None
    running: bool = True  # else a new one begins as stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedMachine:
    """A machine that is known, as its source has it now."""

    # What was known of it before the source was asked, and of what forewarn itself was doing to it: if
    # either has changed since, what the source said is too old.
    before: Machine
    hands: "Hands"
    host: HostName | None = None  # that has it
    running: bool = False
    gone: bool = False  # it is nowhere


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetChange:
    """What is added, changed and removed together."""

    defaults: FleetDefaults | None = None  # None: as they are
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
    """Return all that a declaration changes, as one part; nothing in it: nothing differs.

    It removes only what was declared in the same way: what was put or imported stays until it is named.
    """
    declared = _declared_machines(base, spec)
    present = {each.known for each in declared}
    declared_groups = {each.name for each in spec.groups}
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
            for name, group in sorted(base.groups.items())
            if group.kind is not GroupKind.STANDALONE
            and name not in declared_groups
            and group.source == DECLARED
        ),
        removed_hosts=tuple(_undeclared(base.hosts, {each.name for each in spec.hosts})),
        removed_projects=tuple(_undeclared(base.projects, {each.name for each in spec.projects})),
    )


def _undeclared(known: Mapping[Name, Host | Project], wanted: Collection[Name]) -> Iterator[Name]:
    """Find what was declared, and is so no longer."""
    return (name for name in sorted(known.keys() - wanted) if known[name].source == DECLARED)


def cut(whole: FleetChange, base: Slice, *, at_once: int) -> list[FleetChange]:
    """Cut a difference into parts of about so many things; those that belong together are not parted."""
    if _things(whole) <= at_once:
        return [] if whole == FleetChange() else [whole]
    parts = _Parts(at_once)
    deep = {each.name for each in whole.groups if _is_deep(base.groups.get(each.name), each)}
    parts.add(1, defaults=(whole.defaults,) if whole.defaults else (), projects=whole.projects)
    for host in whole.hosts:
        parts.add(_KNOWN_HOST_WEIGHS if host.name in base.hosts else 1, hosts=(host,))
    parts.add_each("groups", (each for each in whole.groups if each.name not in deep))
    parts.add_each("removed_machines", whole.removed_machines)
    parts.add_each("seen", whole.seen)
    for groups, changed in _together(whole, base, deep):
        parts.add(len(groups) + len(changed), groups=groups, machines=changed)
    # By host: a part loads those that it names.
    new = (each for each in whole.machines if each.known is None)
    parts.add_each("machines", sorted(new, key=lambda each: each.spec.host or ""))
    parts.add_each("removed_groups", whole.removed_groups)
    parts.add_each("removed_hosts", whole.removed_hosts)
    parts.add(0, removed_projects=whole.removed_projects)
    return parts.all()


def _things(part: FleetChange) -> int:
    return sum(len(things) for each in fields(part) if isinstance(things := getattr(part, each.name), tuple))


def claims(machine: MachineSpec | Machine) -> Iterator[Claim]:
    """Return what no other machine may have."""
    yield "name", (machine.project, machine.name.casefold())
    if machine.address is not None:
        yield "address", (machine.network, machine.address)
    if machine.port is not None:
        yield "port", machine.port
    id_ = machine.id if isinstance(machine, Machine) else machine.vm_id
    if id_ is not None:
        yield "vm-id", id_


def _declared_machines(base: Slice, spec: FleetSpec) -> list[DeclaredMachine]:
    """Find which machine each declared one is: that of its vm-id, or else the one that is called so."""
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
    # It stays on the host that it is on.
    wanted = replace(spec, host=machine.host, vm_id=spec.vm_id or machine.id)
    return machines.spec_of(machine, base.groups[machine.group]) != wanted


def _differs(known: Host | Group | None, wanted: HostSpec | GroupSpec) -> bool:
    """Return whether something is new, or not what is declared."""
    return known is None or any(
        getattr(known, each.name) != getattr(wanted, each.name) for each in fields(wanted)
    )


def _is_deep(known: Group | None, wanted: GroupSpec) -> bool:
    """Return whether a group changes so that its machines must change with it."""
    deep = ("kind", "project", "update_domains")
    return known is not None and any(getattr(known, name) != getattr(wanted, name) for name in deep)


def _together(
    whole: FleetChange, base: Slice, deep: set[GroupName]
) -> Iterator[tuple[tuple[GroupSpec, ...], tuple[DeclaredMachine, ...]]]:
    """Arrange known machines that change, and groups that change deeply, by what must change at once."""
    changed = {each.known: each for each in whole.machines if each.known is not None}
    holders = {claim: id_ for id_ in changed for claim in claims(base.machines[id_])}
    joined = _Joined()
    for name in sorted(deep):
        joined.root(name)
    for id_, each in changed.items():
        joined.root(id_)
        for group in (base.machines[id_].group, each.spec.group):
            if group is not None and group in deep:
                joined.join(id_, group)
        for claim in claims(each.spec):
            if claim in holders:
                joined.join(id_, holders[claim])
    groups = {each.name: each for each in whole.groups if each.name in deep}
    for nodes in joined.sets():
        yield (
            tuple(groups[GroupName(node)] for node in nodes if node in groups),
            tuple(changed[MachineId(node)] for node in nodes if node in changed),
        )


class _Joined:
    """Things, some of which belong together."""

    def __init__(self) -> None:
        self._parents: dict[Node, Node] = {}

    def root(self, node: Node) -> Node:
        parent = self._parents.setdefault(node, node)
        while parent != node:
            self._parents[node] = self._parents[parent]
            node, parent = parent, self._parents[parent]
        return node

    def join(self, one: Node, other: Node) -> None:
        self._parents[self.root(other)] = self.root(one)

    def sets(self) -> Iterable[list[Node]]:
        found: dict[Node, list[Node]] = {}
        for node in self._parents:
            found.setdefault(self.root(node), []).append(node)
        return found.values()


class _Parts:
    """Parts that are filled one after another."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._full: list[FleetChange] = []
        self._next: dict[str, list[Any]] = {}
        self._weight = 0

    def add(self, weight: int, **things: tuple[Any, ...]) -> None:
        """Add things that are not parted from each other."""
        if not any(things.values()):
            return
        if self._weight and self._weight + weight > self._at_once:
            self._finish()
        for name, values in things.items():
            self._next.setdefault(name, []).extend(values)
        self._weight += weight

    def add_each(self, name: str, things: Iterable[Any]) -> None:
        """Add things that may be parted."""
        for each in things:
            self.add(1, **{name: (each,)})

    def all(self) -> list[FleetChange]:
        self._finish()
        return self._full

    def _finish(self) -> None:
        defaults = next(iter(self._next.pop("defaults", ())), None)
        things = {name: tuple(values) for name, values in self._next.items()}
        self._full.append(FleetChange(defaults=defaults, **things))
        self._next, self._weight = {}, 0


def host_part(known: Host | None, wanted: HostSpec) -> FleetChange:
    """Return what putting a host changes; one that is bare metal comes with its machine."""
    if known is not None:
        present = declaration.host_spec(known)
        return FleetChange(hosts=(replace(wanted, source=_speaker(known.source, same=wanted == present)),))
    machine = MachineSpec(name=MachineName(wanted.name), host=wanted.name, mobility=Mobility.NONE, source=PUT)
    own = (DeclaredMachine(spec=machine, known=None),) if wanted.bare_metal else ()
    return FleetChange(hosts=(replace(wanted, source=PUT),), machines=own)


def group_part(draft: Draft, known: Group | None, wanted: GroupSpec, members: Sequence[Machine]) -> FleetChange:
    """Return what putting a group changes; one that moves to another project takes its machines along."""
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
        groups=(replace(wanted, source=_speaker(known.source, same=same)),),
        machines=tuple(DeclaredMachine(spec=each, known=each.vm_id) for each in moved),
    )


def project_part(known: Project | None, wanted: Project) -> FleetChange:
    """Return what putting a project changes."""
    if known is None:
        return FleetChange(projects=(replace(wanted, source=PUT),))
    return FleetChange(projects=(replace(wanted, source=_speaker(known.source, same=wanted == known)),))


def _speaker(source: str, *, same: bool) -> str:
    """Return who speaks for a thing that is put: a person, as soon as it is not what a source says."""
    return source if same or source in HUMAN_SOURCES else PUT


def _check_group(draft: Draft, wanted: GroupSpec, members: Sequence[Machine]) -> None:
    where = f'group "{wanted.name}"'
    if wanted.project not in draft.projects:
        known = sorted(draft.projects)
        expected = f"expected one of the projects, got {wanted.project!r}{hint(wanted.project, known)}"
        raise Invalid(f"{where}: project: {expected}")
    highest = max(members, key=lambda each: each.update_domain, default=None)
    if highest is not None and highest.update_domain >= wanted.update_domains:
        raise Conflict(
            f'{where}: update-domains: expected at least {highest.update_domain + 1}, for "{highest.name}" '
            f"is in update domain {highest.update_domain}: give it another first"
        )
    budget = wanted.policy.budget
    if budget and budget >= len(members):
        expected = f"expected fewer than its {counted(len(members), 'machine')}, got {budget}"
        raise Conflict(f"{where}: policy.budget: {expected}")
