"""The feed: all that changed after some number."""

from typing import Any

from sqlalchemy import ColumnElement, Select, exists, select, true

from forewarn.control.ports.store import Delta
from forewarn.core.model.event import Event
from forewarn.core.words import GroupName
from forewarn.store import tables
from forewarn.store.reads.reader import Reader
from forewarn.store.rows.fleet_rows import (
    GROUP_COLUMNS,
    MACHINE_COLUMNS,
    group_of,
    machine_of,
)
from forewarn.store.rows.work_rows import EVENT_COLUMNS, event_of


class FeedReads(Reader):
    """What boards and relays follow."""

    def since(self, number: int) -> Delta:
        """Read what changed after a number of the feed; 0 reads everything."""
        if number > 0 and number >= self._meta.number:
            return Delta(number=self._meta.number, events={})
        whole = number <= 0
        groups_changed = true() if whole else tables.groups.c.changed > number
        machines_changed = true() if whole else tables.machines.c.changed > number
        groups = [group_of(row) for row in self._all(select(*GROUP_COLUMNS).where(groups_changed))]
        machines = [machine_of(row) for row in self._all(select(*MACHINE_COLUMNS).where(machines_changed))]
        events: dict[GroupName, list[Event]] = {group.name: [] for group in groups}
        for row in self._all(_listed_events(groups_changed, whole=whole)):
            event = event_of(row)
            events.setdefault(event.group, []).append(event)
        return Delta(
            number=self._meta.number,
            groups=tuple(groups),
            events={group: tuple(listed) for group, listed in events.items()},
            machines=tuple(machines),
            removed_groups=() if whole else self._removed("groups", tables.groups.c.name, after=number),
            removed_machines=() if whole else self._removed("machines", tables.machines.c.id, after=number),
        )

    def _removed(self, kind: str, column: ColumnElement[Any], *, after: int) -> tuple[Any, ...]:
        """List what was removed, unless something of that name is there again."""
        tombstones = tables.tombstones.c
        gone = ~exists().where(column == tombstones.key)
        query = select(tombstones.key).where(tombstones.number > after, tombstones.kind == kind, gone)
        return tuple(self._connection.scalars(query))


def _listed_events(groups_changed: ColumnElement[bool], *, whole: bool) -> Select[Any]:
    events = tables.events.c
    query = select(*EVENT_COLUMNS).where(events.ended_at.is_(None)).order_by(events.number, events.id)
    if whole:
        return query
    return query.where(events.group_name.in_(select(tables.groups.c.name).where(groups_changed)))
