"""Holds: show, set and lift what keeps anything new from being announced or started."""

from typing import Annotated

from starlette.responses import JSONResponse

from forewarn.api.inputs import FromRequest, HoldInPath
from forewarn.api.request_fields import HOST, PROJECT, free_text
from forewarn.api.request_parts import Body, declared, given, maybe
from forewarn.api.routing import ApiRouter, WithStatus
from forewarn.api.services import CallerName, CallerReading, Service, WholeTx
from forewarn.control.idempotent_calls import IdempotentResponse, IdempotentCall
from forewarn.core.basic_types import HostName, ProjectName
from forewarn.core.errors import Invalid, Unavailable
from forewarn.core.orders.requests import OrderRequest
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.coding import write_body
from forewarn.wire.answers.service_answers import HoldAnswer
from forewarn.wire.fields import flag

router = ApiRouter("holds")

# The same whether it is saved at once or kept in memory first.
NewHoldId = Annotated[
    str, FromRequest(lambda request: request.app.state.services.fleet.unsaved_holds.new_id())
]


@declared
class HoldBody(Body):
    """Where nothing new is to be announced or started; neither project nor host: anywhere."""

    reason: str = given(free_text(least=1), "Why, shown everywhere.")
    project: ProjectName | None = maybe(PROJECT)
    host: HostName | None = maybe(HOST)
    abort: bool = given(
        flag, "Stop what is under way there too: drivers are asked to call it off.", default=False
    )


def _keep_in_memory(
    call: IdempotentCall | None, *, body: HoldBody, id: str, service: Service, caller: str
) -> WithStatus[HoldAnswer]:
    """Hold all the same while nothing can be saved."""
    unsaved = service.fleet.unsaved_holds
    hold = unsaved.put(
        _request(body, caller), id_=id, project=body.project, host=body.host, abort=body.abort, call=call
    )
    once_saved = JSONResponse(write_body(HoldAnswer.of(hold))).body
    unsaved.set_response(hold, IdempotentResponse(status=201, body=bytes(once_saved)))
    return WithStatus(HoldAnswer.of(hold, saved=False), status=202)


def _lift_in_memory(
    _: IdempotentCall | None, *, id: str, service: Service, caller: str
) -> WithStatus[HoldAnswer] | None:
    """Lift a hold that was never saved; another can only be lifted when something can be saved."""
    unsaved = service.fleet.unsaved_holds
    hold = unsaved.release(id, by=caller)
    if hold is None and (hold := unsaved.find_refused(id)) is not None:
        unsaved.dismiss(hold)
    return None if hold is None else WithStatus(HoldAnswer.of(hold, saved=False), status=202)


@router.call("GET /v1/holds", "List holds")
def list_holds(reads: CallerReading) -> Page[HoldAnswer]:
    """List what is held, and why, oldest first; then holds of memory that could not be kept, with `refused`.

    While the database does not answer, those that are saved are listed as they were known last.
    """
    unsaved = reads.fleet.unsaved_holds
    in_memory = unsaved.in_force  # first: what is saved meanwhile is in one of the two
    found = _saved(reads)
    saved = {hold.id for hold in found}
    only_there = [HoldAnswer.of(hold, saved=False) for hold in in_memory if hold.id not in saved]
    refused = [HoldAnswer.of(each.hold, saved=False, refused=each.why) for each in unsaved.refused]
    return Page(kind=HoldAnswer, items=[*found, *only_there, *refused])


def _saved(reads: CallerReading) -> list[HoldAnswer]:
    try:
        views = reads.fleet.views
        return [HoldAnswer.of(hold, still_running=views.still_running(hold)) for hold in views.holds()]
    except Unavailable:
        return [HoldAnswer.of(hold) for hold in reads.fleet.unsaved_holds.known]


@router.call(
    "POST /v1/holds",
    "Hold the fleet, a project or a host",
    status=201,
    errors=(404, 409, 413),
    also={202: "Held, in memory only: nothing can be saved now."},
    otherwise=_keep_in_memory,
)
def set_hold(body: HoldBody, id: NewHoldId, service: Service, tx: WholeTx, caller: CallerName) -> HoldAnswer:
    """Let nothing new be announced or started; polls and approvals go on.

    With `abort`, what has started there is called off too, as far as drivers can: steps that have not begun
    are dropped, and `still_running` lists what goes on, here and in the list of holds. Machines of a failed
    host are brought back all the same.

    While nothing can be saved the hold is kept in memory, obeyed, and saved before anything else when that
    is possible again: `saved` is false then, and `note` says so. If what it is to hold does not exist or is
    held already, it is refused then: a record says so, and the list of holds.
    """
    request = _request(body, caller)
    hold = service.fleet.hosts.hold(
        tx, request, id_=id, project=body.project, host=body.host, abort=body.abort
    )
    still_running = service.reads_in(tx).fleet.views.still_running(hold)
    return HoldAnswer.of(hold, still_running=still_running)


@router.call(
    "POST /v1/holds/{id}/release",
    "Lift a hold",
    errors=(404,),
    also={202: "Lifted, in memory only: it was never saved."},
    otherwise=_lift_in_memory,
)
def release_hold(id: HoldInPath, service: Service, tx: WholeTx, caller: CallerName) -> HoldAnswer:
    """Lift a hold; what waited for it goes on. One that was refused is not listed any more."""
    unsaved = service.fleet.unsaved_holds
    if (refused := unsaved.find_refused(id)) is not None:
        tx.after_commit(lambda: unsaved.dismiss(refused))
        return HoldAnswer.of(refused, saved=False)
    return HoldAnswer.of(service.fleet.hosts.release(tx, id, by=caller))


def _request(body: HoldBody, caller: str) -> OrderRequest:
    if body.project is not None and body.host is not None:
        raise Invalid("the body: expected a project or a host, not both")
    return body.asked(OrderRequest, by=caller)
