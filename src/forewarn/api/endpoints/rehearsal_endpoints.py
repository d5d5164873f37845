"""Rehearsals: whose guests have a part in one, what they meet, and what they have done."""

from typing import Annotated

from fastapi import Query

from forewarn.api.bodies import RehearsalBody
from forewarn.api.queries import ProjectInPath, RehearsalQuery
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerName, Service
from forewarn.control.rehearsals.ledger import Account
from forewarn.control.rehearsals.rehearsals import RehearsalView
from forewarn.core.access import Right
from forewarn.wire.answers.rehearsal_answers import (
    ApprovedEventAnswer,
    EndedRehearsalAnswer,
    FaultAnswer,
    RehearsalAnswer,
    RehearsingGuestAnswer,
    SeenEventAnswer,
)

router = ApiRouter("rehearsals")

PATH = "/v1/projects/{name}/rehearsal"


@router.call(f"GET {PATH}", "Show a rehearsal", right=Right.SEE, errors=(404,))
async def show_rehearsal(name: ProjectInPath, service: Service) -> RehearsalAnswer:
    """Show what is being played in a project, and what the guests have done so far."""
    return _shown(await service.run(lambda: service.rehearsals.show(name)))


@router.call(f"PUT {PATH}", "Begin a rehearsal, or go on with it", right=Right.USE, errors=(404, 409, 413))
async def play_rehearsal(
    name: ProjectInPath, body: RehearsalBody, service: Service, caller: CallerName
) -> RehearsalAnswer:
    """Give guests of a project for rehearsals a part; it ends by itself unless asked for again in 30 s."""
    wanted = body.rehearsal()
    return _shown(await service.run(lambda: service.rehearsals.play(name, wanted, by=caller)))


@router.call(f"DELETE {PATH}", "End a rehearsal", right=Right.USE, errors=(404,))
async def end_rehearsal(
    name: ProjectInPath, query: Annotated[RehearsalQuery, Query()], service: Service, caller: CallerName
) -> EndedRehearsalAnswer:
    """Answer all guests as ever again, and cancel what was ordered and has not begun."""
    ended = await service.run(lambda: service.rehearsals.end(name, only=query.id, by=caller))
    return EndedRehearsalAnswer(rehearsal=_shown(ended), called_off=tuple(ended.cancelled))


def _shown(view: RehearsalView) -> RehearsalAnswer:
    return RehearsalAnswer.like(
        view.rehearsal,
        view,
        faults=tuple(FaultAnswer.of(fault, now=view.now) for fault in view.rehearsal.faults),
        guests=tuple(map(_guest, view.accounts)),
    )


def _guest(account: Account) -> RehearsingGuestAnswer:
    return RehearsingGuestAnswer.like(
        account,
        seen=tuple(SeenEventAnswer.like(sighting, event=id_) for id_, sighting in account.seen.items()),
        approved=tuple(ApprovedEventAnswer(event=id_, at=at) for id_, at in account.approved.items()),
    )
