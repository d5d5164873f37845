"""The history, and the feed: all changes after a number."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from sqlalchemy import Column, ColumnElement, Select, exists, func, select, update

from forewarn.core.basic_types import EventId, GroupName
from forewarn.core.feed import Delta
from forewarn.core.filters import Following, HistoryFilter, RecordFilter
from forewarn.core.model.event import Event
from forewarn.core.model.record import Record
from forewarn.core.retention import Pruning
from forewarn.store import tables
from forewarn.store.key_lists import chunks, one_found, one_of
from forewarn.store.reads.open_transaction import Queries
from forewarn.store.reads.statements import about_machine
from forewarn.store.rows.mapping import micros
from forewarn.store.rows.stored import EVENTS, GROUPS, MACHINES, RECORDS, name_key
from forewarn.store.writes.writer import delete_rows

_R, _E, _G, _M = tables.records.c, tables.events.c, tables.groups.c, tables.machines.c
_T = tables.tombstones.c
_HAS_RECORD = exists().where(_R.event_id == _E.id)
# Above every record number.
_BEYOND = 2**63 - 1


class RecordQueries(Queries):
    """Queries for the history."""

    def history(self, wanted: HistoryFilter) -> Sequence[Record]:
        """List records, newest first; if the filter has a lower bound, oldest first."""
        query = self._tx.in_scope(
            RECORDS.select().where(*self._about(wanted), *_naming(wanted), *_within(wanted)), _R.project
        )
        in_order = query.order_by(_R.number.desc() if wanted.above is None else _R.number)
        return self._tx.read_all(RECORDS.read, in_order.limit(wanted.limit))

    def newest(self) -> int:
        """Return the number of the newest change."""
        return self._tx.meta.number

    def pruning(self) -> Pruning:
        """Return how far old records have been removed."""
        return self._tx.meta.pruning

    def following(self, number: int, wanted: RecordFilter, *, limit: int) -> Following:
        """Read records after a number, oldest first."""
        newest = self.newest()
        query = self._tx.in_scope(RECORDS.select().where(*self._after(number, wanted)), _R.project)
        records = tuple(self._tx.read_all(RECORDS.read, query.order_by(_R.number).limit(limit)))
        more = len(records) == limit
        # All records up to the newest were examined, whether or not they passed the filter.
        reached = records[-1].number if more else max(number, newest)
        return Following(records=records, number=reached, more=more)

    def count_following(self, number: int, wanted: RecordFilter) -> int:
        """Count the records after a number."""
        return self._tx.count(
            self._tx.in_scope(select(tables.records).where(*self._after(number, wanted)), _R.project)
        )

    def _after(self, number: int, wanted: RecordFilter) -> Iterator[ColumnElement[bool]]:
        yield _R.number > number
        yield from self._about(wanted)
        if wanted.without:
            yield _R.kind.not_in(sorted(map(str, wanted.without)))

    def _about(self, wanted: HistoryFilter | RecordFilter) -> Iterator[ColumnElement[bool]]:
        if wanted.project is not None:
            yield _R.project == wanted.project
        if wanted.machine is not None:
            key = name_key(wanted.machine)
            yield about_machine(key, by_index=self._tx.may_use_name_index(key))
        if wanted.kinds:
            yield _R.kind.in_(sorted(map(str, wanted.kinds)))


class RecordChanges(RecordQueries):
    """Queries and changes of the history."""

    def remove(self, numbers: Sequence[int]) -> None:
        """Remove records."""
        delete_rows(self._tx, _R.number, numbers)

    def remove_notices(self, events: Collection[EventId]) -> None:
        """Remove the notices and machine names of ended events that have no record left."""
        for chunk in chunks(events):
            forgotten = select(_E.id).where(one_of(_E.id, chunk), _E.ended_at.is_not(None), ~_HAS_RECORD)
            gone = self._tx.connection.execute(forgotten).scalars().all()
            if not gone:
                continue
            delete_rows(self._tx, tables.notices.c.event_id, gone)
            delete_rows(self._tx, tables.event_machines.c.event_id, gone)
            self._tx.connection.execute(
                update(tables.events).where(one_of(_E.id, gone)).values(forgotten=True)
            )

    def set_pruning(self, pruning: Pruning) -> None:
        """Save how far old records have been removed."""
        self._tx.update_meta(pruned=pruning.up_to, pruned_unsaid=pruning.unreported, prune_at=pruning.next_at)


def _naming(wanted: HistoryFilter) -> Iterator[ColumnElement[bool]]:
    if wanted.event is not None:
        yield _R.event_id == wanted.event.upper()
    if wanted.order is not None:
        yield _R.order_id == wanted.order.upper()
    if wanted.group is not None:
        yield _R.group_name == wanted.group
    if wanted.host is not None:
        yield _R.host == wanted.host


def _within(wanted: HistoryFilter) -> Iterator[ColumnElement[bool]]:
    if wanted.since is not None:
        yield _R.number >= _first_since(micros(wanted.since)).scalar_subquery()
    if wanted.until is not None:
        # If no record is that new, all records are older.
        yield _R.number < func.coalesce(_first_since(micros(wanted.until)).scalar_subquery(), _BEYOND)
    if wanted.below is not None:
        yield _R.number < wanted.below
    if wanted.above is not None:
        yield _R.number > wanted.above


def _first_since(at: int) -> Select[tuple[int]]:
    """Find the number of the first record at or after a moment.

    Times grow with the numbers, so a bound on the number avoids a sort by time. If there is no such record,
    the bound is NULL and the comparison finds nothing.
    """
    first = select(func.min(_R.at)).where(_R.at >= at).scalar_subquery()
    return select(func.min(_R.number)).where(_R.at == first)


_EVENTS = EVENTS.select().order_by(_E.number, _E.id)


class FeedQueries(Queries):
    """Queries for boards and relays."""

    def since(self, number: int) -> Delta:
        """Return the changes after a number; everything, if the removals since then were forgotten."""
        whole = number < max(self._tx.meta.forgotten, 1)
        if not whole and number >= self._tx.meta.number:
            return Delta(number=self._tx.meta.number, events={})
        groups, machines, listed = GROUPS.select(), MACHINES.select(), tables.LISTED_EVENT
        if not whole:
            groups, machines = groups.where(_G.changed > number), machines.where(_M.changed > number)
            changed = select(_G.name).where(_G.changed > number)
            listed = one_found(tables.GROUP_OF_LISTED_EVENT, changed)
        found = self._tx.read_all(GROUPS.read, groups)
        events: dict[GroupName, list[Event]] = {group.name: [] for group in found}
        for event in self._tx.read_all(EVENTS.read, _EVENTS.where(listed)):
            events.setdefault(event.group, []).append(event)
        return Delta(
            number=self._tx.meta.number,
            groups=tuple(found),
            events={group: tuple(listed_) for group, listed_ in events.items()},
            machines=tuple(self._tx.read_all(MACHINES.read, machines)),
            removed_groups=() if whole else self._removed("groups", _G.name, after=number),
            removed_machines=() if whole else self._removed("machines", _M.id, after=number),
            whole=whole,
        )

    def lineage(self) -> str:
        """Return the id of this store; a copy that was restored from a backup has another."""
        return self._tx.meta.lineage

    def _removed(self, kind: str, column: Column[Any], *, after: int) -> tuple[Any, ...]:
        """List removed keys, except those that exist again."""
        gone = ~exists().where(column == _T.key)
        query = select(_T.key).where(_T.number > after, _T.kind == kind, gone)
        return tuple(self._tx.connection.scalars(query))
