"""The declared fleet as a scope sees it: lists, page by page, single things, and which words are names."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    Text,
    and_,
    bindparam,
    func,
    literal_column,
    or_,
    select,
    union_all,
)

from forewarn.core.basic_types import GroupName, HostName, MachineId, MachineState, NameKind, ProjectName
from forewarn.core.disclosure import Names
from forewarn.core.errors import Conflict, NotFound
from forewarn.core.filters import ANY_MACHINE, LEAST_OF_ID, MachineFilter
from forewarn.core.model.fleet_counts import FleetSummary
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.project import Project
from forewarn.core.text_formats import MOST_SLIPS
from forewarn.store import tables
from forewarn.store.key_lists import key_list, one_of
from forewarn.store.queries.metrics import SummaryReads
from forewarn.store.reads.reader import MACHINES_WITH_HOSTS, SELECT_GROUPS, Reader, among, chunks
from forewarn.store.rows.mapping import Row, moment
from forewarn.store.rows.stored import HOSTS, MACHINES, PROJECTS, name_key
from forewarn.store.writes.fleet_writes import REMOVED_HOSTS

_H, _T, _M, _G = tables.hosts.c, tables.tokens.c, tables.machines.c, tables.groups.c
_E, _P, _GONE, _A = tables.events.c, tables.projects.c, tables.tombstones.c, tables.machine_activity.c
_WORDS, _KEYS = key_list("words"), key_list("keys")
_PROJECT: BindParameter[Any] = bindparam("project", type_=Text)
# Whoever writes a reason may write names in any case.
_HOST, _REMOVED, _PERSON = func.lower(_H.name), func.lower(_GONE.key), func.lower(_T.name)


def _of(kind: str, name: ColumnElement[Any], *where: ColumnElement[bool]) -> Select[Any]:
    return select(literal_column(f"'{kind}'"), name).where(*where)


_NAMES = union_all(
    _of("hosts", _HOST, one_of(_HOST, _KEYS)),
    _of("hosts", _REMOVED, _GONE.kind == literal_column(f"'{REMOVED_HOSTS}'"), one_of(_REMOVED, _KEYS)),
    _of("people", _T.name, _T.project == _PROJECT, one_of(_T.name, _WORDS)),
    _of("others", _PERSON, _T.project.is_distinct_from(_PROJECT), one_of(_PERSON, _KEYS)),
    _of("machines", _M.name, _M.project == _PROJECT, one_of(_M.key, _KEYS)),
    _of("strangers", _M.key, _M.project != _PROJECT, one_of(_M.key, _KEYS)),
    _of("other_groups", _G.name, _G.project != _PROJECT, one_of(_G.name, _WORDS)),
    _of("other_projects", _P.name, _P.name != _PROJECT, one_of(_P.name, _WORDS)),
    _of("groups", _G.name, _G.project == _PROJECT, one_of(_G.name, _WORDS)),
    _of(
        "events",
        _E.id,
        tables.IS_LISTED_EVENT,
        one_of(_E.id, _WORDS),
        select(_G.project).where(_G.name == _E.group_name).scalar_subquery() == _PROJECT,
    ),
)


class NameReads(Reader):
    """What words mean."""

    def among(self, words: Collection[str], *, project: ProjectName) -> Names:
        """Return which of some words are names, as a project would tell them apart."""
        found: dict[str, set[str]] = {}
        for chunk in chunks(sorted(words)):
            keys = sorted({name_key(word) for word in chunk})
            for kind, name in self._all(_NAMES, {"words": chunk, "keys": keys, "project": project}):
                found.setdefault(kind, set()).add(name)
        return Names(**{kind: frozenset(names) for kind, names in found.items()})


_LAST_SEEN = among(select(_M.id, _A.last_seen).join(tables.machine_activity, _A.machine_id == _M.id), _M.id)
_STOPPED = among(select(_M.id).where(_M.state == MachineState.STOPPED), _M.id)
# Asked with most orders, and so put together once.
_MACHINE = MACHINES_WITH_HOSTS.where(_M.key == bindparam("name_key")).order_by(_M.project)
# Comes after everything that a name may have in it.
_LAST = "\U0010ffff"


class FleetQueries(Reader):
    """Machines, groups, hosts and projects."""

    def machine(self, name: str, *, project: ProjectName | None = None) -> Machine:
        """Find a machine by its name, any case; NotFound, or Conflict if several projects have it."""
        found = [self._transaction.read_machine(row) for row in self._called(name_key(name), project)]
        if not found:
            raise NotFound(f'machine "{name}" does not exist')
        if len(found) > 1:
            projects = ", ".join(machine.project for machine in found)
            raise Conflict(f'machine "{name}" is in several projects ({projects}): say which')
        return found[0]

    def _called(self, key: str, project: ProjectName | None) -> Sequence[Row]:
        loaded = self._transaction.loaded.machines
        if project is None and (self._project, key) in loaded:
            return loaded[self._project, key]
        query = _MACHINE if project is None else _MACHINE.where(_M.project == project)
        return self._all(self._mine(query, _M.project), {"name_key": key})

    def machines(
        self, wanted: MachineFilter = ANY_MACHINE, *, after: str | None, limit: int
    ) -> tuple[Sequence[Machine], str | None]:
        """List machines by project and name."""
        query = self._mine(MACHINES.select().where(*_machines_wanted(wanted)), _M.project)
        return self._page(MACHINES.read, query, (_M.project, _M.key), after=after, limit=limit)

    def groups(self, *, after: str | None, limit: int) -> tuple[Sequence[Group], str | None]:
        """List groups by name, standalone machines left out."""
        query = self._mine(SELECT_GROUPS.where(tables.LISTED_GROUP), _G.project)
        return self._page(self._transaction.read_group, query, (_G.name,), after=after, limit=limit)

    def hosts(self, *, after: str | None, limit: int) -> tuple[Sequence[Host], str | None]:
        """List hosts by name; for a project, those that carry a machine of it."""
        return self._page(HOSTS.read, self._my_hosts(), (_H.name,), after=after, limit=limit)

    def unreachable_hosts(self) -> Sequence[Host]:
        """List the hosts that cannot be reached, by name."""
        return self._list(HOSTS.read, self._my_hosts().where(tables.UNREACHABLE).order_by(_H.name))

    def projects(self) -> Sequence[Project]:
        """List all projects by name."""
        return self._list(PROJECTS.read, self._mine(PROJECTS.select(), _P.name).order_by(_P.name))

    def project(self, name: ProjectName) -> Project | None:
        """Find a project that is declared."""
        return self._find(PROJECTS.read, self._mine(PROJECTS.select(), _P.name).where(_P.name == name))

    def names_like(self, kind: NameKind, name: str, *, limit: int) -> Sequence[str]:
        """List those of the first names of a kind that are about as long as this one."""
        first = self._names(kind).limit(limit).subquery().c.name
        alike = func.length(first).between(len(name) - MOST_SLIPS, len(name) + MOST_SLIPS)
        return [row[0] for row in self._all(select(first).where(alike))]

    def _names(self, kind: NameKind) -> Select[Any]:
        """Select the names of a kind, in the order of an index."""
        match kind:
            case NameKind.MACHINE:
                return self._mine(select(_M.name), _M.project).order_by(_M.project, _M.key)
            case NameKind.GROUP:
                return self._mine(select(_G.name).where(tables.LISTED_GROUP), _G.project).order_by(_G.name)
            case NameKind.HOST:
                return select(_H.name).where(*self._only_my_hosts()).order_by(_H.name)
            case NameKind.PROJECT:
                return self._mine(select(_P.name), _P.name).order_by(_P.name)

    def page_of_projects(self, *, after: str | None, limit: int) -> tuple[Sequence[Project], str | None]:
        """List projects by name, and give the cursor of the next page."""
        query = self._mine(PROJECTS.select(), _P.name)
        return self._page(PROJECTS.read, query, (_P.name,), after=after, limit=limit)

    def group(self, name: GroupName) -> Group | None:
        """Find a group, a standalone machine's own included."""
        return self._find(
            self._transaction.read_group, self._mine(SELECT_GROUPS.where(_G.name == name), _G.project)
        )

    def host(self, name: HostName) -> Host | None:
        """Find a host; for a project, if it carries a machine of it."""
        return self._find(HOSTS.read, self._my_hosts().where(tables.hosts.c.name == name))

    def stopped(self, machines: Sequence[MachineId]) -> frozenset[MachineId]:
        """Return which of these machines are stopped."""
        ids = {machine.lower() for machine in machines}
        return frozenset(id_ for (id_,) in self._among(self._mine(_STOPPED, _M.project), ids))

    def last_seen(self, machines: Sequence[MachineId]) -> Mapping[MachineId, datetime]:
        """Return when each of these machines was last seen, as far as that is saved."""
        ids = {machine.lower() for machine in machines}
        query = self._mine(_LAST_SEEN, _M.project)
        return {machine: moment(seen) for machine, seen in self._among(query, ids)}

    def names_among(self, words: Collection[str], *, project: ProjectName) -> Names:
        """Return which of some words are names, as a project would tell them apart."""
        return NameReads(self._transaction).among(words, project=project)

    def summary(self) -> FleetSummary:
        """Count what there is; its cost grows with the machines, but none of them is read."""
        return SummaryReads(self._transaction).summary()


def _machines_wanted(wanted: MachineFilter) -> Iterator[ColumnElement[bool]]:
    if wanted.project is not None:
        yield _M.project == wanted.project
    if wanted.group is not None:
        yield _M.group_name == wanted.group
    if wanted.host is not None:
        yield _M.host == wanted.host
    if wanted.places:
        yield _M.place.in_(sorted(wanted.places))
    if wanted.bound_for is not None:
        yield _M.place == wanted.bound_for  # which has an index
        yield _M.bound_for == wanted.bound_for
    yield from _names_wanted(wanted)


def _names_wanted(wanted: MachineFilter) -> Iterator[ColumnElement[bool]]:
    if wanted.names:
        yield _M.key.in_(sorted(map(name_key, wanted.names)))
    if wanted.begins:
        first = name_key(wanted.begins)
        yield and_(_M.key >= first, _M.key <= first + _LAST)  # which an index answers, and LIKE would not
    if wanted.contains:
        yield _has(name_key(wanted.contains))


def _has(part: str) -> ColumnElement[bool]:
    """Match a part of the name, the address or the vm-id. Every machine is read."""
    columns = (_M.key, _M.address, _M.id) if len(part) >= LEAST_OF_ID else (_M.key, _M.address)
    return or_(*(column.contains(part, autoescape=True) for column in columns))


class FleetFileQueries(Reader):
    """What is known of the fleet file."""

    def applied(self) -> str | None:
        """Return the digest of the one last applied."""
        return self._meta.applied_fleet


class FleetFileChanges(FleetFileQueries):
    """The same, and what can be changed."""

    def set_applied(self, digest: str | None) -> None:
        """Save the digest of the one that is applied whole; None: one was begun."""
        self._transaction.keep(replace(self._meta, applied_fleet=digest))
