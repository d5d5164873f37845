"""Rollouts: plan, begin, show, pause, resume and abort them."""

from typing import Annotated, Literal

from fastapi import Query

from forewarn.api.bodies import PauseBody, ResumeBody, RolloutBody
from forewarn.api.queries import RolloutInPath, RolloutQuery, RolloutsQuery
from forewarn.api.routing import ApiRouter, WithStatus
from forewarn.api.services import CallerName, Service
from forewarn.control.rollouts.rollouts import RolloutView
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.rollout_answers import RolloutAnswer

router = ApiRouter("rollouts")


@router.call(
    "POST /v1/rollouts",
    "Roll maintenance over hosts, or show how that would be",
    status=202,
    errors=(404, 413),
    also={200: "The plan."},
)
async def begin_rollout(body: RolloutBody, service: Service, caller: CallerName) -> WithStatus[RolloutAnswer]:
    """Begin a rollout; a dry run answers 200 with the whole plan, and nothing happens."""
    request = body.request(caller)
    if body.dry_run:
        return WithStatus(_shown(await service.run(lambda: service.fleet.rollouts.plan(request))), 200)
    return WithStatus(_shown(await service.run(lambda: service.fleet.rollouts.begin(request))), 202)


@router.call("GET /v1/rollouts", "List rollouts")
async def list_rollouts(query: Annotated[RolloutsQuery, Query()], service: Service) -> Page[RolloutAnswer]:
    """List rollouts, newest first, open or over."""
    found, after = await service.run(
        lambda: service.fleet.rollouts.rollouts(after=query.after, limit=query.limit, only_open=query.open)
    )
    return Page(kind=RolloutAnswer, items=[_shown(each) for each in found], next=after)


@router.call("GET /v1/rollouts/{id}", "Show a rollout", errors=(404,))
async def show_rollout(
    id: RolloutInPath, service: Service, query: Annotated[RolloutQuery, Query()]
) -> RolloutAnswer:
    """Show a rollout: its waves, and why everything that is not begun waits."""
    return _shown(await service.run(lambda: service.fleet.rollouts.rollout(id, expected=query.expected)))


@router.call("POST /v1/rollouts/{id}/resume", "Go on with a paused rollout", errors=(404, 409, 413))
async def resume_rollout(
    id: RolloutInPath, service: Service, caller: CallerName, body: ResumeBody | None = None
) -> RolloutAnswer:
    """Resume a rollout; what was withdrawn is announced anew with full notice."""
    version = body.version if body else None
    return _shown(await service.run(lambda: service.fleet.rollouts.resume(id, by=caller, version=version)))


def _add_stop(verb: Literal["pause", "abort"], summary: str, description: str) -> None:
    @router.call(
        f"POST /v1/rollouts/{{id}}/{verb}",
        summary,
        errors=(404, 409, 413),
        description=description,
        operation_id=f"{verb}_rollout",
    )
    async def stop_rollout(
        id: RolloutInPath, service: Service, caller: CallerName, body: PauseBody | None = None
    ) -> RolloutAnswer:
        asked = body or PauseBody()
        stop = service.fleet.rollouts.pause if verb == "pause" else service.fleet.rollouts.abort
        return _shown(
            await service.run(lambda: stop(id, by=caller, reason=asked.reason, version=asked.version))
        )


_add_stop(
    "pause",
    "Withdraw what is announced and not started",
    "Pause a rollout; what has started is finished.",
)
_add_stop(
    "abort",
    "Abandon what has not started",
    "Abort a rollout; what has started is finished first.",
)


def _shown(shown: RolloutView) -> RolloutAnswer:
    return RolloutAnswer.of(
        shown.rollout, waiting=shown.waiting, expected=shown.expected, warnings=shown.warnings
    )
