"""Importing a fleet: the fleet follows a source, and declarations of people stay.

A machine is identified by its vm-id. Imported things follow their source: fields, host and removal. In things
that people declare, a source changes only the fields that the caller allows; each other difference is a
conflict, which is shown. The host of a running machine always follows the source.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from forewarn.core.basic_types import HUMAN_SOURCES, GroupKind, GroupName, HostName, HostState, MachineId
from forewarn.core.draft import Draft
from forewarn.core.fleet import machines, outside_changes
from forewarn.core.fleet.fleet_changes import DeclaredMachine, FleetChange, ObservedMachine
from forewarn.core.fleet.found_groups import FoundGroups, found_hosts, with_group_names
from forewarn.core.fleet.found_machines import (
    IMPORTABLE_FIELDS,
    Candidate,
    SpecBuilder,
    changed_fields,
    locate,
    to_valid_name,
)
from forewarn.core.fleet.import_terms import ImportConflicts, ImportTerms
from forewarn.core.model.declaration import MachineSpec
from forewarn.core.model.found_fleet import FoundFleet, FoundMachine
from forewarn.core.model.machine import Machine
from forewarn.core.text_formats import counted, truncated_list

# How many machines one note names; the others are counted.
_MOST_NAMED = 5
# The fields that stay while an event names a machine.
_ANNOUNCED = frozenset({"name", "group", "update_domain", "project"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPlan:
    """The changes of an import, and what it leaves alone."""

    part: FleetChange
    conflicts: tuple[str, ...] = ()  # differences between the source and people's declarations
    notes: tuple[str, ...] = ()  # what was not imported, or could not be read
    removes: int = 0  # machines that are gone
    of: int = 0  # machines that this source had imported


def plan(draft: Draft, found: FoundFleet, terms: ImportTerms, *, before: Draft | None = None) -> ImportPlan:
    """Compare the report of a source with the whole fleet, which the draft contains.

    `before` is the fleet before the source was asked, if that was earlier. Declarations since then count, but
    reports about machines that changed since then do not.
    """
    return _Import(draft, found, terms, before=before or draft).plan()


class _Import:
    def __init__(self, draft: Draft, found: FoundFleet, terms: ImportTerms, *, before: Draft) -> None:
        self._draft, self._found, self._terms = draft, with_group_names(found, draft), terms
        self._before = before
        self._answered = frozenset(each.name for each in found.hosts)
        self._conflicts = ImportConflicts(terms)
        self._notes = [
            *(f"host {host} cannot be reached: {why}" for host, why in sorted(found.unreachable.items())),
            *found.notes,
        ]
        self._machines: list[DeclaredMachine] = []
        self._seen: list[ObservedMachine] = []

    def plan(self) -> ImportPlan:
        gone = self._missing()
        present, location_notes = locate(self._found.machines, self._draft.machines)
        present = self._in_own_projects([each for each in present if self._is_wanted(each)])
        hosts = found_hosts(self._draft, self._found, self._conflicts)
        candidates = [self._candidate(each) for each in present]
        leaving = {*gone, *(each.vm_id for each in present)}
        others = [self._spec(each) for id_, each in self._draft.machines.items() if id_ not in leaving]
        groups = FoundGroups(self._draft, self._found, candidates, others, self._conflicts)
        self._plan_machines(candidates, groups, SpecBuilder(others, groups.project_of))
        used = self._in_use(gone)
        return ImportPlan(
            part=FleetChange(
                projects=groups.projects,
                hosts=hosts,
                groups=groups.specs,
                machines=tuple(self._machines),
                seen=tuple(self._seen),
                removed_groups=self._left_groups(used),
                removed_hosts=self._left_hosts(used),
            ),
            conflicts=tuple(self._conflicts.lines),
            notes=(*self._notes, *location_notes),
            removes=len(gone),
            of=sum(each.source == self._terms.source for each in self._draft.machines.values()),
        )

    def _is_wanted(self, each: FoundMachine) -> bool:
        """Whether a machine is imported; a known machine always is."""
        if each.vm_id in self._draft.machines:
            return True
        refusal = self._refusal(each)
        if refusal is not None:
            self._notes.append(f"machine {each.name} is not imported: {refusal}")
        return refusal is None

    def _refusal(self, each: FoundMachine) -> str | None:
        host = None if each.host is None else self._draft.hosts.get(each.host)
        if each.manager is not None and not self._terms.managed:
            return f"{each.manager} manages it (--managed imports it anyway)"
        if each.running and each.host not in self._answered:
            return f"it is on {each.host}, which the source does not list"
        if host is not None and host.bare_metal:
            return f"host {host.name} is declared as bare metal"
        if host is not None and host.state in (HostState.FAILED, HostState.LOST):
            return f"host {host.name} is {host.state}"
        return None

    def _in_own_projects(self, present: Sequence[FoundMachine]) -> list[FoundMachine]:
        """Keep machines out of groups of other projects: in some sources, tenants write the group."""
        owners = {each.name: each.project for each in self._found.groups if each.project is not None}
        owners |= {name: group.project for name, group in self._draft.groups.items()}
        taken = []
        for each in present:
            known, owner = self._draft.machines.get(each.vm_id), each.project
            is_in = known is not None and known.group == each.group
            if each.group is not None and each.project is not None and not is_in:
                owner = owners.setdefault(each.group, each.project)
            if owner != each.project:
                whose = f"it belongs to project {owner}, the machine to {each.project}"
                self._notes.append(f"machine {each.name}: group {each.group} is not imported: {whose}")
                each = replace(each, group=None)
            taken.append(each)
        return taken

    def _plan_machines(
        self, candidates: Sequence[Candidate], groups: FoundGroups, fields: SpecBuilder
    ) -> None:
        wanted = fields.specs(candidates, source=self._terms.source)
        for each in candidates:
            spec, known = wanted[each.found.vm_id], self._draft.machines.get(each.found.vm_id)
            if known is not None:
                self._dispute_fields(each, known, fields)
                self._see(known, host=each.found.host, running=each.found.running)
            if groups.refuses(spec):
                continue
            if each.present is None:
                self._machines.append(DeclaredMachine(spec=spec, known=None, running=each.found.running))
            elif list(changed_fields(each.present, spec)):
                self._machines.append(DeclaredMachine(spec=spec, known=spec.vm_id))
        self._notes += [*fields.notes, *_without_address(candidates, wanted)]

    def _spec(self, machine: Machine) -> MachineSpec:
        return machines.spec_of(machine, self._draft.groups[machine.group])

    def _candidate(self, each: FoundMachine) -> Candidate:
        known = self._draft.machines.get(each.vm_id)
        if known is None:
            return Candidate(found=each, present=None)
        keeps = self._terms.kept(known.source, IMPORTABLE_FIELDS)
        if any(machines.listed_events(self._draft, known)):
            keeps |= _ANNOUNCED
        return Candidate(found=each, present=self._spec(known), keeps=keeps)

    def _dispute_fields(self, each: Candidate, known: Machine, fields: SpecBuilder) -> None:
        kept = self._terms.kept(known.source, IMPORTABLE_FIELDS)
        for name, value in fields.disputed(each, source=self._terms.source):
            if name in kept:
                self._conflicts.add(f"machine {known.name}", name, getattr(each.present, name), value)
            else:
                what = name.replace("_", "-")
                self._notes.append(
                    f"machine {known.name} is named in an event: its {what} stays until the event is over"
                )

    def _see(
        self, known: Machine, *, host: HostName | None = None, running: bool = False, gone: bool = False
    ) -> bool:
        """Follow a machine if it was changed outside forewarn; return whether that is so."""
        before = self._before.machines.get(known.id)
        if before is None:
            return False  # it was added after the source was asked
        open_steps = outside_changes.open_steps(self._before, known.id)
        seen = ObservedMachine(before=before, open_steps=open_steps, host=host, running=running, gone=gone)
        is_changed = outside_changes.outside_change(self._draft, known, seen) is not None
        self._notes += _about_failure(self._draft, known, seen, followed=is_changed)
        if is_changed:
            self._seen.append(seen)
        return is_changed

    def _missing(self) -> list[MachineId]:
        """Return the imported machines that are gone; none while a host is unreachable."""
        found = {each.vm_id for each in self._found.machines}
        names = {to_valid_name(each.name): each.vm_id for each in self._found.machines}
        missing = [each for id_, each in self._draft.machines.items() if id_ not in found]
        gone = []
        for known in sorted(missing, key=lambda each: (each.name, each.id)):
            if known.source in HUMAN_SOURCES:
                self._miss(known, names)
            elif known.source == self._terms.source and self._is_gone(known) and self._see(known, gone=True):
                gone.append(known.id)
        return gone

    def _is_gone(self, known: Machine) -> bool:
        if not self._found.unreachable:
            return self._terms.whole or known.host is None or known.host in self._answered
        if known.host in self._answered:
            silent = ", ".join(sorted(self._found.unreachable))
            where = f"machine {known.name} is not on {known.host} any more"
            self._notes.append(f"{where}: not removed while {silent} cannot be reached")
        return False

    def _miss(self, known: Machine, names: Mapping[str, MachineId]) -> None:
        """Report a declared machine that its host does not define."""
        if known.host not in self._answered or known.host not in self._draft.hosts:
            return
        if self._draft.defaults.driver_of(self._draft.hosts[known.host].driver) != self._terms.source:
            return
        other = f", but one of that name, {names[known.name]}" if known.name in names else ""
        self._conflicts.lines.append(
            f"machine {known.name} is declared on {known.host}, which has no {known.id}{other}: "
            f"remove it (forewarn machine delete {known.name}), then declare the right vm-id or import it"
        )

    def _in_use(self, gone: Collection[MachineId]) -> frozenset[HostName | GroupName | None]:
        """Return the hosts and groups that machines and orders still use after the import."""
        staying = [each for id_, each in self._draft.machines.items() if id_ not in gone]
        specs = [each.spec for each in self._machines]
        changed = {each.vm_id for each in specs}
        return frozenset(
            [
                *(each.host for each in staying),
                *(each.host for each in specs),
                *(each.host for each in self._seen),
                *(each.bound_for for each in staying),
                *(each.host for each in self._draft.orders.values() if each.open),
                *(each.group for each in staying if each.id not in changed),
                *(each.group for each in specs),
            ]
        )

    def _left_groups(self, used: Collection[HostName | GroupName | None]) -> tuple[GroupName, ...]:
        """Return the imported groups that are empty and that the source does not name any more."""
        named = {each.name for each in self._found.groups} | {each.group for each in self._found.machines}
        return tuple(
            name
            for name, group in sorted(self._draft.groups.items())
            if group.source == self._terms.source
            and group.kind is not GroupKind.STANDALONE
            and not self._found.unreachable
            and name not in named
            and name not in used
        )

    def _left_hosts(self, used: Collection[HostName | GroupName | None]) -> tuple[HostName, ...]:
        """Return the imported hosts that are empty and that the source does not list any more."""
        return tuple(
            name
            for name, host in sorted(self._draft.hosts.items())
            if host.source == self._terms.source
            and self._terms.whole
            and not self._found.unreachable
            and name not in self._answered
            and name not in used
        )


def _about_failure(draft: Draft, known: Machine, seen: ObservedMachine, *, followed: bool) -> Iterator[str]:
    """Say how a person can resolve the failed order of a machine that is not where it was."""
    order = outside_changes.failed_order(draft, known)
    if order is None:
        return
    failed = f"order {order.id} ({order.action})"
    if followed and order.machine == known.id:
        where = "retry it from where the machine is now, or abandon it"
        yield f"machine {known.name} is in {failed}, which has failed: {where}"
    elif outside_changes.may_be_failed_step(draft, known, seen):
        state = "gone" if seen.gone else "off"
        left = "retry or abandon it, then import again"
        yield f"machine {known.name} is {state}, and {failed} has failed: {left}"


def _without_address(
    candidates: Iterable[Candidate], wanted: Mapping[MachineId, MachineSpec]
) -> Iterator[str]:
    """Name the running machines without an address, in one line: it may be the whole fleet."""
    named = [
        spec.name
        for each in candidates
        for spec in (wanted[each.found.vm_id],)
        if each.found.running and not (each.found.addresses or spec.address or spec.port)
    ]
    if named:
        lack = "has no address, and gets" if len(named) == 1 else "have no address, and get"
        which, way = truncated_list(named, _MOST_NAMED), "forewarn machine put NAME --address ADDRESS"
        yield f"{counted(len(named), 'machine')} {lack} no events: {which} ({way})"
