"""Holds: show, set and lift what keeps anything new from being announced or started."""

from forewarn.api.declared import Body, declared, given, maybe
from forewarn.api.queries import HoldInPath
from forewarn.api.request_fields import HOST, PROJECT, line
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerName, Service
from forewarn.core.errors import Invalid
from forewarn.core.orders.requests import OrderRequest
from forewarn.core.words import HostName, ProjectName
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.service_answers import HoldAnswer

router = ApiRouter("holds")


@declared
class HoldBody(Body):
    """Where nothing new is to be announced or started; neither project nor host: anywhere."""

    reason: str = given(line(least=1), "Why, shown everywhere.")
    project: ProjectName | None = maybe(PROJECT)
    host: HostName | None = maybe(HOST)


@router.call("GET /v1/holds", "List holds")
async def list_holds(service: Service) -> Page[HoldAnswer]:
    """List what is held, and why, oldest first."""
    found = await service.run(service.fleet.views.holds)
    return Page(kind=HoldAnswer, items=[HoldAnswer.of(hold) for hold in found])


@router.call("POST /v1/holds", "Hold the fleet, a project or a host", status=201, errors=(404, 409, 413))
def set_hold(body: HoldBody, service: Service, caller: CallerName) -> HoldAnswer:
    """Let nothing new be announced or started; polls and approvals go on."""
    if body.project is not None and body.host is not None:
        raise Invalid("the body: expected a project or a host, not both")
    request = body.asked(OrderRequest, by=caller)
    return HoldAnswer.of(service.fleet.hosts.hold(request, project=body.project, host=body.host))


@router.call("POST /v1/holds/{id}/release", "Lift a hold", errors=(404,))
def release_hold(id: HoldInPath, service: Service, caller: CallerName) -> HoldAnswer:
    """Lift a hold; what waited for it goes on."""
    return HoldAnswer.of(service.fleet.hosts.release(id, by=caller))
