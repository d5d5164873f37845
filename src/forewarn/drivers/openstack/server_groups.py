"""Server groups as groups of forewarn: names that tenants give are no more unique than those of servers."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from forewarn.core.words import GroupName

# A name in forewarn has so many of these characters.
LONGEST, NOT_ALLOWED = 64, re.compile(r"[^A-Za-z0-9._-]+")
OF_ID = 8  # so many letters of an id tell apart what has the same name


def allowed(name: str) -> str:
    """Return a name with what forewarn does not allow in names replaced."""
    return NOT_ALLOWED.sub("-", name).strip("-")[:LONGEST] or "unnamed"


def told_apart(name: str, id_: str) -> str:
    """Return a name that nothing else has."""
    return f"{allowed(name)[: LONGEST - OF_ID - 1]}-{id_[:OF_ID]}"


class ServerGroups:
    """The server groups that have members, each by a name that no other has."""

    def __init__(self, groups: Iterable[Mapping[str, Any]]) -> None:
        own = {GroupName(told_apart(each["name"], each["id"])): each for each in groups if each["members"]}
        self._called = {name: GroupName(allowed(each["name"])) for name, each in own.items()}
        self._projects: dict[GroupName, str] = {name: each["project_id"] for name, each in own.items()}
        self._of = {member: name for name, each in own.items() for member in each["members"]}

    def of(self, server: str) -> GroupName | None:
        """Return the group that a server is in."""
        return self._of.get(server)

    def named(self, text: str, *, project: str) -> GroupName:
        """Return the group that somebody of a project means: their own server group, if it is called so."""
        name = GroupName(allowed(text))
        mine = [
            each
            for each, called in self._called.items()
            if called == name and self._projects[each] == project
        ]
        return mine[0] if len(mine) == 1 else name

    def called(self, name: GroupName) -> GroupName | None:
        """Return what nova calls a group; None if it is no server group."""
        return self._called.get(name)

    def project_of(self, name: GroupName) -> str | None:
        """Return the id of the project that a server group is of; None if it is none."""
        return self._projects.get(name)
