"""Reports of whoever does the work of an order outside: done, failed, still at it."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from forewarn.api import shapes
from forewarn.api.bodies import FailureBody
from forewarn.api.errors import documented
from forewarn.api.hosts import answered
from forewarn.api.orders import Verb, add_verb
from forewarn.api.paths import Id, order_id
from forewarn.api.rights import GuardedRoute
from forewarn.api.services import Caller, Service

router = APIRouter(route_class=GuardedRoute, tags=["orders"])


VERBS = (
    Verb(
        name="complete",
        summary="Report that the work is done",
        description="Say that all work of an order with an external driver that is under way is done.",
        status=200,
        say=lambda plane, order, by: plane.complete_order(order, by=by),
    ),
    Verb(
        name="heartbeat",
        summary="Report that the work goes on",
        description="Say that work of an order with an external driver goes on; long silence is a failure.",
        status=200,
        say=lambda plane, order, _: plane.heartbeat(order),
    ),
)
for _verb in VERBS:
    add_verb(router, _verb)


@router.post(
    "/v1/orders/{id}/fail",
    summary="Report that the work failed",
    response_model=shapes.OrderWithEvents,
    responses=documented(404, 409, 413),
)
async def fail_order(
    id: Id, service: Service, caller: Caller, body: FailureBody | None = None
) -> JSONResponse:
    """Say that the work of an order with an external driver failed; a person retries or abandons it."""
    wanted, why = order_id(id), (body or FailureBody()).reason
    placed = await service.run(lambda: service.plane.fail_order(wanted, by=caller, why=why))
    return answered(placed, status=200)
