"""One host, group or project at a time: what is put, and what must be so for that."""

from collections.abc import Sequence

from forewarn.core.copies import replace
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.fleet import machines
from forewarn.core.fleet.parts import DeclaredMachine, FleetPart
from forewarn.core.model import declaration
from forewarn.core.model.declaration import GroupSpec, HostSpec, MachineSpec
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.project import Project
from forewarn.core.spelling import counted, hint
from forewarn.core.words import BY_PEOPLE, PUT, MachineName, Mobility


def host_part(known: Host | None, wanted: HostSpec) -> FleetPart:
    """Return what putting a host changes; one that is bare metal comes with its machine."""
    if known is not None:
        present = declaration.host_spec(known)
        return FleetPart(hosts=(replace(wanted, source=_speaker(known.source, same=wanted == present)),))
    machine = MachineSpec(name=MachineName(wanted.name), host=wanted.name, mobility=Mobility.NONE, source=PUT)
    own = (DeclaredMachine(spec=machine, known=None),) if wanted.bare_metal else ()
    return FleetPart(hosts=(replace(wanted, source=PUT),), machines=own)


def group_part(draft: Draft, known: Group | None, wanted: GroupSpec, members: Sequence[Machine]) -> FleetPart:
    """Return what putting a group changes; one that moves to another project takes its machines along."""
    _check_group(draft, wanted, members)
    if known is None:
        return FleetPart(groups=(replace(wanted, source=PUT),))
    same = wanted == declaration.group_spec(known)
    moved = [
        replace(machines.spec_of(each, known), project=wanted.project)
        for each in members
        if each.project != wanted.project
    ]
    return FleetPart(
        groups=(replace(wanted, source=_speaker(known.source, same=same)),),
        machines=tuple(DeclaredMachine(spec=each, known=each.vm_id) for each in moved),
    )


def project_part(known: Project | None, wanted: Project) -> FleetPart:
    """Return what putting a project changes."""
    if known is None:
        return FleetPart(projects=(replace(wanted, source=PUT),))
    return FleetPart(projects=(replace(wanted, source=_speaker(known.source, same=wanted == known)),))


def _speaker(source: str, *, same: bool) -> str:
    """Return who speaks for a thing that is put: a person, as soon as it is not what a source says."""
    return source if same or source in BY_PEOPLE else PUT


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
