"""What an import changes: a source says what there is, and what people have declared stays theirs.

A machine is known by its id. What a source has imported follows it: fields, place, and being gone. Of what
people declare, a source changes only the fields that the caller lets it take; each other difference is shown
as a conflict. Where a machine runs is nobody's declaration: that follows the source in any case.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from forewarn.core.basic_types import (
    HUMAN_SOURCES,
    GroupKind,
    GroupName,
    HostName,
    HostState,
    MachineId,
)
from forewarn.core.draft import Draft
from forewarn.core.fleet import outside_changes
from forewarn.core.fleet import machines
from forewarn.core.fleet.found_groups import FoundGroups, found_hosts, with_group_names
from forewarn.core.fleet.found_machines import TAKEN, Candidate, FoundFields, differing, fit_name, places
from forewarn.core.fleet.import_terms import Dispute, ImportTerms
from forewarn.core.fleet.fleet_changes import DeclaredMachine, FleetChange, ObservedMachine
from forewarn.core.model.declaration import MachineSpec
from forewarn.core.model.found_fleet import FoundFleet, FoundMachine
from forewarn.core.model.machine import Machine
from forewarn.core.text_formats import counted

# The machines that one note names; the others are counted.
_MOST_NAMED = 5
# What guests know a machine by while an event names it.
_ANNOUNCED = frozenset({"name", "group", "update_domain", "project"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPlan:
    """What an import changes, and what it leaves alone."""

    part: FleetChange
    conflicts: tuple[str, ...] = ()  # where a source and people differ; theirs stays
    notes: tuple[str, ...] = ()  # what was found and not taken, or could not be looked at
    removes: int = 0  # machines that are gone
    of: int = 0  # how many machines this source had imported


def plan(draft: Draft, found: FoundFleet, terms: ImportTerms, *, before: Draft | None = None) -> ImportPlan:
    """Compare what a source has with the whole fleet, which the draft has; the draft stays as it is.

    `before` is the fleet before the source was asked, if that is not now: what has been declared since then
    counts, and what the source says of machines that were touched since then does not.
    """
    return _Import(draft, found, terms, before=before or draft).plan()


class _Import:
    def __init__(self, draft: Draft, found: FoundFleet, terms: ImportTerms, *, before: Draft) -> None:
        self._draft, self._found, self._terms = draft, with_group_names(found, draft), terms
        self._before = before
        self._answered = frozenset(each.name for each in found.hosts)
        self._dispute = Dispute(terms)
        self._notes = [
            *(f"host {host} cannot be reached: {why}" for host, why in sorted(found.unreachable.items())),
            *found.notes,
        ]
        self._machines: list[DeclaredMachine] = []
        self._seen: list[ObservedMachine] = []

    def plan(self) -> ImportPlan:
        gone = self._missing()
        settled = places(self._found.machines, self._draft.machines)
        present = self._in_own_projects([each for each in settled.present if self._is_wanted(each)])
        hosts = found_hosts(self._draft, self._found, self._dispute)
        candidates = [self._candidate(each) for each in present]
        leaving = {*gone, *(each.vm_id for each in present)}
        others = [self._spec(each) for id_, each in self._draft.machines.items() if id_ not in leaving]
        groups = FoundGroups(self._draft, self._found, candidates, others, self._dispute)
        self._plan_machines(candidates, groups, FoundFields(others, groups.project_of))
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
            conflicts=self._dispute.lines,
            notes=(*self._notes, *settled.notes),
            removes=len(gone),
            of=sum(each.source == self._terms.source for each in self._draft.machines.values()),
        )

    def _is_wanted(self, each: FoundMachine) -> bool:
        """Return whether a machine is taken; what is known is, whoever else has it."""
        if each.vm_id in self._draft.machines:
            return True
        refusal = self._refusal(each)
        if refusal is not None:
            self._notes.append(f"machine {each.name} is not imported: {refusal}")
        return refusal is None

    def _refusal(self, each: FoundMachine) -> str | None:
        host = None if each.host is None else self._draft.hosts.get(each.host)
        if each.manager is not None and not self._terms.managed:
            return f"{each.manager} manages it (--managed imports it all the same)"
        if each.running and each.host not in self._answered:
            return f"it is on {each.host}, which the source does not list"
        if host is not None and host.bare_metal:
            return f"host {host.name} is declared as bare metal"
        if host is not None and host.state in (HostState.FAILED, HostState.LOST):
            return f"host {host.name} is {host.state}"
        return None

    def _in_own_projects(self, present: Sequence[FoundMachine]) -> list[FoundMachine]:
        """Let no machine into a group of another project: it is tenants who write what some sources say."""
        owners = {each.name: each.project for each in self._found.groups if each.project is not None}
        owners |= {name: group.project for name, group in self._draft.groups.items()}
        taken = []
        for each in present:
            known = self._draft.machines.get(each.vm_id)
            is_in = known is not None and known.group == each.group
            if each.group is None or each.project is None or is_in:
                taken.append(each)
                continue
            owner = owners.setdefault(each.group, each.project)
            if owner == each.project:
                taken.append(each)
                continue
            whose = f"of project {owner}, and it is of {each.project}"
            self._notes.append(f"machine {each.name}: group {each.group} is not taken: that is {whose}")
            taken.append(replace(each, group=None))
        return taken

    # Machines that were found

    def _plan_machines(
        self, candidates: Sequence[Candidate], groups: FoundGroups, fields: FoundFields
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
            elif list(differing(each.present, spec)):
                self._machines.append(DeclaredMachine(spec=spec, known=spec.vm_id))
        self._notes += [*fields.notes, *_without_address(candidates, wanted)]

    def _spec(self, machine: Machine) -> MachineSpec:
        return machines.spec_of(machine, self._draft.groups[machine.group])

    def _candidate(self, each: FoundMachine) -> Candidate:
        known = self._draft.machines.get(each.vm_id)
        if known is None:
            return Candidate(found=each, present=None)
        keeps = self._terms.kept(known.source, TAKEN)
        if self._is_announced(known):
            keeps |= _ANNOUNCED
        return Candidate(found=each, present=self._spec(known), keeps=keeps)

    def _is_announced(self, machine: Machine) -> bool:
        return any(
            event.listed and any(named.machine == machine.id for named in event.resources)
            for event in self._draft.events.values()
            if event.group == machine.group
        )

    def _dispute_fields(self, each: Candidate, known: Machine, fields: FoundFields) -> None:
        kept = self._terms.kept(known.source, TAKEN)
        for name, value in fields.disputed(each, source=self._terms.source):
            if name in kept:
                self._dispute.add(f"machine {known.name}", name, getattr(each.present, name), value)
            else:
                what = name.replace("_", "-")
                self._notes.append(f"machine {known.name} is named in an event: until then its {what} stays")

    # Where they are

    def _see(
        self, known: Machine, *, host: HostName | None = None, running: bool = False, gone: bool = False
    ) -> bool:
        """Follow a machine, if other hands have done something to it; return whether that is so."""
        before = self._before.machines.get(known.id)
        if before is None:
            return False  # the source was asked before there was such a machine
        hands = outside_changes.hands(self._before, known.id)
        seen = ObservedMachine(before=before, hands=hands, host=host, running=running, gone=gone)
        happened = outside_changes.happened(self._draft, known, seen) is not None
        self._notes += _about_failure(self._draft, known, seen, followed=happened)
        if happened:
            self._seen.append(seen)
        return happened

    def _missing(self) -> list[MachineId]:
        """Take as gone what the source had imported and has no more; nothing while a host is silent."""
        found = {each.vm_id for each in self._found.machines}
        names = {fit_name(each.name): each.vm_id for each in self._found.machines}
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

    def _is_asked(self, host: HostName) -> bool:
        """Return whether a host is this source's to tell of."""
        known = self._draft.hosts.get(host)
        return known is not None and self._draft.defaults.driver_of(known.driver) == self._terms.source

    def _miss(self, known: Machine, names: Mapping[str, MachineId]) -> None:
        """Say of a machine that people declare that its host does not have it."""
        if known.host not in self._answered or not self._is_asked(known.host):
            return
        other = f", but one of that name, {names[known.name]}" if known.name in names else ""
        self._dispute.say(
            f"machine {known.name} is declared on {known.host}, which has no {known.id}{other}: "
            f"remove it (forewarn machine delete {known.name}), then declare the right vm-id or import it"
        )

    # What is left over

    def _in_use(self, gone: Collection[MachineId]) -> frozenset[HostName | GroupName | None]:
        """Return the hosts and groups that some machine or order has after the import."""
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
        """Find groups that the source had imported, does not name any more, and that are empty."""
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
        """Find hosts that the source had imported, does not list any more, and that are empty."""
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
    """Say what a person can do about the failed order of a machine that is not where it was."""
    order = outside_changes.failed_order(draft, known)
    if order is None:
        return
    failed = f"order {order.id} ({order.action})"
    if followed and order.machine == known.id:
        where = "retry it from where the machine is now, or abandon it"
        yield f"machine {known.name} is in {failed}, which has failed: {where}"
    elif outside_changes.is_kept_by_failure(draft, known, seen):
        state = "gone" if seen.gone else "off"
        left = "retry or abandon it, then import again"
        yield f"machine {known.name} is {state}, and {failed} has failed: {left}"


def _without_address(
    candidates: Iterable[Candidate], wanted: Mapping[MachineId, MachineSpec]
) -> Iterator[str]:
    """Name the machines that run and have no address, in one line: a whole fleet may have none."""
    named = [
        spec.name
        for each in candidates
        for spec in (wanted[each.found.vm_id],)
        if each.found.running and not (each.found.addresses or spec.address or spec.port)
    ]
    if named:
        which = ", ".join(named[:_MOST_NAMED])
        more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        lack = "has no address, and gets" if len(named) == 1 else "have no address, and get"
        way = "forewarn machine put NAME --address ADDRESS"
        yield f"{counted(len(named), 'machine')} {lack} no events: {which}{more} ({way})"
