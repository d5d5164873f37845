"""The parts of orders and events that are kept as JSON inside their rows."""

from collections.abc import Iterable
from typing import Any

from forewarn.core.model.event import Approval, Resource
from forewarn.core.model.order import Stage, Step
from forewarn.core.model.waiting import Waiting
from forewarn.core.words import ApprovedBy, StageState, StepState
from forewarn.store.rows.times import (
    micros,
    micros_or_none,
    moment,
    moment_or_none,
)

Json = list[dict[str, Any]]


def stages_json(stages: Iterable[Stage]) -> Json:
    """Write stages as JSON."""
    return [
        {
            "state": stage.state.value,
            "started_at": micros_or_none(stage.started_at),
            "steps": [_step_json(step) for step in stage.steps],
        }
        for stage in stages
    ]


def stages_of(json: Json) -> tuple[Stage, ...]:
    """Read stages from JSON."""
    return tuple(
        Stage(
            state=StageState(stage["state"]),
            started_at=moment_or_none(stage["started_at"]),
            steps=tuple(_step_of(step) for step in stage["steps"]),
        )
        for stage in json
    )


def _step_json(step: Step) -> dict[str, Any]:
    return {
        "machine": step.machine,
        "name": step.name,
        "group": step.group,
        "domain": step.update_domain,
        "state": step.state.value,
        "attempt": step.attempt,
        "target": step.target,
        "begun_at": micros_or_none(step.begun_at),
        "look_at": micros_or_none(step.look_at),
        "ended_at": micros_or_none(step.ended_at),
        "why": step.why,
    }


def _step_of(json: dict[str, Any]) -> Step:
    return Step(
        machine=json["machine"],
        name=json["name"],
        group=json["group"],
        update_domain=json["domain"],
        state=StepState(json["state"]),
        attempt=json["attempt"],
        target=json["target"],
        begun_at=moment_or_none(json["begun_at"]),
        look_at=moment_or_none(json["look_at"]),
        ended_at=moment_or_none(json["ended_at"]),
        why=json["why"],
    )


def waiting_json(waiting: Iterable[Waiting]) -> Json:
    """Write reasons to wait as JSON."""
    return [
        {"what": wait.what, "reason": wait.reason, "group": wait.group}
        | ({"stuck": True} if wait.stuck else {})
        | ({"until": micros(wait.until)} if wait.until else {})
        for wait in waiting
    ]


def waiting_of(json: Json) -> tuple[Waiting, ...]:
    """Read reasons to wait from JSON."""
    return tuple(
        Waiting(
            what=wait["what"],
            reason=wait["reason"],
            group=wait["group"],
            stuck=wait.get("stuck", False),
            until=moment_or_none(wait.get("until")),
        )
        for wait in json
    )


def resources_json(resources: Iterable[Resource]) -> Json:
    """Write the machines named in an event as JSON."""
    return [{"machine": resource.machine, "name": resource.name} for resource in resources]


def resources_of(json: Json) -> tuple[Resource, ...]:
    """Read the machines named in an event from JSON."""
    return tuple(Resource(machine=resource["machine"], name=resource["name"]) for resource in json)


def approvals_json(approvals: Iterable[Approval]) -> Json:
    """Write approvals as JSON."""
    return [
        {
            "by": approval.by,
            "kind": approval.kind.value,
            "at": micros(approval.at),
            "address": approval.address,
        }
        for approval in approvals
    ]


def approvals_of(json: Json) -> tuple[Approval, ...]:
    """Read approvals from JSON."""
    return tuple(
        Approval(
            by=approval["by"],
            kind=ApprovedBy(approval["kind"]),
            at=moment(approval["at"]),
            address=approval["address"],
        )
        for approval in json
    )
