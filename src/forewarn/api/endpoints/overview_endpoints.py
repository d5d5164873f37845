"""The endpoint that returns everything current at once: the console's first request."""

from typing import TypeVar

from forewarn.api.endpoints.event_endpoints import EventsQuery, list_events
from forewarn.api.endpoints.fleet_endpoints import SummaryQuery, show_summary
from forewarn.api.endpoints.hold_endpoints import list_holds
from forewarn.api.endpoints.host_endpoints import list_drivers, list_hosts
from forewarn.api.endpoints.machine_endpoints import MachinesQuery, list_machines
from forewarn.api.endpoints.order_endpoints import OrdersQuery, list_orders
from forewarn.api.endpoints.project_endpoints import list_groups, list_projects
from forewarn.api.endpoints.rollout_endpoints import RolloutsQuery, list_rollouts
from forewarn.api.inputs import MAX_LIMIT, ListQuery, PageQuery
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerReading, KnownCaller, Service
from forewarn.core.access import Right, may
from forewarn.wire.answers.answer import ApiAnswer, Page
from forewarn.wire.answers.overview_answers import OverviewAnswer
from forewarn.wire.answers.service_answers import ClockAnswer

router = ApiRouter("fleet")

A = TypeVar("A", bound=ApiAnswer)


@router.call("GET /v1/overview", "Show everything current", right=Right.SEE)
def show_overview(service: Service, reads: CallerReading, caller: KnownCaller) -> OverviewAnswer:
    """Return the clock, the summary and all current resources, in the form of their own endpoints.

    A list is null if it has more than 1,000 items, or if the caller may not see it. Read a long list page by
    page from its own endpoint.
    """
    summary = show_summary(SummaryQuery(), reads)
    survey = may(caller, Right.SURVEY)
    page = PageQuery(limit=MAX_LIMIT)
    return OverviewAnswer(
        clock=ClockAnswer.like(service.clock, now=service.clock.now()),
        summary=summary,
        # The count is cheaper than a page of a large fleet.
        machines=_whole(list_machines(MachinesQuery(limit=MAX_LIMIT), reads))
        if summary.machines <= MAX_LIMIT
        else None,
        groups=_whole(list_groups(ListQuery(limit=MAX_LIMIT), reads)),
        projects=_whole(list_projects(page, reads)),
        events=_whole(list_events(EventsQuery(limit=MAX_LIMIT), reads)),
        orders=_whole(list_orders(OrdersQuery(limit=MAX_LIMIT, open=True), reads)),
        hosts=_whole(list_hosts(page, reads)) if survey else None,
        rollouts=_whole(list_rollouts(RolloutsQuery(limit=MAX_LIMIT, open=True), reads)) if survey else None,
        holds=_whole(list_holds(reads)) if survey else None,
        drivers=_whole(list_drivers(reads)) if survey else None,
    )


def _whole(page: Page[A]) -> tuple[A, ...] | None:
    return tuple(page.items) if page.next is None else None
