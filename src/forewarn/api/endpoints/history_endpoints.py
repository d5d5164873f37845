"""Endpoints of the history, the promises of notice, and the calendar."""

import re
from datetime import datetime
from functools import partial

from starlette.responses import Response

from forewarn.api.inputs import ListQuery
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
    whole_in_query,
)
from forewarn.api.request_models import Query, field, nullable, request_model
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerReading, KnownCaller, Service, Services
from forewarn.control.all_use_cases import CallerReads
from forewarn.control.history_search import FoundRecords, RecordSearch
from forewarn.core.access import Right
from forewarn.core.basic_types import EventId, GroupName, HostName, Kind, MachineName, OrderId, ProjectName
from forewarn.core.errors import Invalid
from forewarn.core.filters import HistoryFilter
from forewarn.core.model.record import Record
from forewarn.wire import icalendar
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.record_answers import PromiseAnswer, RecordAnswer, RecordsAnswer
from forewarn.wire.fields import Field, several
from forewarn.wire.invalid_field import within_field
from forewarn.wire.texts import shown

router = ApiRouter("history")

# 10,000 records, or 2,000 for users of a project, take a fraction of a second. Other requests run in between.
MOST_BATCHES = 20


@request_model
class HistoryQuery(ListQuery):
    """A filter of records."""

    machine: MachineName | None = nullable(MACHINE, "Only records about this machine.")
    event: EventId | None = nullable(GUID, "Only records about this event.")
    order: OrderId | None = nullable(GUID, "Only records about this order.")
    group: GroupName | None = nullable(GROUP, "Only records about this group.")
    host: HostName | None = nullable(HOST, "Only records about this host.")
    by: str | None = nullable(LINE, "Only actions of this person, guest or component.")
    text: str | None = nullable(
        LINE, "Only records with this text in a name, reason, kind or id. Case does not matter."
    )
    kind: tuple[Kind, ...] = field(
        several(one_of(Kind)),
        "Only records of this kind. Repeat the parameter for several kinds.",
        default=(),
    )
    since: datetime | None = nullable(
        TIME, "Only records from this time on (RFC 3339). To give a record's number, use `above`."
    )
    until: datetime | None = nullable(TIME, "Only records before this time (RFC 3339).")
    above: int | None = nullable(
        whole_in_query(minimum=0, maximum=LARGEST),
        "Only records with higher numbers, oldest first. 0: all records.",
    )


@router.call("GET /v1/history", "List records", right=Right.SEE)
async def show_history(query: HistoryQuery, service: Service) -> RecordsAnswer:
    """List records, newest first. With `above`: oldest first.

    A request with `text` or `by` searches at most 10,000 records (2,000 for users of a project). Its page
    may have fewer than `limit` records, or none: continue while `next` is not null.
    """
    wanted, search = _filter(query), RecordSearch(text=query.text or "", by=query.by or "")
    if search:
        found, after = await _searched(service, query, wanted, search)
    else:
        found = await service.read(lambda reads: list(reads.narrowed(query.project).views.history(wanted)))
        after = found[query.limit - 1].number if len(found) > query.limit else None
    above = query.above
    # A caller that asks for all records from the first has missed none.
    missing = await service.read(lambda reads: reads.records.missing(above)) if above else None
    return RecordsAnswer(
        records=tuple(map(RecordAnswer.of, found[: query.limit])),
        next=None if after is None else str(after),
        missing_up_to=missing,
    )


async def _searched(
    service: Services, query: HistoryQuery, wanted: HistoryFilter, search: RecordSearch
) -> tuple[list[Record], int | None]:
    """Search records in batches. Return the matches, and the number after which to continue."""
    found: list[Record] = []
    reached: int | None = None
    for _ in range(MOST_BATCHES):
        batch = await service.read(partial(_search, query.project, wanted, search))
        found += batch.records
        if len(found) > query.limit:
            return found, found[query.limit - 1].number
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
    with within_field("after"):
        after = None if query.after is None else _number(query.after)
    return query.build(
        HistoryFilter,
        project=None,
        kinds=frozenset(kind.value for kind in query.kind),
        below=after if query.above is None else None,
        above=max(query.above, after or 0) if query.above is not None else None,
        limit=query.limit + 1,  # one more tells whether there is a next page
    )


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text[:20]) > LARGEST:
        raise Invalid(f"expected the `next` of the previous page, got {text!r}")
    return int(text)


_MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")


def _month(value: object) -> str:
    text = LINE.read(value)
    if not _MONTH.fullmatch(text):
        raise Invalid(f"expected a month such as 2026-11, got {shown(value)}")
    return text


MONTH = Field(read=_month, schema={"type": "string", "pattern": f"^{_MONTH.pattern}$"})


@request_model
class PromisesQuery(ListQuery):
    """A filter of promises."""

    month: str | None = nullable(MONTH, "Only this month in UTC, such as `2026-11`.")


@router.call("GET /v1/promises", "List promises of notice", right=Right.SEE, tag="promises")
def list_promises(query: PromisesQuery, reads: CallerReading) -> Page[PromiseAnswer]:
    """Return, by project and month, how many machines got their notice in time, late or never.

    Simulated work and rehearsals have counts of their own. The counts stay when old records are deleted.
    """
    found, after = reads.narrowed(query.project).views.promises(
        month=query.month, after=query.after, limit=query.limit
    )
    return Page(kind=PromiseAnswer, items=[PromiseAnswer.like(each) for each in found], next=after)


@request_model
class CalendarQuery(Query):
    """A filter of the calendar."""

    project: ProjectName | None = nullable(
        PROJECT, "Only events of this project. Default: all that you may see."
    )


class CalendarResponse(Response):
    """An iCalendar file."""

    media_type = "text/calendar"


@router.call("GET /v1/calendar.ics", "Subscribe to events", right=Right.SEE, tag="events")
def show_calendar(query: CalendarQuery, reads: CallerReading, caller: KnownCaller) -> CalendarResponse:
    """Return the current events as an iCalendar feed."""
    coming = reads.narrowed(query.project).views.coming()
    whose = query.project or caller.project
    name = "forewarn" if whose is None else f"forewarn: {whose}"
    return CalendarResponse(icalendar.calendar(name, ((each.event, each.deferrals) for each in coming)))
