"""What every part of a snapshot builds on: queries, whose things they find, and pages of lists."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Executable,
    Select,
    case,
    exists,
    func,
    or_,
    select,
    tuple_,
)

from forewarn.core.errors import Invalid
from forewarn.store import tables
from forewarn.store.key_lists import key_list, one_of
from forewarn.store.reads.open_transaction import OpenTransaction
from forewarn.store.rows.mapping import Row
from forewarn.store.rows.stored import GROUPS, HOSTS, MACHINES, Meta

_E, _R, _NAMED = tables.events.c, tables.records.c, tables.event_machines.c
# A cursor says where the last thing of a page stands, so that insertions shift nothing.
_LARGEST = 2**63 - 1  # what a column can hold


def encode(position: Sequence[str | int]) -> str:
    """Write the values of the columns that a list is ordered by as a cursor."""
    return urlsafe_b64encode(json.dumps(list(position)).encode()).decode().rstrip("=")


def following(
    query: Select[Any], by: Sequence[Column[Any]], after: str | None, *, limit: int, newest: bool
) -> Select[Any]:
    """Order a query by columns and take what comes after a cursor: one more than is asked for."""
    if limit < 1:
        raise Invalid(f"limit {limit}: expected at least 1")
    if after is not None:
        here, there = tuple_(*by), tuple_(*_decode(after, by))
        query = query.where(here < there if newest else here > there)
    return query.order_by(*(column.desc() if newest else column for column in by)).limit(limit + 1)


def _decode(cursor: str, by: Sequence[Column[Any]]) -> Sequence[str | int]:
    try:
        position = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except ValueError:  # not base64, not UTF-8, not JSON
        position = None
    kinds = [column.type.python_type for column in by]
    if not isinstance(position, list) or [type(part) for part in position] != kinds:
        raise Invalid(f"cursor {cursor!r} is none that a list has answered with")
    if any(isinstance(part, int) and not 0 <= part <= _LARGEST for part in position):
        raise Invalid(f"cursor {cursor!r} is none that a list has answered with")
    return position


# A value that is no longer than this is as fast, and holds up nobody else for long.
_MOST_KEYS = 5_000

Key = TypeVar("Key")
Value = TypeVar("Value")
Read = Callable[[Row], Value]

# What `OpenTransaction.read_machine` reads: with the host that a machine is on, or was last.
MACHINES_WITH_HOSTS = select(*MACHINES.columns, *HOSTS.columns).outerjoin_from(
    tables.machines,
    tables.hosts,
    tables.hosts.c.name == func.coalesce(tables.machines.c.host, tables.machines.c.last_host),
)
SELECT_GROUPS = select(*GROUPS.columns, tables.groups.c.version)  # what `OpenTransaction.read_group` reads
# Whose an event is: while guests see it, their group's; afterwards theirs whom the announcement named.
EVENT_PROJECT = case(
    (
        tables.LISTED_EVENT,
        select(tables.groups.c.project).where(tables.groups.c.name == _E.group_name).scalar_subquery(),
    ),
    else_=select(_R.project).where(_R.number == _E.number).scalar_subquery(),
)


def among(query: Select[Any], column: ColumnElement[Any]) -> Select[Any]:
    """Narrow a query to the rows whose column is one of the keys that are given when it is run."""
    return query.where(one_of(column, key_list("keys")))


def chunks(keys: Iterable[Key]) -> Iterator[list[Key]]:
    """Cut keys into lists that a statement can take."""
    rest = iter(keys)
    while chunk := list(islice(rest, _MOST_KEYS)):
        yield chunk


class Reader:
    """What a part of a snapshot reads by: queries on the connection of an open transaction."""

    def __init__(self, transaction: OpenTransaction) -> None:
        self._transaction = transaction
        self._project = transaction.project

    @property
    def _connection(self) -> Connection:
        return self._transaction.connection

    @property
    def _meta(self) -> Meta:
        return self._transaction.meta

    def _mine(self, query: Select[Any], project: ColumnElement[Any]) -> Select[Any]:
        """Leave out other projects' rows if this is read for one; `project` is the column to tell by."""
        return query.where(*self._only(project))

    def _only(self, project: ColumnElement[Any]) -> Sequence[ColumnElement[bool]]:
        """Return the condition that leaves out other projects' rows, if this is read for one."""
        return () if self._project is None else (project == self._project,)

    def _may_look_up(self, machine_key: str) -> bool:
        """Return whether a name may be looked up among all: the one that this is read for has it now."""
        if self._project is None:
            return True
        mine = select(tables.machines.c.id).where(tables.machines.c.key == machine_key)
        return self._connection.execute(self._mine(mine, tables.machines.c.project)).first() is not None

    def _my_hosts(self) -> Select[Any]:
        """Select hosts: all, or those that carry a machine of the project that this is read for."""
        return HOSTS.select().where(*self._only_my_hosts())

    def _only_my_hosts(self) -> Sequence[ColumnElement[bool]]:
        carrying = select(tables.machines.c.host).where(tables.machines.c.project == self._project)
        return () if self._project is None else (tables.hosts.c.name.in_(carrying),)

    def _all(self, query: Executable, values: Mapping[str, Any] | None = None) -> Sequence[Row]:
        return self._connection.execute(query, values).all()

    def _among(self, query: Select[Any], keys: Iterable[str]) -> Iterator[Row]:
        """Run an `among` query; no keys, no query."""
        for chunk in chunks(keys):
            yield from self._all(query, {"keys": chunk})  # at once: one by one takes longer

    def _known_or(
        self, known: Mapping[str, Sequence[Row]], query: Select[Any], keys: Iterable[str]
    ) -> Iterator[Row]:
        """Run an `among` query for those keys whose rows are not known."""
        wanted = list(keys)
        yield from self._among(query, [key for key in wanted if key not in known])
        for key in wanted:
            yield from known.get(key, ())

    def _load(self, read: Read[Value], query: Select[Any], keys: Iterable[str]) -> list[Value]:
        """Read what an `among` query finds."""
        return [read(row) for row in self._among(query, keys)]

    def _list(self, read: Read[Value], query: Select[Any]) -> list[Value]:
        return [read(row) for row in self._all(query)]

    def _find(self, read: Read[Value], query: Select[Any]) -> Value | None:
        row = self._connection.execute(query).first()
        return None if row is None else read(row)

    def _count(self, query: Select[Any]) -> int:
        counted = query.with_only_columns(func.count(), maintain_column_froms=True)
        return int(self._connection.execute(counted).scalar_one())

    def _page(
        self,
        read: Read[Value],
        query: Select[Any],
        by: tuple[Column[Any], ...],
        *,
        after: str | None,
        limit: int,
        newest: bool = False,
    ) -> tuple[Sequence[Value], str | None]:
        """Return what follows a cursor in the order of these columns, and the cursor of the next page."""
        rows = self._all(following(query.add_columns(*by), by, after, limit=limit, newest=newest))
        shown = rows[:limit]
        more = encode(shown[-1][-len(by) :]) if len(rows) > limit else None
        return [read(row) for row in shown], more


def concerning(machine_key: str, *, by_index: bool) -> ColumnElement[bool]:
    """A record is about a machine if it names it, or is about an event that named it.

    How long an index takes tells how much there is of a name in all projects. So a project that has no such
    machine is read its own records without one.
    """
    if by_index:
        events = select(_NAMED.event_id).where(_NAMED.machine_key == machine_key)
        return or_(_R.machine_key == machine_key, _R.event_id.in_(events))
    # No index has these expressions.
    named = exists().where(_NAMED.event_id == _R.event_id, _NAMED.machine_key.concat("") == machine_key)
    return or_(_R.machine_key.concat("") == machine_key, named)
