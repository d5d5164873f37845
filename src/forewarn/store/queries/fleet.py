"""The declared fleet in a scope: machines, groups, hosts, projects, and the names in a text."""

from collections.abc import Collection, Iterator, Mapping, Sequence
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
from forewarn.core.filters import ANY_MACHINE, SHORTEST_ID_PART, MachineFilter
from forewarn.core.model.fleet_counts import FleetSummary
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.project import Project
from forewarn.core.text_formats import MOST_SLIPS
from forewarn.store import tables
from forewarn.store.key_lists import chunks, for_keys, key_list, one_of
from forewarn.store.queries.metrics import fleet_summary
from forewarn.store.reads.open_transaction import Queries
from forewarn.store.reads.statements import MACHINES_WITH_HOSTS, SELECT_GROUPS
from forewarn.store.rows.mapping import Row, moment
from forewarn.store.rows.stored import HOSTS, MACHINES, PROJECTS, name_key
from forewarn.store.writes.fleet_writes import REMOVED_HOSTS

_H, _T, _M, _G = tables.hosts.c, tables.tokens.c, tables.machines.c, tables.groups.c
_E, _P, _GONE, _A = tables.events.c, tables.projects.c, tables.tombstones.c, tables.machine_activity.c
_WORDS, _KEYS = key_list("words"), key_list("keys")
_PROJECT: BindParameter[Any] = bindparam("project", type_=Text)
# A person who writes a reason may write names in any case.
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


_LAST_SEEN = for_keys(
    select(_M.id, _A.last_seen).join(tables.machine_activity, _A.machine_id == _M.id), _M.id
)
_STOPPED = for_keys(select(_M.id).where(_M.state == MachineState.STOPPED), _M.id)
# Built once: most orders run it.
_MACHINE = MACHINES_WITH_HOSTS.where(_M.key == bindparam("name_key")).order_by(_M.project)
# Sorts after every character of a name.
_LAST = "\U0010ffff"


class FleetQueries(Queries):
    """Queries for machines, groups, hosts and projects."""

    def machine(self, name: str, *, project: ProjectName | None = None) -> Machine:
        """Find a machine by name, in any case; NotFound, or Conflict if several projects have that name."""
        key = name_key(name)
        prefetched = self._tx.batch.prefetched.machines
        rows: Sequence[Row] | None = None if project else prefetched.get((self._tx.project, key))
        if rows is None:
            query = _MACHINE if project is None else _MACHINE.where(_M.project == project)
            rows = self._tx.rows(self._tx.in_scope(query, _M.project), {"name_key": key})
        found = [self._tx.read_machine(row) for row in rows]
        if not found:
            raise NotFound(f'machine "{name}" does not exist')
        if len(found) > 1:
            projects = ", ".join(machine.project for machine in found)
            raise Conflict(f'machine "{name}" is in several projects ({projects}): say which')
        return found[0]

    def machines(
        self, wanted: MachineFilter = ANY_MACHINE, *, after: str | None, limit: int
    ) -> tuple[Sequence[Machine], str | None]:
        """List machines by project and name."""
        query = self._tx.in_scope(MACHINES.select().where(*_machine_conditions(wanted)), _M.project)
        return self._tx.page(MACHINES.read, query, (_M.project, _M.key), after=after, limit=limit)

    def groups(self, *, after: str | None, limit: int) -> tuple[Sequence[Group], str | None]:
        """List groups by name, without the groups of standalone machines."""
        query = self._tx.in_scope(SELECT_GROUPS.where(tables.LISTED_GROUP), _G.project)
        return self._tx.page(self._tx.read_group, query, (_G.name,), after=after, limit=limit)

    def hosts(self, *, after: str | None, limit: int) -> tuple[Sequence[Host], str | None]:
        """List hosts by name; a project sees the hosts that carry its machines."""
        return self._tx.page(
            HOSTS.read,
            HOSTS.select().where(*self._tx.host_conditions()),
            (_H.name,),
            after=after,
            limit=limit,
        )

    def unreachable_hosts(self) -> Sequence[Host]:
        """List unreachable hosts by name."""
        return self._tx.read_all(
            HOSTS.read,
            HOSTS.select().where(*self._tx.host_conditions()).where(tables.UNREACHABLE).order_by(_H.name),
        )

    def projects(self) -> Sequence[Project]:
        """List all projects by name."""
        return self._tx.read_all(
            PROJECTS.read, self._tx.in_scope(PROJECTS.select(), _P.name).order_by(_P.name)
        )

    def project(self, name: ProjectName) -> Project | None:
        """Find a project."""
        return self._tx.find(
            PROJECTS.read, self._tx.in_scope(PROJECTS.select(), _P.name).where(_P.name == name)
        )

    def names_like(self, kind: NameKind, name: str, *, limit: int) -> Sequence[str]:
        """List names of a kind that are about as long as this one, out of the first ones."""
        first = self._names(kind).limit(limit).subquery().c.name
        alike = func.length(first).between(len(name) - MOST_SLIPS, len(name) + MOST_SLIPS)
        return [row[0] for row in self._tx.rows(select(first).where(alike))]

    def _names(self, kind: NameKind) -> Select[Any]:
        """Select the names of a kind, in the order of an index."""
        match kind:
            case NameKind.MACHINE:
                return self._tx.in_scope(select(_M.name), _M.project).order_by(_M.project, _M.key)
            case NameKind.GROUP:
                return self._tx.in_scope(select(_G.name).where(tables.LISTED_GROUP), _G.project).order_by(
                    _G.name
                )
            case NameKind.HOST:
                return select(_H.name).where(*self._tx.host_conditions()).order_by(_H.name)
            case NameKind.PROJECT:
                return self._tx.in_scope(select(_P.name), _P.name).order_by(_P.name)

    def page_of_projects(self, *, after: str | None, limit: int) -> tuple[Sequence[Project], str | None]:
        """List projects by name, page by page."""
        query = self._tx.in_scope(PROJECTS.select(), _P.name)
        return self._tx.page(PROJECTS.read, query, (_P.name,), after=after, limit=limit)

    def group(self, name: GroupName) -> Group | None:
        """Find a group, including the group of a standalone machine."""
        return self._tx.find(
            self._tx.read_group, self._tx.in_scope(SELECT_GROUPS.where(_G.name == name), _G.project)
        )

    def host(self, name: HostName) -> Host | None:
        """Find a host; a project finds the hosts that carry its machines."""
        return self._tx.find(
            HOSTS.read, HOSTS.select().where(*self._tx.host_conditions()).where(tables.hosts.c.name == name)
        )

    def stopped(self, machines: Sequence[MachineId]) -> frozenset[MachineId]:
        """Return the machines that are stopped, out of these."""
        ids = {machine.lower() for machine in machines}
        return frozenset(id_ for (id_,) in self._tx.rows_for(self._tx.in_scope(_STOPPED, _M.project), ids))

    def last_seen(self, machines: Sequence[MachineId]) -> Mapping[MachineId, datetime]:
        """Return when these machines last polled, as far as that is saved."""
        ids = {machine.lower() for machine in machines}
        query = self._tx.in_scope(_LAST_SEEN, _M.project)
        return {machine: moment(seen) for machine, seen in self._tx.rows_for(query, ids)}

    def names_among(self, words: Collection[str], *, project: ProjectName) -> Names:
        """Return the words that are names, by what they mean to a project."""
        found: dict[str, set[str]] = {}
        for chunk in chunks(sorted(words)):
            keys = sorted({name_key(word) for word in chunk})
            for kind, name in self._tx.rows(_NAMES, {"words": chunk, "keys": keys, "project": project}):
                found.setdefault(kind, set()).add(name)
        return Names(**{kind: frozenset(names) for kind, names in found.items()})

    def summary(self) -> FleetSummary:
        """Count the fleet; the cost grows with the number of machines, but no machine is loaded."""
        return fleet_summary(self._tx)


def _machine_conditions(wanted: MachineFilter) -> Iterator[ColumnElement[bool]]:
    equal = (
        (_M.project, wanted.project),
        (_M.group_name, wanted.group),
        (_M.host, wanted.host),
        (_M.bound_for, wanted.bound_for),
        (_M.place, wanted.bound_for),  # unlike `bound_for`, it has an index
    )
    for column, value in equal:
        if value is not None:
            yield column == value
    if wanted.places:
        yield _M.place.in_(sorted(wanted.places))
    if wanted.names:
        yield _M.key.in_(sorted(map(name_key, wanted.names)))
    if wanted.begins:
        first = name_key(wanted.begins)
        yield and_(_M.key >= first, _M.key <= first + _LAST)  # unlike LIKE, this uses the index
    if wanted.contains:
        # In the name, the address or the vm-id. The database reads every machine.
        text = name_key(wanted.contains)
        columns = (_M.key, _M.address, _M.id) if len(text) >= SHORTEST_ID_PART else (_M.key, _M.address)
        yield or_(*(column.contains(text, autoescape=True) for column in columns))


class FleetFileQueries(Queries):
    """Queries for the fleet file."""

    def applied(self) -> str | None:
        """Return the digest of the fleet file that was last applied."""
        return self._tx.meta.applied_fleet


class FleetFileChanges(FleetFileQueries):
    """Queries and changes of the fleet file."""

    def set_applied(self, digest: str | None) -> None:
        """Save the digest of the fleet file that was applied; None while one is being applied."""
        self._tx.update_meta(applied_fleet=digest)
