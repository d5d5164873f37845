"""Rollouts: plan, begin, show, pause, resume and abort them."""

from datetime import timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from forewarn.api import shapes
from forewarn.api.bodies import PauseBody, ResumeBody, RolloutBody, RolloutQuery, RolloutsQuery
from forewarn.api.errors import documented
from forewarn.api.paths import Id, listed, rollout_id
from forewarn.api.rights import GuardedRoute
from forewarn.api.services import Caller, Service
from forewarn.api.terms import rollout_terms_of
from forewarn.control.rollouts.rollouts import RolloutRequest, Shown
from forewarn.core.words import HostName, Work
from forewarn.wire import rollouts

router = APIRouter(route_class=GuardedRoute, tags=["rollouts"])


@router.post(
    "/v1/rollouts",
    summary="Roll maintenance over hosts, or show how that would be",
    status_code=202,
    response_model=shapes.OneRollout,
    responses={**documented(404, 413), 200: {"model": shapes.OneRollout, "description": "The plan."}},
)
async def begin_rollout(body: RolloutBody, service: Service, caller: Caller) -> JSONResponse:
    """Begin a rollout; a dry run answers 200 with the whole plan, and nothing happens."""
    request = RolloutRequest(
        hosts=None if body.hosts == "all" else tuple(HostName(host) for host in body.hosts),
        work=Work(body.action),
        hosts_at_once=body.hosts_at_once,
        gap=timedelta(seconds=body.gap_seconds),
        terms=rollout_terms_of(body),
        by=caller,
        reason=body.reason,
    )
    if body.dry_run:
        return _answered(await service.run(lambda: service.rollouts.plan(request)), status=200)
    return _answered(await service.run(lambda: service.rollouts.begin(request)), status=202)


@router.get("/v1/rollouts", summary="List rollouts", response_model=shapes.Rollouts, responses=documented())
async def list_rollouts(query: Annotated[RolloutsQuery, Query()], service: Service) -> JSONResponse:
    """List rollouts, newest first, open or over."""
    found, after = await service.run(
        lambda: service.rollouts.rollouts(after=query.after, limit=query.limit, only_open=query.open)
    )
    return listed("rollouts", found, after, _shown)


@router.get(
    "/v1/rollouts/{id}",
    summary="Show a rollout",
    response_model=shapes.OneRollout,
    responses=documented(404),
)
async def show_rollout(id: Id, service: Service, query: Annotated[RolloutQuery, Query()]) -> JSONResponse:
    """Show a rollout: its waves, and why everything that is not begun waits."""
    wanted = rollout_id(id)
    found = await service.run(lambda: service.rollouts.rollout(wanted, expected=query.expected))
    return _answered(found, status=200)


@router.post(
    "/v1/rollouts/{id}/resume",
    summary="Go on with a paused rollout",
    response_model=shapes.OneRollout,
    responses=documented(404, 409, 413),
)
async def resume_rollout(
    id: Id, service: Service, caller: Caller, body: ResumeBody | None = None
) -> JSONResponse:
    """Resume a rollout; what was withdrawn is announced anew with full notice."""
    wanted, version = rollout_id(id), body.version if body else None
    found = await service.run(lambda: service.rollouts.resume(wanted, by=caller, version=version))
    return _answered(found, status=200)


def _add_stop(verb: Literal["pause", "abort"], *, summary: str, description: str) -> None:
    @router.post(
        f"/v1/rollouts/{{id}}/{verb}",
        summary=summary,
        description=description,
        operation_id=f"{verb}_rollout",
        response_model=shapes.OneRollout,
        responses=documented(404, 409, 413),
    )
    async def stop_rollout(
        id: Id, service: Service, caller: Caller, body: PauseBody | None = None
    ) -> JSONResponse:
        wanted, said = rollout_id(id), body or PauseBody()
        stop = service.rollouts.pause if verb == "pause" else service.rollouts.abort
        found = await service.run(lambda: stop(wanted, by=caller, reason=said.reason, version=said.version))
        return _answered(found, status=200)


_add_stop(
    "pause",
    summary="Withdraw what is announced and not started",
    description="Pause a rollout; what has started is finished.",
)
_add_stop(
    "abort",
    summary="Give up what has not started",
    description="Abort a rollout; what has started is finished first.",
)


def _answered(shown: Shown, *, status: int) -> JSONResponse:
    return JSONResponse({"rollout": _shown(shown)}, status_code=status)


def _shown(shown: Shown) -> dict[str, object]:
    return rollouts.rollout(
        shown.rollout, waiting=shown.waiting, expected=shown.expected, warnings=shown.warnings
    )
