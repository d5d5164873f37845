"""Declarations of the groups, projects and hosts that a source reports.

Tenants name their groups, and names are unique in forewarn. A group keeps its present name, so that no tenant
can rename another's group by creating or removing one of the same name. A new group gets its name in the
source. If another group has that name already, it gets a unique one with its id.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from forewarn.core.basic_types import DEFAULT_PROJECT, GroupName, MachineId, ProjectName
from forewarn.core.draft import Draft
from forewarn.core.fleet.found_machines import Candidate, locate
from forewarn.core.fleet.import_terms import ImportConflicts
from forewarn.core.model.declaration import GroupSpec, HostSpec, MachineSpec, group_spec, host_spec
from forewarn.core.model.found_fleet import FoundFleet, FoundGroup, FoundHost
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host, HostResource
from forewarn.core.model.project import Project


def with_group_names(found: FoundFleet, draft: Draft) -> FoundFleet:
    """Replace the names of the source by the names of forewarn's groups."""
    rivals: dict[GroupName, list[FoundGroup]] = defaultdict(list)
    for group in sorted(found.groups, key=lambda each: each.name):
        if group.called is not None:
            rivals[group.called].append(group)
    if not rivals:
        return found
    names: dict[GroupName, GroupName] = {}
    present = _present_groups(found, draft)
    for called, groups in rivals.items():
        winner = _winner(called, groups, draft, present)
        names |= {each.name: called if each is winner else each.name for each in groups}
    machines = tuple(
        replace(each, group=names.get(each.group, each.group)) if each.group is not None else each
        for each in found.machines
    )
    own = [replace(each, name=names[each.name], called=None) for each in found.groups if each.called]
    taken = {each.name for each in own}
    # Machines may name a group that another project has already: it is not created again.
    named = [each for each in found.groups if not each.called and each.name not in taken]
    return replace(found, machines=machines, groups=tuple(sorted((*own, *named), key=lambda each: each.name)))


def _winner(
    called: GroupName,
    rivals: Sequence[FoundGroup],
    draft: Draft,
    present: Mapping[tuple[GroupName, GroupName], int],
) -> FoundGroup | None:
    """Return the group that may have the name that the source gives to several."""
    known = draft.groups.get(called)
    new = [each for each in rivals if each.name not in draft.groups]
    if known is None:
        return new[0] if len(rivals) == len(new) == 1 else None
    mine = [each for each in rivals if each.project == known.project]
    most = max(mine, key=lambda each: present[each.name, called], default=None)
    if most is not None and present[most.name, called]:
        return most
    return mine[0] if len(mine) == 1 and mine[0] in new else None


def _present_groups(found: FoundFleet, draft: Draft) -> Counter[tuple[GroupName, GroupName]]:
    """Count known machines by their group in the source and their present group."""
    groups = _groups_of(found, draft)
    return Counter(
        (group, draft.machines[id_].group) for id_, group in groups.items() if id_ in draft.machines
    )


def _groups_of(found: FoundFleet, draft: Draft) -> Mapping[MachineId, GroupName]:
    """Return the group of each machine, unless several hosts define it and disagree."""
    said: dict[MachineId, set[GroupName | None]] = defaultdict(set)
    for each in found.machines:
        said[each.vm_id].add(each.group)
    present, _ = locate(found.machines, draft.machines)
    said.update((each.vm_id, {each.group}) for each in present)
    agreed = ((id_, next(iter(groups))) for id_, groups in said.items() if len(groups) == 1)
    return {id_: group for id_, group in agreed if group is not None}


class FoundGroups:
    """The new and changed groups and projects of an import."""

    def __init__(
        self,
        draft: Draft,
        found: FoundFleet,
        candidates: Sequence[Candidate],
        others: Sequence[MachineSpec],
        conflicts: ImportConflicts,
    ) -> None:
        """Take the reported machines, and those that stay although they were not reported."""
        self._draft, self._conflicts = draft, conflicts
        self._needed = _domains_needed(
            [
                *(each.place_in_group for each in candidates),
                *((each.group, each.update_domain) for each in others),
            ]
        )
        listed = {each.name: each for each in found.groups}
        members: dict[GroupName, ProjectName | None] = {}
        for each in candidates:
            if name := each.place_in_group[0]:
                members[name] = members.get(name) or each.found.project
        self._then: dict[GroupName, Group | GroupSpec] = dict(draft.groups)
        made = [
            spec
            for name in sorted(listed.keys() | members.keys())
            if (spec := self._spec(name, listed.get(name), members.get(name))) is not None
        ]
        self.specs = tuple(made)
        self._then |= {spec.name: spec for spec in made}
        alone = {each.found.project for each in candidates if each.place_in_group[0] is None}
        named = {each.project for each in made} | alone
        if found.hosts or candidates:  # if no host answered, nothing is created
            named.add(DEFAULT_PROJECT)
        self.projects = tuple(
            Project(name=name)
            if name == DEFAULT_PROJECT
            else Project(name=name, source=conflicts.terms.source)
            for name in sorted(each for each in named if each is not None)
            if name not in draft.projects
        )

    def project_of(self, group: GroupName) -> ProjectName:
        """Return the project of a group."""
        return self._then[group].project if group in self._then else DEFAULT_PROJECT

    def refuses(self, spec: MachineSpec) -> bool:
        """Whether a group lacks the machine's update domain; people declare how many it has."""
        if spec.group is None or spec.update_domain < self._then[spec.group].update_domains:
            return False
        self._conflicts.lines.append(
            f"machine {spec.name}: update-domain is {spec.update_domain}, which group {spec.group} does not "
            f"have (--take update-domains, or forewarn group put {spec.group} --update-domains "
            f"{spec.update_domain + 1})"
        )
        return True

    def _spec(
        self, name: GroupName, found: FoundGroup | None, project: ProjectName | None
    ) -> GroupSpec | None:
        """Return the declaration of a group; None if it does not change."""
        known, needed = self._draft.groups.get(name), self._needed.get(name, 1)
        if known is None:
            new = found or FoundGroup(name=name)
            return GroupSpec(
                name=name,
                kind=new.kind,
                update_domains=max(new.update_domains or 1, needed),
                project=new.project or project or DEFAULT_PROJECT,
                source=self._conflicts.terms.source,
            )
        # It has at least the domains that its machines need. Its kind stays while guests see events.
        wanted = known.update_domains if found is None else found.update_domains or 1
        said: dict[str, object] = {"update_domains": max(needed, wanted)}
        if found is not None and not self._draft.listed_domains(name):
            said["kind"] = found.kind
        taken = self._conflicts.taken(f"group {name}", known, said, source=known.source)
        return replace(group_spec(known), **taken) if taken else None


def _domains_needed(placed: Iterable[tuple[GroupName | None, int]]) -> Mapping[GroupName, int]:
    """Return how many update domains the machines of each group need."""
    most: dict[GroupName, int] = {}
    for group, domain in placed:
        if group is not None:
            most[group] = max(most.get(group, 1), domain + 1)
    return most


def found_hosts(draft: Draft, found: FoundFleet, conflicts: ImportConflicts) -> tuple[HostSpec, ...]:
    """Return the new and changed hosts of an import."""
    source, specs = conflicts.terms.source, []
    for each in found.hosts:
        known = draft.hosts.get(each.name)
        said: dict[str, Any] = {
            "driver": source,
            "uri": each.uri,
            "labels": each.labels,
            "resources": _resources(known, each),
        }
        heard = {name: value for name, value in said.items() if value is not None}
        if known is None:
            specs.append(HostSpec(name=each.name, source=source, **heard))
            continue
        # A host without a driver has the default of the fleet.
        present = replace(known, driver=draft.defaults.driver_of(known.driver))
        if taken := conflicts.taken(f"host {each.name}", present, heard, source=known.source):
            specs.append(replace(host_spec(known), **taken))
    return tuple(specs)


def _resources(known: Host | None, found: FoundHost) -> Mapping[str, HostResource] | None:
    """Return the resources of a host: the amounts of the source, with the ratios that people declared."""
    if known is None or found.resources is None:
        return found.resources
    now = {
        name: replace(known.resources.get(name, resource), amount=resource.amount)
        for name, resource in found.resources.items()
    }
    return {**known.resources, **now}
