"""Endpoints of holds: list, set and release them, also while the database cannot be written."""

from typing import Annotated

from starlette.responses import JSONResponse

from forewarn.api.inputs import HoldInPath, RequestInput
from forewarn.api.request_fields import HOST, PROJECT, free_text
from forewarn.api.request_models import Body, field, nullable, request_model
from forewarn.api.routing import ApiRouter, WithStatus
from forewarn.api.services import CallerReading, Service, WholeTx
from forewarn.control.idempotent_calls import IdempotentCall, IdempotentResponse
from forewarn.core.basic_types import HostName, ProjectName
from forewarn.core.errors import Invalid, Unavailable
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.coding import write_body
from forewarn.wire.answers.service_answers import HoldAnswer
from forewarn.wire.fields import flag

router = ApiRouter("holds")

# A hold has the same id whether it is saved at once or kept in memory first.
NewHoldId = Annotated[
    str, RequestInput(lambda request: request.app.state.services.fleet.unsaved_holds.new_id())
]


@request_model
class HoldBody(Body):
    """A hold. Without a project and a host it applies to the whole fleet."""

    reason: str = field(free_text(least=1), "Why you set the hold. Everything that waits for it shows this.")
    project: ProjectName | None = nullable(PROJECT, "Hold only this project.")
    host: HostName | None = nullable(HOST, "Hold only this host.")
    abort: bool = field(
        flag, "Also stop work that has started: drivers are asked to cancel it.", default=False
    )


def _keep_in_memory(
    call: IdempotentCall | None, *, body: HoldBody, id: str, service: Service
) -> WithStatus[HoldAnswer]:
    unsaved = service.fleet.unsaved_holds
    hold = unsaved.put(
        _request(body, service.by), id_=id, project=body.project, host=body.host, abort=body.abort, call=call
    )
    once_saved = JSONResponse(write_body(HoldAnswer.of(hold))).body
    unsaved.set_response(hold, IdempotentResponse(status=201, body=bytes(once_saved)))
    return WithStatus(HoldAnswer.of(hold, saved=False), status=202)


def _release_in_memory(
    _: IdempotentCall | None, *, id: str, service: Service
) -> WithStatus[HoldAnswer] | None:
    """Release a hold that was never saved. A saved one needs the database."""
    unsaved = service.fleet.unsaved_holds
    hold = unsaved.release(id, by=service.by)
    if hold is None and (hold := unsaved.find_refused(id)) is not None:
        unsaved.dismiss(hold)
    return None if hold is None else WithStatus(HoldAnswer.of(hold, saved=False), status=202)


@router.call("GET /v1/holds", "List holds")
def list_holds(reads: CallerReading) -> Page[HoldAnswer]:
    """List holds, oldest first, then holds that could not be saved, with `refused`.

    While the database does not answer, saved holds are listed as the server last read them.
    """
    unsaved = reads.fleet.unsaved_holds
    in_memory = unsaved.in_force  # read first: a hold that is saved meanwhile is then in both lists
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
    "Set a hold",
    status=201,
    also={202: "The hold is in effect, but only in memory: the database cannot be written."},
    unsaved=_keep_in_memory,
)
def set_hold(body: HoldBody, id: NewHoldId, service: Service, tx: WholeTx) -> HoldAnswer:
    """Stop the announcement and start of work on the fleet, a project or a host.

    Guests can still poll and approve events. Machines of a failed host are still recovered. With `abort`,
    drivers are also asked to cancel work that has started, and steps that have not begun are dropped.
    `still_running` lists the steps that continue, in this answer and in the list of holds.

    While the database cannot be written, the server keeps the hold in memory and obeys it: `saved` is false,
    and `note` explains the consequences. The server saves it before anything else when the database is back.
    If its project or host does not exist or already has a hold, it is refused at that time: a record and the
    list of holds tell why.
    """
    request = _request(body, service.by)
    hold = service.fleet.hosts.hold(
        tx, request, id_=id, project=body.project, host=body.host, abort=body.abort
    )
    still_running = service.reads_in(tx).fleet.views.still_running(hold)
    return HoldAnswer.of(hold, still_running=still_running)


@router.call(
    "POST /v1/holds/{id}/release",
    "Release a hold",
    also={202: "The hold is released. It was only in memory."},
    unsaved=_release_in_memory,
)
def release_hold(id: HoldInPath, service: Service, tx: WholeTx) -> HoldAnswer:
    """Release a hold, so that the work that waits for it continues. A refused hold leaves the list."""
    unsaved = service.fleet.unsaved_holds
    if (refused := unsaved.find_refused(id)) is not None:
        tx.after_commit(lambda: unsaved.dismiss(refused))
        return HoldAnswer.of(refused, saved=False)
    return HoldAnswer.of(service.fleet.hosts.release(tx, id, by=service.by))


def _request(body: HoldBody, by: str) -> OrderRequest:
    if body.project is not None and body.host is not None:
        raise Invalid("the body: expected a project or a host, not both")
    return body.build(OrderRequest, by=by)
