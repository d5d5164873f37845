"""Which of their names the groups of a source get, where several may be called the same there.

Tenants name their groups, and in forewarn names are unique. So that nobody renames another's group by making
one of the same name, or by removing it, a group keeps the name that it has. One that is new is called as its
source calls it, unless there is another of that name; then it is told apart by its id.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from forewarn.core.copies import replace
from forewarn.core.draft import Draft
from forewarn.core.fleet.found_places import places
from forewarn.core.model.found_fleet import Found, FoundGroup
from forewarn.core.words import GroupName, MachineId


def with_group_names(found: Found, draft: Draft) -> Found:
    """Return what was found with the names that its groups get."""
    settled = _Names(found, draft).settled()
    if not settled:
        return found
    machines = tuple(
        replace(each, group=settled.get(each.group, each.group)) if each.group is not None else each
        for each in found.machines
    )
    own = [replace(each, name=settled[each.name], called=None) for each in found.groups if each.called]
    taken = {each.name for each in own}
    # What machines alone name is not made of a group that another project has already.
    named = [each for each in found.groups if not each.called and each.name not in taken]
    return replace(found, machines=machines, groups=tuple(sorted((*own, *named), key=lambda each: each.name)))


class _Names:
    def __init__(self, found: Found, draft: Draft) -> None:
        self._draft = draft
        self._members: dict[GroupName, Counter[GroupName]] = {}  # how many are now in which group
        for id_, named in _groups_of(found, draft).items():
            if id_ in draft.machines:
                self._members.setdefault(named, Counter())[draft.machines[id_].group] += 1
        self._rivals: dict[GroupName, list[FoundGroup]] = {}
        for group in sorted(found.groups, key=lambda each: each.name):
            if group.called is not None:
                self._rivals.setdefault(group.called, []).append(group)

    def settled(self) -> Mapping[GroupName, GroupName]:
        """Return the name that each group gets, by the one that tells it apart."""
        names: dict[GroupName, GroupName] = {}
        for called, rivals in self._rivals.items():
            winner = self._winner(called, rivals)
            names |= {each.name: called if each is winner else each.name for each in rivals}
        return names

    def _winner(self, called: GroupName, rivals: Sequence[FoundGroup]) -> FoundGroup | None:
        """Return the one that may be called as its source calls it."""
        known = self._draft.groups.get(called)
        new = [each for each in rivals if each.name not in self._draft.groups]
        if known is None:
            return new[0] if len(rivals) == len(new) == 1 else None
        mine = [each for each in rivals if each.project == known.project]
        most = max(mine, key=lambda each: self._now_in(each, called), default=None)
        if most is not None and self._now_in(most, called):
            return most
        return mine[0] if len(mine) == 1 and mine[0] in new else None

    def _now_in(self, group: FoundGroup, name: GroupName) -> int:
        return self._members.get(group.name, Counter())[name]


def _groups_of(found: Found, draft: Draft) -> Mapping[MachineId, GroupName]:
    """Return the group of each machine, unless hosts that know it disagree and none of them speaks for it."""
    said: dict[MachineId, set[GroupName | None]] = defaultdict(set)
    for each in found.machines:
        said[each.vm_id].add(each.group)
    said.update((each.vm_id, {each.group}) for each in places(found.machines, draft.machines).present)
    agreed = ((id_, next(iter(groups))) for id_, groups in said.items() if len(groups) == 1)
    return {id_: group for id_, group in agreed if group is not None}
