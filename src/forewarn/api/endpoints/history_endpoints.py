"""The history: every record of what happened."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from forewarn.api.declared import declared, given, maybe
from forewarn.api.queries import ListQuery, event_id, order_id
from forewarn.api.request_fields import GUID, LARGEST, MACHINE, TIME, one_of, several, whole_in_query
from forewarn.api.routing import ApiRouter
from forewarn.api.services import Service
from forewarn.control.ports.records import HistoryFilter
from forewarn.core.access import Right
from forewarn.core.errors import ForewarnError, Invalid
from forewarn.core.words import Kind, MachineName
from forewarn.wire.answers.record_answers import RecordAnswer, RecordsAnswer

router = ApiRouter("history")

T = TypeVar("T")


@declared
class HistoryQuery(ListQuery):
    """Which records."""

    machine: MachineName | None = maybe(MACHINE, "Only of this machine.")
    event: str | None = maybe(GUID, "Only of this event.")
    order: str | None = maybe(GUID, "Only of this order.")
    kind: tuple[Kind, ...] = given(several(one_of(Kind)), "Only of these kinds.", default=())
    since: datetime | None = maybe(
        TIME, "Only from this time on (RFC 3339); a record's number is given by `above`."
    )
    above: int | None = maybe(
        whole_in_query(minimum=0, maximum=LARGEST), "Only after this number, and oldest first; 0 for all."
    )


@router.call("GET /v1/history", "List records", right=Right.SEE, errors=(404,))
async def show_history(query: HistoryQuery, service: Service) -> RecordsAnswer:
    """List what happened, newest first; oldest first after a number, if `above` gives one."""
    wanted = _filter(query)
    found = await service.run(lambda: service.narrowed(query.project).views.history(wanted))
    shown = found[: query.limit]
    above = query.above
    # Who asks for all from the very first knows of nothing that could be missing.
    missing = await service.run(lambda: service.records.missing(above)) if above else None
    return RecordsAnswer(
        records=tuple(map(RecordAnswer.of, shown)),
        next=str(shown[-1].number) if len(found) > query.limit else None,
        missing_up_to=missing,
    )


def _filter(query: HistoryQuery) -> HistoryFilter:
    after = _read("after", query.after, _number)
    return HistoryFilter(
        machine=query.machine,
        event=_read("event", query.event, event_id),
        order=_read("order", query.order, order_id),
        kinds=frozenset(kind.value for kind in query.kind),
        since=query.since,
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
