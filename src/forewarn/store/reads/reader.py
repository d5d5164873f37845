"""What every part of a snapshot builds on: one connection, inside one transaction."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, Executable, Select, bindparam, select
from sqlalchemy.sql.elements import ColumnElement, KeyedColumnElement

from forewarn.core.model.group import Group
from forewarn.core.model.hold import Grace
from forewarn.core.retention import Pruning
from forewarn.core.words import GroupName, ProjectName
from forewarn.store import tables
from forewarn.store.rows.fleet_rows import GROUP_COLUMNS, Kept, group_of
from forewarn.store.rows.times import moment, moment_or_none

# SQLite takes 32,766 variables in a statement and PostgreSQL 65,535; shorter ones are as fast.
_MOST_KEYS = 5_000

Key = TypeVar("Key")

_META = select(tables.meta)
VERSIONED_GROUP = (*GROUP_COLUMNS, tables.groups.c.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """What is kept of the store as a whole."""

    number: int
    reached: datetime | None
    grace: Grace | None
    applied_fleet: str | None
    lineage: str
    pruning: Pruning


def among(columns: Sequence[ColumnElement[Any]], column: KeyedColumnElement[Any]) -> Select[Any]:
    """Select the rows whose column is one of the keys that are given when it is run."""
    return select(*columns).where(column.in_(bindparam("keys", expanding=True)))


def chunks(keys: Iterable[Key]) -> Iterator[list[Key]]:
    """Cut keys into lists that a statement can take."""
    rest = iter(keys)
    while chunk := list(islice(rest, _MOST_KEYS)):
        yield chunk


class Reader:
    """A consistent view of the store; it remembers which version of each group was read."""

    def __init__(
        self, connection: Connection, *, lock: bool = False, project: ProjectName | None = None
    ) -> None:
        """Read on a connection: as one project sees things, or all of them."""
        self._connection = connection
        self._project = project
        self._versions: dict[GroupName, int] = {}
        self._known_meta = self._load_meta(lock=True) if lock else None

    @property
    def _meta(self) -> Meta:
        if self._known_meta is None:
            self._known_meta = self._load_meta(lock=False)
        return self._known_meta

    def _load_meta(self, *, lock: bool) -> Meta:
        # SQLite knows no row locks and needs none: its writers have begun with BEGIN IMMEDIATE.
        row = self._connection.execute(_META.with_for_update() if lock else _META).one()
        grace = None
        if row.grace_until is not None:
            grace = Grace(until=moment(row.grace_until), announced_before=moment(row.grace_announced_before))
        return Meta(
            number=row.number,
            reached=moment_or_none(row.reached),
            grace=grace,
            applied_fleet=row.applied_fleet,
            lineage=row.lineage,
            pruning=Pruning(up_to=row.pruned, unsaid=row.pruned_unsaid, next_at=moment_or_none(row.prune_at)),
        )

    def _mine(self, query: Select[Any], project: ColumnElement[Any]) -> Select[Any]:
        """Leave out what is not the project's that this is read for, by the column that says whose it is."""
        return query if self._project is None else query.where(project == self._project)

    def _all(self, query: Executable, values: Mapping[str, Any] | None = None) -> Sequence[Kept]:
        return self._connection.execute(query, values).all()

    def _among(self, query: Select[Any], keys: Iterable[str]) -> Iterator[Kept]:
        """Run an `among` query; no keys, no query."""
        for chunk in chunks(keys):
            yield from self._all(query, {"keys": chunk})  # at once: one by one takes longer

    def _groups_of(self, rows: Iterable[Kept]) -> list[Group]:
        """Read groups, and remember their versions for compare-and-set."""
        found = []
        for *columns, version in rows:
            group = group_of(columns)
            self._versions[group.name] = version
            found.append(group)
        return found
