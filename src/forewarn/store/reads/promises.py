"""What guests were promised: when they were first sent events, how often late, and what became of that."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import select

from forewarn.core.basic_types import EventId, Kind, MachineId
from forewarn.core.model.record import MonthlyPromises
from forewarn.core.model.slice import Sent
from forewarn.store import tables
from forewarn.store.reads.reader import Reader, among
from forewarn.store.rows.mapping import Row, moment

_N, _R, _P = tables.notices.c, tables.records.c, tables.promises.c
NOTICES = among(select(_N.event_id, _N.machine_id, _N.sent_at), _N.event_id)
# The history's word, for an event is also deferred together with another one that a guest asked for.
_DEFERRED = among(select(_R.event_id, _R.at), _R.event_id).where(_R.kind == Kind.EVENT_DEFERRED.value)


class NoticeReads(Reader):
    """When machines were first sent events."""

    def first_sent(self, events: Sequence[EventId]) -> Sent:
        """Return when machines were first sent these events, as far as that is saved."""
        found: dict[EventId, dict[MachineId, datetime]] = {}
        known = self._transaction.loaded.notices
        for event, machine, sent_at in self._known_or(known, NOTICES, {event.upper() for event in events}):
            found.setdefault(event, {})[machine] = moment(sent_at)
        return found

    def deferrals(self, events: Sequence[EventId]) -> Mapping[EventId, Sequence[datetime]]:
        """Return when those of these events that were deferred were, first to last."""
        found: dict[EventId, list[datetime]] = {}
        for event, at in self._among(_DEFERRED.order_by(_R.number), {event.upper() for event in events}):
            found.setdefault(event, []).append(moment(at))
        return found


_PROMISES = select(*(column for column in _P))


class PromiseReads(Reader):
    """Promises, counted."""

    def page(
        self, *, month: str | None = None, after: str | None, limit: int
    ) -> tuple[Sequence[MonthlyPromises], str | None]:
        """List what became of promises by project and month: of all months, or of one."""
        query = self._mine(_PROMISES, _P.project)
        if month is not None:
            query = query.where(_P.month == month)
        return self._page(_read, query, (_P.project, _P.month, _P.simulated), after=after, limit=limit)


def _read(row: Row) -> MonthlyPromises:
    return MonthlyPromises(**dict(zip(_P.keys(), row, strict=False)))
