"""Rehearsals: whose guests have a part in one, what they meet, and what they have done."""

from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from forewarn.api import shapes
from forewarn.api.bodies import FaultBody, RehearsalBody, RehearsalQuery
from forewarn.api.errors import documented
from forewarn.api.paths import Name, known_name
from forewarn.api.rights import GuardedRoute
from forewarn.api.services import Caller, Service
from forewarn.control.rehearsals.ledger import Account
from forewarn.control.rehearsals.rehearsals import Rehearsal, RehearsalView
from forewarn.core.errors import Invalid
from forewarn.core.rehearsal.faults import Fault
from forewarn.core.words import ProjectName
from forewarn.wire import operator
from forewarn.wire.operator import read_time, time, time_or_null

router = APIRouter(route_class=GuardedRoute, tags=["rehearsals"])

PATH = "/v1/projects/{name}/rehearsal"


@router.get(PATH, summary="Show a rehearsal", response_model=shapes.OneRehearsal, responses=documented(404))
async def show_rehearsal(name: Name, service: Service) -> JSONResponse:
    """Show what is being played in a project, and what the guests have done so far."""
    project = _project(name)
    return JSONResponse(_shown(await service.run(lambda: service.rehearsals.show(project))))


@router.put(
    PATH,
    summary="Begin a rehearsal, or go on with it",
    response_model=shapes.OneRehearsal,
    responses=documented(404, 409, 413),
)
async def play_rehearsal(name: Name, body: RehearsalBody, service: Service, caller: Caller) -> JSONResponse:
    """Give guests of a project for rehearsals a part; ends by itself unless it is said again within 30 s."""
    project = _project(name)
    wanted = Rehearsal(
        id=body.id,
        scenario=body.scenario,
        machines=tuple(body.machines),
        faults=tuple(_fault(each, f"faults.{place}") for place, each in enumerate(body.faults)),
    )
    return JSONResponse(
        _shown(await service.run(lambda: service.rehearsals.play(project, wanted, by=caller)))
    )


@router.delete(
    PATH, summary="End a rehearsal", response_model=shapes.EndedRehearsal, responses=documented(404)
)
async def end_rehearsal(
    name: Name, query: Annotated[RehearsalQuery, Query()], service: Service, caller: Caller
) -> JSONResponse:
    """Answer all guests as ever again, and call off what was ordered and has not begun."""
    project = _project(name)
    ended = await service.run(lambda: service.rehearsals.end(project, only=query.id, by=caller))
    return JSONResponse({**_shown(ended), "called_off": list(ended.called_off)})


def _project(name: str) -> ProjectName:
    return ProjectName(known_name(name, "project"))


def _fault(body: FaultBody, where: str) -> Fault:
    return Fault(
        number=body.number,
        kind=body.kind,
        machines=tuple(body.machines),
        since=_moment(body.since, f"{where}.since"),
        until=_moment(body.until, f"{where}.until"),
        calls=body.calls,
        delay=timedelta(seconds=body.delay_seconds),
        notice=timedelta(seconds=body.notice_seconds),
    )


def _moment(text: str | None, where: str) -> datetime | None:
    try:
        return None if text is None else read_time(text)
    except Invalid as refusal:
        raise Invalid(f"{where}: {refusal}") from None


def _shown(view: RehearsalView) -> dict[str, Any]:
    shown = {
        "id": view.rehearsal.id,
        "scenario": view.rehearsal.scenario,
        "by": view.by,
        "begun_at": time(view.begun_at),
        "faults": [{**operator.fault(each), "on": each.on(view.now)} for each in view.rehearsal.faults],
        "guests": [_guest(account) for account in view.accounts],
    }
    return {"rehearsal": shown}


def _guest(account: Account) -> dict[str, Any]:
    return {
        "machine": account.machine,
        "polls": account.polls,
        "spoiled": account.spoiled,
        "meets": account.meets,
        "first_poll": time_or_null(account.first_poll),
        "last_poll": time_or_null(account.last_poll),
        "last_sound": time_or_null(account.last_sound),
        "seen": [
            {"event": event, "at": time(sighting.at), "what": sighting.what}
            for event, sighting in account.seen.items()
        ],
        "listed": list(account.listed),
        "approved": [{"event": event, "at": time(at)} for event, at in account.approved.items()],
    }
