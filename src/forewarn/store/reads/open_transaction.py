"""An open transaction: the queries that every part of a snapshot runs, limited to the caller's scope."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Column, ColumnElement, Connection, Executable, Select, func, select, update

from forewarn.core.basic_types import GroupName, MachineId
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.scope import EVERYTHING, Scope
from forewarn.store import tables
from forewarn.store.key_lists import chunks
from forewarn.store.prefetch import PrefetchedRows
from forewarn.store.reads.paging import next_cursor, page_query
from forewarn.store.rows.mapping import Columns, Row
from forewarn.store.rows.stored import GROUPS, HOSTS, MACHINES, META, Meta
from forewarn.store.saved import SavedChanges

SELECT_META = META.select()
# SQLite has no row locks and needs none: its writers begin with BEGIN IMMEDIATE.
LOCK_META = SELECT_META.where(tables.THE_META_ROW).with_for_update()
_UPDATE_META = update(tables.meta).where(tables.THE_META_ROW)

Value = TypeVar("Value")
Read = Callable[[Row], Value]
Write = Callable[[Any, Sequence[Columns]], None]


@dataclass(slots=True)
class BatchState:
    """The state that all transactions of a batch share."""

    meta: Meta | None = None  # None: not read yet, so the counter is not locked either
    stored_meta: Meta | None = None  # as the database has it
    prefetched: PrefetchedRows = field(default_factory=PrefetchedRows)
    saved: list[SavedChanges] = field(default_factory=list)
    postpone: Write | None = None  # None: writes run at once

    @property
    def unwritten(self) -> bool:
        """Whether the row was changed since it was read or written."""
        return self.meta is not None and self.meta is not self.stored_meta

    def read_meta(self, row: Row) -> Meta:
        """Read the row of the database."""
        self.meta = self.stored_meta = META.read(row)
        return self.meta

    def write_meta(self, write: Write) -> None:
        """Write the changed columns: once per transaction, however much it saves."""
        if not self.unwritten or self.meta is None or self.stored_meta is None:
            return
        before = META.write(self.stored_meta)
        changed = {name: value for name, value in META.write(self.meta).items() if value != before[name]}
        if changed:
            write(_UPDATE_META, [changed])
        self.stored_meta = self.meta


class OpenTransaction:
    """A connection, the caller's scope, and the rows whose versions a later save must know."""

    def __init__(
        self, begin: Callable[[], Connection], *, scope: Scope = EVERYTHING, batch: BatchState | None = None
    ) -> None:
        """Connect at the first statement. A transaction of a batch first locks the counter."""
        self._begin = begin
        self._locks = batch is not None
        self._begun = False
        self.scope = scope
        self.project = scope.project  # None: all projects are visible
        self.batch = batch or BatchState()
        self.versions: dict[GroupName, int] = {}
        self.groups: dict[GroupName, Group] = {}  # as read
        self.enabled: set[GroupName] = set()  # of these groups
        # Machines that were found, with the hosts that carry them, until the next save.
        self.found: dict[MachineId, tuple[Machine, Host | None]] = {}

    @property
    def connection(self) -> Connection:
        """The connection; the first use locks the counter if this transaction can write."""
        connection = self._begin()
        if not self._begun:
            self._begun = True
            if self._locks and self.batch.meta is None:
                self.batch.read_meta(connection.execute(LOCK_META).one())
        return connection

    @property
    def meta(self) -> Meta:
        """The row of the store as a whole, read at the first use."""
        connection = self.connection  # may read it
        if self.batch.meta is not None:
            return self.batch.meta
        return self.batch.read_meta(connection.execute(LOCK_META if self._locks else SELECT_META).one())

    def update_meta(self, **columns: Any) -> None:
        """Change the row of the store as a whole; the commit writes it."""
        self.batch.meta = replace(self.meta, **columns)

    def reached_by(self, now: datetime) -> datetime:
        """Return the service time reached at a moment: it never goes back."""
        return now if self.meta.reached is None else max(now, self.meta.reached)

    def read_machine(self, row: Row) -> Machine:
        """Read a machine and remember it with its host: a machine found by name is often loaded next."""
        host_row = row[len(MACHINES.columns) :]
        machine, host = MACHINES.read(row), None if host_row[0] is None else HOSTS.read(host_row)
        self.found[machine.id] = (machine, host)
        return machine

    def read_group(self, row: Row) -> Group:
        """Read a group, and remember its version for compare-and-set and whether it was enabled."""
        group = GROUPS.read(row)
        self.versions[group.name] = row[len(GROUPS.columns)]
        self.groups[group.name] = group
        if group.enabled:
            self.enabled.add(group.name)
        return group

    # Queries

    def rows(self, query: Executable, values: Mapping[str, Any] | None = None) -> Sequence[Row]:
        """Run a query and return all rows."""
        return self.connection.execute(query, values).all()

    def rows_for(self, query: Select[Any], keys: Iterable[str]) -> Iterator[Row]:
        """Run a `for_keys` query; without keys no query runs."""
        for chunk in chunks(keys):
            yield from self.rows(query, {"keys": chunk})

    def prefetched_rows(
        self, prefetched: Mapping[str, Sequence[Row]], query: Select[Any], keys: Iterable[str]
    ) -> Iterator[Row]:
        """Run a `for_keys` query for the keys whose rows were not prefetched."""
        wanted = list(keys)
        yield from self.rows_for(query, [key for key in wanted if key not in prefetched])
        for key in wanted:
            yield from prefetched.get(key, ())

    def load(self, read: Read[Value], query: Select[Any], keys: Iterable[str]) -> list[Value]:
        """Read the values that a `for_keys` query finds."""
        return [read(row) for row in self.rows_for(query, keys)]

    def read_all(self, read: Read[Value], query: Select[Any]) -> list[Value]:
        """Read all values that a query finds."""
        return [read(row) for row in self.rows(query)]

    def find(self, read: Read[Value], query: Select[Any]) -> Value | None:
        """Read the first value that a query finds."""
        row = self.connection.execute(query).first()
        return None if row is None else read(row)

    def count(self, query: Select[Any]) -> int:
        """Count the rows of a query."""
        counted = query.with_only_columns(func.count(), maintain_column_froms=True)
        return int(self.connection.execute(counted).scalar_one())

    def page(
        self,
        read: Read[Value],
        query: Select[Any],
        by: tuple[Column[Any], ...],
        *,
        after: str | None,
        limit: int,
        newest: bool = False,
    ) -> tuple[Sequence[Value], str | None]:
        """Return the values after a cursor, in the order of these columns, and the next page's cursor."""
        rows = self.rows(page_query(query.add_columns(*by), by, after, limit=limit, newest=newest))
        shown = rows[:limit]
        cursor = next_cursor(shown[-1][-len(by) :]) if len(rows) > limit else None
        return [read(row) for row in shown], cursor

    # The caller's scope

    def in_scope(self, query: Select[Any], project: ColumnElement[Any]) -> Select[Any]:
        """Exclude the rows of other projects; `project` is the column that names the project of a row."""
        return query.where(*self.scope_conditions(project))

    def scope_conditions(self, project: ColumnElement[Any]) -> Sequence[ColumnElement[bool]]:
        """Return the condition that excludes the rows of other projects, if the scope is one project."""
        return () if self.project is None else (project == self.project,)

    def host_conditions(self) -> Sequence[ColumnElement[bool]]:
        """Return the condition that a host carries a machine of the project, if the scope is one project."""
        carrying = select(tables.machines.c.host).where(tables.machines.c.project == self.project)
        return () if self.project is None else (tables.hosts.c.name.in_(carrying),)

    def may_use_name_index(self, machine_key: str) -> bool:
        """Return whether a query may look a machine name up in the index of all projects.

        The time that takes reveals how much other projects have under that name. So a project may only look
        up the names of its own machines.
        """
        if self.project is None:
            return True
        own = select(tables.machines.c.id).where(tables.machines.c.key == machine_key)
        return self.connection.execute(self.in_scope(own, tables.machines.c.project)).first() is not None


class Queries:
    """Base of the parts of a snapshot."""

    def __init__(self, transaction: OpenTransaction) -> None:
        self._tx = transaction
