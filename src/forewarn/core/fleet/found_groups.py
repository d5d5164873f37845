"""Groups and projects that a source has found, as declarations."""

from collections.abc import Iterable, Mapping, Sequence

from forewarn.core.copies import replace
from forewarn.core.draft import Draft
from forewarn.core.fleet.found_fields import Candidate
from forewarn.core.fleet.import_terms import Dispute
from forewarn.core.model.declaration import GroupSpec, MachineSpec, group_spec
from forewarn.core.model.found_fleet import Found, FoundGroup
from forewarn.core.model.group import Group
from forewarn.core.model.project import Project
from forewarn.core.words import DEFAULT_PROJECT, GroupName, ProjectName


class FoundGroups:
    """The groups and projects that are new, or change; and what groups then are."""

    def __init__(
        self,
        draft: Draft,
        found: Found,
        candidates: Sequence[Candidate],
        others: Sequence[MachineSpec],
        dispute: Dispute,
    ) -> None:
        """Take the machines that were found, and those that stay though they were not."""
        self._draft, self._dispute = draft, dispute
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
        if found.hosts or candidates:  # where no host could be asked, nothing is made
            named.add(DEFAULT_PROJECT)
        self.projects = tuple(
            Project(name=name) if name == DEFAULT_PROJECT else Project(name=name, source=dispute.terms.source)
            for name in sorted(each for each in named if each is not None)
            if name not in draft.projects
        )

    def project_of(self, group: GroupName) -> ProjectName:
        """Return the project that a group is in."""
        return self._then[group].project if group in self._then else DEFAULT_PROJECT

    def refuses(self, spec: MachineSpec) -> bool:
        """Return whether a group has no such update domain, and say so: people declare how many it has."""
        if spec.group is None or spec.update_domain < self._then[spec.group].update_domains:
            return False
        self._dispute.say(
            f"machine {spec.name}: update-domain is {spec.update_domain}, which group {spec.group} does not "
            f"have (--take update-domains, or forewarn group put {spec.group} --update-domains "
            f"{spec.update_domain + 1})"
        )
        return True

    def _spec(
        self, name: GroupName, found: FoundGroup | None, project: ProjectName | None
    ) -> GroupSpec | None:
        """Return what a group becomes; None if it stays as it is."""
        known, needed = self._draft.groups.get(name), self._needed.get(name, 1)
        if known is None:
            new = found or FoundGroup(name=name)
            return GroupSpec(
                name=name,
                kind=new.kind,
                update_domains=max(new.update_domains or 1, needed),
                project=new.project or project or DEFAULT_PROJECT,
                source=self._dispute.terms.source,
            )
        # It has never fewer than its machines need; another kind is not for guests who are being told.
        wanted = known.update_domains if found is None else found.update_domains or 1
        said: dict[str, object] = {"update_domains": max(needed, wanted)}
        if found is not None and not self._draft.listed_domains(name):
            said["kind"] = found.kind
        taken = self._dispute.taken(f"group {name}", known, said, source=known.source)
        return replace(group_spec(known), **taken) if taken else None


def _domains_needed(placed: Iterable[tuple[GroupName | None, int]]) -> Mapping[GroupName, int]:
    """Return how many update domains the machines of each group need."""
    most: dict[GroupName, int] = {}
    for group, domain in placed:
        if group is not None:
            most[group] = max(most.get(group, 1), domain + 1)
    return most
