"""Rollouts: plan, begin, show, pause, resume and abort them."""

import re
from datetime import datetime
from typing import Annotated, Literal

from forewarn.api.bodies import (
    DAY,
    DEADLINE,
    EXPECTED,
    HEARTBEAT,
    HOST_WORK,
    MODE,
    RETURNING,
    TOGETHER,
    WHOLE,
    OrderBody,
    check_heartbeat,
)
from forewarn.api.inputs import PageQuery, Prepared, RolloutInPath
from forewarn.api.request_fields import FLAG_IN_QUERY, HOST, LARGEST, NAME, free_text, seconds, several, whole
from forewarn.api.request_parts import Body, Query, declared, given, maybe
from forewarn.api.routing import ApiRouter, WithStatus
from forewarn.api.services import CallerName, CallerReading, Service, WholeTx
from forewarn.control.rollouts.rollout_views import RolloutPlan, RolloutRequest, RolloutView
from forewarn.core.basic_types import EXTERNAL, HostName, RolloutAction, ServiceMode
from forewarn.core.errors import Invalid
from forewarn.core.model.rollout import NO_FAILURE, FailureLimit, RolloutTerms
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.rollout_answers import RolloutAnswer
from forewarn.wire.fields import Field, choice, flag
from forewarn.wire.texts import shown

router = ApiRouter("rollouts")

_LIST = several(HOST)
# None: all of them.
HOSTS: Field[tuple[HostName, ...] | None] = Field(
    read=lambda value: None if value == "all" else _LIST(value),
    schema={"anyOf": [_LIST.schema, {"type": "string", "const": "all"}]},
)


# A number of hosts, or a share of them, which may have a fraction.
_FAILURE_LIMIT = r"([0-9]{1,6}|([0-9]{1,2}(\.[0-9]{1,3})?|100)%)"


def _failure_limit(value: object) -> FailureLimit:
    text = "" if isinstance(value, bool) or not isinstance(value, int | str) else f"{value}"
    if not re.fullmatch(_FAILURE_LIMIT, text, re.ASCII):
        raise Invalid(f"expected a number of hosts, as 3, or a share of them, as 2%, got {shown(value)}")
    return FailureLimit(amount=float(text.removesuffix("%")), percent=text.endswith("%"))


MAX_FAILURES = Field(
    read=_failure_limit,
    schema={
        "anyOf": [
            {"type": "integer", "minimum": 0, "maximum": 999_999},
            {"type": "string", "pattern": f"^{_FAILURE_LIMIT}$"},
        ]
    },
    write=str,
)


@declared
class RolloutBody(OrderBody):
    """What is to be done to which hosts, and how many of them at once."""

    hosts: tuple[HostName, ...] | None = given(HOSTS, "Which hosts, in this order; all: those not failed.")
    action: RolloutAction = given(choice(tuple(RolloutAction)))
    mode: ServiceMode | None = maybe(MODE[0], f"With service: {MODE[1]}")
    returning: bool = given(RETURNING[0], f"With service: {RETURNING[1]}", default=False)
    host_work: str | None = maybe(HOST_WORK[0], f"With service: {HOST_WORK[1]}")
    hosts_at_once: int = given(
        whole(minimum=1, maximum=1_000_000), "How many hosts a wave has at most.", default=1
    )
    gap_seconds: float = given(
        seconds(minimum=0, maximum=30 * DAY), "From the end of a wave to the next announcement.", default=0
    )
    driver: str | None = maybe(NAME, "Who does the work; left out: as each host declares it.")
    heartbeat_seconds: float | None = maybe(*HEARTBEAT)
    deadline: datetime | None = maybe(*DEADLINE)
    expected_seconds: float | None = maybe(*EXPECTED)
    health_seconds: float = given(
        seconds(exclusiveMinimum=0, maximum=30 * DAY),
        "How long after its work a machine may take to be healthy.",
        default=1800,
    )
    require_poll: bool = given(
        flag, "A machine that polled before is healthy when it has polled again.", default=False
    )
    canary: int = given(
        whole(minimum=0, maximum=1_000_000),
        "So many of the hosts come first, and apart from all others.",
        default=0,
    )
    soak_seconds: float = given(
        seconds(minimum=0, maximum=30 * DAY),
        "How long the others wait once the canaries are done.",
        default=0,
    )
    max_failures: FailureLimit = given(
        MAX_FAILURES,
        "How many hosts may fail, and are left out, before it pauses: 3, or 2%.",
        default=NO_FAILURE,
    )
    whole: bool = given(*WHOLE, default=False)
    together: str | None = maybe(*TOGETHER)
    overlap: bool = given(
        flag,
        "Begin even if another rollout has some of the hosts still to do: each waits for the other there.",
        default=False,
    )
    dry_run: bool = given(flag, "Only show the plan.", default=False)

    def request(self, by: str) -> RolloutRequest:
        """Return what is asked for, and by whom."""
        outside = EXTERNAL if self.host_work == EXTERNAL else self.driver
        check_heartbeat(self.heartbeat_seconds, outside)
        terms = self.asked(RolloutTerms, host_driver=self.host_work)
        return self.asked(RolloutRequest, hosts=self.hosts, work=self.action.work, terms=terms, by=by)


@declared
class ResumeBody(Body):
    """What the caller has seen of the rollout."""

    version: int | None = maybe(
        whole(minimum=1, maximum=LARGEST), "The version that was seen; 409 if it has changed since."
    )


@declared
class PauseBody(ResumeBody):
    """Why, and what the caller has seen of the rollout."""

    reason: str = given(free_text(), "Why, for the records.", default="")


@declared
class RolloutsQuery(PageQuery):
    """Which rollouts."""

    open: bool = given(FLAG_IN_QUERY, "Only those that are not over.", default=False)


@declared
class RolloutQuery(Query):
    """What to show of a rollout."""

    expected: bool = given(FLAG_IN_QUERY, "With the times to be expected of coming waves.", default=False)


def _plan_rollout(body: RolloutBody, reads: CallerReading, caller: CallerName) -> WithStatus[RolloutAnswer]:
    return WithStatus(_shown(reads.fleet.rollouts.plan(body.request(caller))), 200)


def _prepare_rollout(body: RolloutBody, reads: CallerReading, caller: CallerName) -> RolloutPlan | None:
    return reads.fleet.rollouts.prepare(body.request(caller))


PreparedPlan = Annotated[RolloutPlan | None, Prepared()]


@router.call(
    "POST /v1/rollouts",
    "Roll maintenance over hosts, or show how that would be",
    status=202,
    errors=(404, 409, 413),
    also={200: "The plan."},
    dry_run=_plan_rollout,
    prepare=_prepare_rollout,
)
def begin_rollout(
    body: RolloutBody, service: Service, tx: WholeTx, caller: CallerName, plan: PreparedPlan
) -> RolloutAnswer:
    """Begin a rollout; a dry run answers 200 with the whole plan, and nothing happens.

    409 that names the first, if another rollout has some of the hosts still to do.
    """
    return _shown(service.fleet.rollouts.begin(tx, body.request(caller), plan))


@router.call("GET /v1/rollouts", "List rollouts")
def list_rollouts(query: RolloutsQuery, reads: CallerReading) -> Page[RolloutAnswer]:
    """List rollouts, newest first, open or over."""
    found, after = reads.fleet.rollouts.rollouts(after=query.after, limit=query.limit, only_open=query.open)
    return Page(kind=RolloutAnswer, items=[_shown(each) for each in found], next=after)


@router.call("GET /v1/rollouts/{id}", "Show a rollout", errors=(404,))
def show_rollout(id: RolloutInPath, reads: CallerReading, query: RolloutQuery) -> RolloutAnswer:
    """Show a rollout: its waves, and why everything that is not begun waits."""
    return _shown(reads.fleet.rollouts.rollout(id, expected=query.expected))


@router.call("POST /v1/rollouts/{id}/resume", "Go on with a paused rollout", errors=(404, 409, 413))
def resume_rollout(
    id: RolloutInPath, service: Service, tx: WholeTx, caller: CallerName, body: ResumeBody | None = None
) -> RolloutAnswer:
    """Resume a rollout; what was withdrawn is announced anew with full notice."""
    version = body.version if body else None
    return _shown(service.fleet.rollouts.resume(tx, id, by=caller, version=version))


def _add_stop(verb: Literal["pause", "abort"], summary: str, description: str) -> None:
    @router.call(
        f"POST /v1/rollouts/{{id}}/{verb}",
        summary,
        errors=(404, 409, 413),
        description=description,
        operation_id=f"{verb}_rollout",
    )
    def stop_rollout(
        id: RolloutInPath, service: Service, tx: WholeTx, caller: CallerName, body: PauseBody | None = None
    ) -> RolloutAnswer:
        asked = body or PauseBody()
        stop = service.fleet.rollouts.pause if verb == "pause" else service.fleet.rollouts.abort
        return _shown(stop(tx, id, by=caller, reason=asked.reason, version=asked.version))


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


def _shown(view: RolloutView) -> RolloutAnswer:
    return RolloutAnswer.of(
        view.rollout,
        waiting=view.waiting,
        drivers=view.drivers,
        expected=view.expected,
        warnings=view.warnings,
        emptying=view.emptying,
    )
