"""Endpoints of rollouts: plan, begin, show, pause, resume and abort them."""

import re
from typing import Annotated, Literal

from forewarn.api.inputs import PageQuery, PreparedInput, RolloutInPath
from forewarn.api.order_bodies import DAY, DriverFields, OrderBody, ServiceFields, WholeFields
from forewarn.api.request_fields import FLAG_IN_QUERY, HOST, LARGEST, seconds, whole
from forewarn.api.request_models import Body, Query, field, nullable, request_model
from forewarn.api.routing import ApiRouter, WithStatus
from forewarn.api.services import CallerName, CallerReading, Service, WholeTx
from forewarn.control.rollouts.rollout_views import RolloutPlan, RolloutRequest, RolloutView
from forewarn.core.basic_types import EXTERNAL, HostName, RolloutAction
from forewarn.core.errors import Invalid
from forewarn.core.model.rollout import NO_FAILURE, FailureLimit, RolloutTerms
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.rollout_answers import RolloutAnswer
from forewarn.wire.fields import Field, choice, flag, several
from forewarn.wire.texts import shown

router = ApiRouter("rollouts")

_LIST = several(HOST)
# None: all hosts.
HOSTS: Field[tuple[HostName, ...] | None] = Field(
    read=lambda value: None if value == "all" else _LIST(value),
    schema={"anyOf": [_LIST.schema, {"type": "string", "const": "all"}]},
)


# A number of hosts, or a percentage with up to three decimal places.
_FAILURE_LIMIT = r"([0-9]{1,6}|([0-9]{1,2}(\.[0-9]{1,3})?|100)%)"


def _failure_limit(value: object) -> FailureLimit:
    text = "" if isinstance(value, bool) or not isinstance(value, int | str) else f"{value}"
    if not re.fullmatch(_FAILURE_LIMIT, text, re.ASCII):
        raise Invalid(
            f"expected a number of hosts such as 3, or a share of them such as 2%, got {shown(value)}"
        )
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


@request_model
class RolloutBody(ServiceFields, WholeFields, DriverFields):
    """A rollout."""

    hosts: tuple[HostName, ...] | None = field(
        HOSTS, "Hosts in this order, or `all`: every host that has not failed."
    )
    action: RolloutAction = field(choice(tuple(RolloutAction)), "Work on each host.")
    hosts_at_once: int = field(
        whole(minimum=1, maximum=1_000_000), "Maximum number of hosts in a wave.", default=1
    )
    gap_seconds: float = field(
        seconds(minimum=0, maximum=30 * DAY),
        "Pause between the end of a wave and the next announcement.",
        default=0,
    )
    health_seconds: float = field(
        seconds(exclusiveMinimum=0, maximum=30 * DAY),
        "Time that a machine has to become healthy after its work.",
        default=1800,
    )
    require_poll: bool = field(
        flag, "A machine that polled before counts as healthy only after a new poll.", default=False
    )
    canary: int = field(
        whole(minimum=0, maximum=1_000_000),
        "Number of hosts that come first, in waves of their own.",
        default=0,
    )
    soak_seconds: float = field(
        seconds(minimum=0, maximum=30 * DAY), "Pause after the canary hosts.", default=0
    )
    max_failures: FailureLimit = field(
        MAX_FAILURES,
        "Number or share of hosts that may fail before the rollout pauses, such as `3` or `2%`.",
        default=NO_FAILURE,
    )
    overlap: bool = field(
        flag,
        "Begin even if another open rollout includes some of the hosts. On these hosts each rollout waits "
        "for the orders of the other.",
        default=False,
    )
    dry_run: bool = field(flag, "Only return the plan.", default=False)

    def request(self, by: str) -> RolloutRequest:
        """Return the rollout's terms."""
        self.check_heartbeat(EXTERNAL if self.host_work == EXTERNAL else self.driver)
        terms = self.build(RolloutTerms, host_driver=self.host_work)
        return self.build(RolloutRequest, hosts=self.hosts, work=self.action.work, terms=terms, by=by)


@request_model
class ResumeBody(Body):
    """A change of a rollout."""

    version: int | None = nullable(
        whole(minimum=1, maximum=LARGEST),
        "`version` of the rollout that you have seen. If the rollout has changed since then: 409.",
    )


@request_model
class PauseBody(ResumeBody, OrderBody):
    """A change of a rollout, with a reason."""


@request_model
class RolloutsQuery(PageQuery):
    """A filter of rollouts."""

    open: bool = field(FLAG_IN_QUERY, "Only open rollouts.", default=False)


@request_model
class RolloutQuery(Query):
    """How to show a rollout."""

    expected: bool = field(
        FLAG_IN_QUERY,
        "Include the expected times of planned waves. The forecast covers all hosts: do not poll it.",
        default=False,
    )


def _plan_rollout(body: RolloutBody, reads: CallerReading, caller: CallerName) -> WithStatus[RolloutAnswer]:
    return WithStatus(_shown(reads.fleet.rollouts.plan(body.request(caller))), 200)


def _prepare_rollout(body: RolloutBody, reads: CallerReading, caller: CallerName) -> RolloutPlan | None:
    return reads.fleet.rollouts.prepare(body.request(caller))


PreparedPlan = Annotated[RolloutPlan | None, PreparedInput()]


@router.call(
    "POST /v1/rollouts",
    "Begin or plan a rollout",
    status=202,
    also={200: "The plan of a dry run."},
    dry_run=_plan_rollout,
    prepare=_prepare_rollout,
)
def begin_rollout(body: RolloutBody, service: Service, tx: WholeTx, plan: PreparedPlan) -> RolloutAnswer:
    """Roll maintenance over hosts in waves. The hosts of a wave carry no two update domains of one group.

    A dry run returns the plan with its expected times and changes nothing. If another open rollout includes
    some of the hosts, the answer is 409 and names it.
    """
    return _shown(service.fleet.rollouts.begin(tx, body.request(service.by), plan))


@router.call("GET /v1/rollouts", "List rollouts")
def list_rollouts(query: RolloutsQuery, reads: CallerReading) -> Page[RolloutAnswer]:
    """List open and past rollouts, newest first."""
    found, after = reads.fleet.rollouts.rollouts(after=query.after, limit=query.limit, only_open=query.open)
    return Page(kind=RolloutAnswer, items=[_shown(each) for each in found], next=after)


@router.call("GET /v1/rollouts/{id}", "Show a rollout")
def show_rollout(id: RolloutInPath, reads: CallerReading, query: RolloutQuery) -> RolloutAnswer:
    """Return a rollout with its waves, and the reasons why it waits."""
    return _shown(reads.fleet.rollouts.rollout(id, expected=query.expected))


@router.call("POST /v1/rollouts/{id}/resume", "Resume a rollout")
def resume_rollout(
    id: RolloutInPath, service: Service, tx: WholeTx, body: ResumeBody | None = None
) -> RolloutAnswer:
    """Continue a paused rollout. Withdrawn work is announced again with full notice."""
    version = body.version if body else None
    return _shown(service.fleet.rollouts.resume(tx, id, by=service.by, version=version))


def _add_stop(verb: Literal["pause", "abort"], summary: str, description: str) -> None:
    @router.call(
        f"POST /v1/rollouts/{{id}}/{verb}",
        summary,
        description=description,
        operation_id=f"{verb}_rollout",
    )
    def stop_rollout(
        id: RolloutInPath, service: Service, tx: WholeTx, body: PauseBody | None = None
    ) -> RolloutAnswer:
        asked = body or PauseBody()
        stop = service.fleet.rollouts.pause if verb == "pause" else service.fleet.rollouts.abort
        return _shown(stop(tx, id, by=service.by, reason=asked.reason, version=asked.version))


_add_stop(
    "pause",
    "Pause a rollout",
    "Pause a rollout. Work that has not started is withdrawn. Work that has started is finished.",
)
_add_stop(
    "abort",
    "Abort a rollout",
    "End a rollout. Work that has not started is cancelled. Work that has started is finished first.",
)


def _shown(view: RolloutView) -> RolloutAnswer:
    return RolloutAnswer.of(
        view.rollout, view, waiting=view.waiting, drivers=view.drivers, expected=view.expected
    )
