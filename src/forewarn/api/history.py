"""The history: every record of what happened."""

from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from forewarn.api import shapes
from forewarn.api.bodies import LARGEST, HistoryQuery
from forewarn.api.errors import documented
from forewarn.api.paths import event_id, listed, order_id, project_name
from forewarn.api.rights import GuardedRoute
from forewarn.api.services import Service
from forewarn.control.ports.records import HistoryFilter
from forewarn.core.errors import ForewarnError, Invalid
from forewarn.core.words import MachineName
from forewarn.wire import operator

router = APIRouter(route_class=GuardedRoute, tags=["history"])

T = TypeVar("T")


@router.get("/v1/history", summary="List records", response_model=shapes.Records, responses=documented(404))
async def list_records(query: Annotated[HistoryQuery, Query()], service: Service) -> JSONResponse:
    """List what happened, newest first; oldest first after a number, if `above` gives one."""
    wanted, project = _filter(query), project_name(query.project)
    found = await service.run(lambda: service.views.only(project).history(wanted))
    shown = found[: query.limit]
    after = str(shown[-1].number) if len(found) > query.limit else None
    above = query.above
    # Who asks for all from the very first knows of nothing that could be missing.
    missing = await service.run(lambda: service.tail.missing(above)) if above else None
    return listed("records", shown, after, operator.record, missing_up_to=missing)


def _filter(query: HistoryQuery) -> HistoryFilter:
    after = _read("after", query.after, _number)
    return HistoryFilter(
        machine=_read("machine", query.machine, MachineName),
        event=_read("event", query.event, event_id),
        order=_read("order", query.order, order_id),
        kinds=frozenset(kind.value for kind in query.kind),
        since=_read("since", query.since, operator.read_time),
        below=after if query.above is None else None,
        above=max(query.above, after or 0) if query.above is not None else None,
        limit=query.limit + 1,  # one more tells whether there is a next page
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
