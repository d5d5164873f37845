"""What happened and what is coming: the history, what became of promises, and a calendar of events."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

from starlette.responses import Response

from forewarn.api.inputs import ListQuery, event_id, order_id
from forewarn.api.request_fields import (
    GROUP,
    GUID,
    HOST,
    LARGEST,
    LINE,
    MACHINE,
    PROJECT,
    TIME,
    one_of,
    several,
    whole_in_query,
)
from forewarn.api.request_parts import Query, declared, given, maybe
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerReading, KnownCaller, Service, Services
from forewarn.control.all_use_cases import CallerReads
from forewarn.control.history_search import FoundRecords, RecordSearch
from forewarn.core.access import Right
from forewarn.core.basic_types import GroupName, HostName, Kind, MachineName, ProjectName
from forewarn.core.errors import ForewarnError, Invalid
from forewarn.core.filters import HistoryFilter
from forewarn.core.model.record import Record
from forewarn.wire import icalendar
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.record_answers import PromiseAnswer, RecordAnswer, RecordsAnswer
from forewarn.wire.fields import Field
from forewarn.wire.texts import shown

router = ApiRouter("history")

T = TypeVar("T")

# 10,000 records, of a project's people 2,000: a fraction of a second, during which others are served.
MOST_BATCHES = 20


@declared
class HistoryQuery(ListQuery):
    """Which records."""

    machine: MachineName | None = maybe(MACHINE, "Only of this machine.")
    event: str | None = maybe(GUID, "Only of this event.")
    order: str | None = maybe(GUID, "Only of this order.")
    group: GroupName | None = maybe(GROUP, "Only of this group.")
    host: HostName | None = maybe(HOST, "Only of this host.")
    by: str | None = maybe(LINE, "Only what this person, guest or service did, as `by` shows it.")
    text: str | None = maybe(
        LINE, "Only those with this text, in any case, in a name, reason, kind or id as they are shown."
    )
    kind: tuple[Kind, ...] = given(several(one_of(Kind)), "Only of these kinds.", default=())
    since: datetime | None = maybe(
        TIME, "Only from this time on (RFC 3339); a record's number is given by `above`."
    )
    until: datetime | None = maybe(TIME, "Only from before this time.")
    above: int | None = maybe(
        whole_in_query(minimum=0, maximum=LARGEST), "Only after this number, and oldest first; 0 for all."
    )


@router.call("GET /v1/history", "List records", right=Right.SEE, errors=(404,))
async def show_history(query: HistoryQuery, service: Service) -> RecordsAnswer:
    """List what happened, newest first; oldest first after a number, if `above` gives one.

    With `text` or `by` records are looked through one after another, 10,000 in a call at most (2,000 for the
    people of a project): a page may have fewer than `limit`, or none, and `next` is still where to go on.
    """
    wanted = _filter(query)
    search = RecordSearch(text=query.text or "", by=query.by or "")
    shown, after = await (_searched if search else _listed)(service, query, wanted, search)
    above = query.above
    # Who asks for all from the very first knows of nothing that could be missing.
    missing = await service.read(lambda reads: reads.records.missing(above)) if above else None
    return RecordsAnswer(
        records=tuple(map(RecordAnswer.of, shown)),
        next=None if after is None else str(after),
        missing_up_to=missing,
    )


async def _listed(
    service: Services, query: HistoryQuery, wanted: HistoryFilter, _: RecordSearch
) -> tuple[Sequence[Record], int | None]:
    """Return a page of records, and the number after which to go on."""
    found = await service.read(lambda reads: reads.narrowed(query.project).views.history(wanted))
    shown = found[: query.limit]
    return shown, shown[-1].number if len(found) > query.limit else None


async def _searched(
    service: Services, query: HistoryQuery, wanted: HistoryFilter, search: RecordSearch
) -> tuple[Sequence[Record], int | None]:
    """Return the same of those that are found, a batch at a time: others have their turn in between."""
    found: list[Record] = []
    reached: int | None = None
    for _ in range(MOST_BATCHES):
        batch = await service.read(partial(_search, query.project, wanted, search))
        found += batch.records
        if len(found) > query.limit:
            return found[: query.limit], found[query.limit - 1].number
        reached = batch.reached
        if not batch.more or reached is None:
            return found, None
        wanted = wanted.after(reached)
    return found, reached


def _search(
    project: ProjectName | None, wanted: HistoryFilter, search: RecordSearch, reads: CallerReads
) -> FoundRecords:
    return reads.narrowed(project).views.search(wanted, search)


def _filter(query: HistoryQuery) -> HistoryFilter:
    after = _read("after", query.after, _number)
    return HistoryFilter(
        machine=query.machine,
        event=_read("event", query.event, event_id),
        order=_read("order", query.order, order_id),
        kinds=frozenset(kind.value for kind in query.kind),
        group=query.group,
        host=query.host,
        since=query.since,
        until=query.until,
        below=after if query.above is None else None,
        above=max(query.above, after or 0) if query.above is not None else None,
        limit=query.limit + 1,  # one more shows whether there is a next page
    )


def _read(name: str, text: str | None, reader: Callable[[str], T]) -> T | None:
    """Read a query parameter, naming it if it is refused."""
    try:
        return None if text is None else reader(text)
    except ForewarnError as error:
        raise Invalid(f"{name}: {error}") from None


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text[:20]) > LARGEST:
        raise Invalid(f"expected the `next` of the page before, got {text!r}")
    return int(text)


promise_router = ApiRouter("promises")

_MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")


def _month(value: object) -> str:
    text = LINE.read(value)
    if not _MONTH.fullmatch(text):
        raise Invalid(f"expected a month such as 2026-11, got {shown(value)}")
    return text


MONTH = Field(read=_month, schema={"type": "string", "pattern": f"^{_MONTH.pattern}$"})


@declared
class PromisesQuery(ListQuery):
    """Which promises."""

    month: str | None = maybe(MONTH, "Only of this month, in UTC, as 2026-11.")


@promise_router.call("GET /v1/promises", "List what became of promises", right=Right.SEE, errors=(404,))
def list_promises(query: PromisesQuery, reads: CallerReading) -> Page[PromiseAnswer]:
    """List by project and month how many machines got their notice in time, late or never.

    `broken` counts the records of kind `promise-broken`, `unannounced` those of `unannounced-impact`. What
    was simulated, also in a rehearsal, is counted apart. These counts stay when old records are removed.
    """
    found, after = reads.narrowed(query.project).views.promises(
        month=query.month, after=query.after, limit=query.limit
    )
    return Page(kind=PromiseAnswer, items=[PromiseAnswer.like(each) for each in found], next=after)


calendar_router = ApiRouter("events")


@declared
class CalendarQuery(Query):
    """Whose events."""

    project: ProjectName | None = maybe(PROJECT, "Only of this project; left out: all you may see.")


class CalendarResponse(Response):
    """An iCalendar file."""

    media_type = "text/calendar"


@calendar_router.call("GET /v1/calendar.ics", "Subscribe to coming events", right=Right.SEE, errors=(404,))
def show_calendar(query: CalendarQuery, reads: CallerReading, caller: KnownCaller) -> CalendarResponse:
    """Write the current events of a project, or all that the caller may see, as an iCalendar feed."""
    coming = reads.narrowed(query.project).views.coming()
    whose = query.project or caller.project
    name = "forewarn" if whose is None else f"forewarn: {whose}"
    return CalendarResponse(icalendar.calendar(name, ((each.event, each.deferrals) for each in coming)))
