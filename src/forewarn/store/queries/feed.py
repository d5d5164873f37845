"""The feed: all that changed after some number."""

from typing import Any

from sqlalchemy import Column, exists, select

from forewarn.core.feed import Delta
from forewarn.core.model.event import Event
from forewarn.core.words import GroupName
from forewarn.store import tables
from forewarn.store.key_lists import one_found
from forewarn.store.reads.reader import Reader
from forewarn.store.rows.stored import EVENTS, GROUPS, MACHINES

_G, _M, _E, _T = tables.groups.c, tables.machines.c, tables.events.c, tables.tombstones.c
_EVENTS = EVENTS.select().order_by(_E.number, _E.id)


class FeedQueries(Reader):
    """What boards and relays follow."""

    def since(self, number: int) -> Delta:
        """Read what changed after a number of the feed; all, if it is not known any more what was removed."""
        whole = number < max(self._meta.forgotten, 1)
        if not whole and number >= self._meta.number:
            return Delta(number=self._meta.number, events={})
        groups, machines, listed = GROUPS.select(), MACHINES.select(), tables.LISTED_EVENT
        if not whole:
            groups, machines = groups.where(_G.changed > number), machines.where(_M.changed > number)
            changed = select(_G.name).where(_G.changed > number)
            listed = one_found(tables.GROUP_OF_LISTED_EVENT, changed)
        found = self._list(GROUPS.read, groups)
        events: dict[GroupName, list[Event]] = {group.name: [] for group in found}
        for event in self._list(EVENTS.read, _EVENTS.where(listed)):
            events.setdefault(event.group, []).append(event)
        return Delta(
            number=self._meta.number,
            groups=tuple(found),
            events={group: tuple(listed_) for group, listed_ in events.items()},
            machines=tuple(self._list(MACHINES.read, machines)),
            removed_groups=() if whole else self._removed("groups", _G.name, after=number),
            removed_machines=() if whole else self._removed("machines", _M.id, after=number),
            whole=whole,
        )

    def lineage(self) -> str:
        """Return a text that is this store's alone: a copy restored from a backup has another."""
        return self._meta.lineage

    def _removed(self, kind: str, column: Column[Any], *, after: int) -> tuple[Any, ...]:
        """List what was removed, unless something of that name is there again."""
        gone = ~exists().where(column == _T.key)
        query = select(_T.key).where(_T.number > after, _T.kind == kind, gone)
        return tuple(self._connection.scalars(query))
