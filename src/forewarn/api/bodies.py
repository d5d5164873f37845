"""What requests may carry: query parameters and bodies, where anything unknown is an error."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from forewarn.core.access import LONGEST_LIFE, Role
from forewarn.core.rehearsal.faults import SHORT_NOTICE, SLOW, FaultKind
from forewarn.core.words import Kind, OrderState
from forewarn.wire.fields import NAME, NAME_RULE, is_name

# As many as a person or a script reads at once; a fleet of any size is read page by page.
DEFAULT_LIMIT = 100
MAX_LIMIT = 1000

# What a column can hold.
LARGEST = 2**63 - 1


# No line breaks and nothing invisible, nor halves of characters, which no database can hold.
_NOT_IN_A_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def _line(text: str) -> str:
    if _NOT_IN_A_LINE.search(text):
        raise ValueError("expected one line without control characters")
    return text


def _name(text: str) -> str:
    if not is_name(text):
        raise ValueError(f"expected a name of {NAME_RULE}")
    return text


Line = Annotated[
    str,
    AfterValidator(_line),
    Field(max_length=1000, json_schema_extra={"pattern": r"^[^\x00-\x1f\x7f-\x9f]*$"}),
]
Name = Annotated[str, AfterValidator(_name), Field(json_schema_extra={"pattern": f"^{NAME.pattern}$"})]
Guid = Annotated[Line, Field(json_schema_extra={"format": "uuid"})]
Time = Annotated[Line, Field(json_schema_extra={"format": "date-time"})]
# Opaque to whoever sends it back.
Cursor = Annotated[Line, Field(json_schema_extra={"pattern": r"^[A-Za-z0-9_-]+$"})]


class Query(BaseModel):
    """Query parameters; an empty one is none."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, given: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in given.items() if value not in ("", [""])}


class PageQuery(Query):
    """Which page of a list."""

    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="How many at most.")
    after: Cursor | None = Field(None, description="The `next` of the page before.")


class ListQuery(PageQuery):
    """Which page of a list, and whose things."""

    project: Name | None = Field(None, description="Only of this project.")


class MachinesQuery(ListQuery):
    """Which machines."""

    group: Name | None = Field(None, description="Only of this group.")
    host: Name | None = Field(None, description="Only on this host.")


class OrdersQuery(ListQuery):
    """Which orders."""

    state: OrderState | None = Field(None, description="Only orders in this state.")


class RolloutsQuery(PageQuery):
    """Which rollouts."""

    open: bool = Field(default=False, description="Only those that are not over.")


class RolloutQuery(Query):
    """What to show of a rollout."""

    expected: bool = Field(default=False, description="With the times to be expected of coming waves.")


class HistoryQuery(ListQuery):
    """Which records."""

    machine: Name | None = Field(None, description="Only of this machine.")
    event: Guid | None = Field(None, description="Only of this event.")
    order: Guid | None = Field(None, description="Only of this order.")
    kind: list[Kind] = Field(default_factory=list, description="Only of these kinds.")
    since: Time | None = Field(
        None, description="Only from this time on (RFC 3339); a record's number is given by `above`."
    )
    above: int | None = Field(
        None, ge=0, le=LARGEST, description="Only after this number, and oldest first; 0 for all."
    )


class StreamQuery(Query):
    """Which records, and from where on."""

    project: Name | None = Field(None, description="Only of this project.")
    machine: Name | None = Field(None, description="Only of this machine.")
    kind: list[Kind] = Field(default_factory=list, description="Only of these kinds.")
    last_event_id: int | None = Field(
        None, ge=0, le=LARGEST, description="As the header, for readers that cannot send it."
    )
    since: int | None = Field(
        None, ge=0, le=LARGEST, description="Only after this record's number; 0 for all."
    )


class ProjectQuery(Query):
    """Whose machine."""

    project: Name | None = Field(None, description="Its project; needed where several have the name.")


class RehearsalQuery(Query):
    """Which rehearsal."""

    id: Name | None = Field(None, description="Only if it is this one; 404 otherwise.")


class CalendarQuery(Query):
    """Whose events."""

    project: Name | None = Field(None, description="Only of this project; left out: all you may see.")


class FleetQuery(Query):
    """How a fleet is applied."""

    dry_run: bool = Field(default=False, description="Only say what would change.")


class Body(BaseModel):
    """A body of JSON."""

    model_config = ConfigDict(extra="forbid", strict=True)


class OrderBody(Body):
    """Why something is ordered."""

    reason: Line = Field("", description="Why, for the records.")


class OperatorOrderBody(OrderBody):
    """What an operator may ask for beside the action."""

    emergency: Line | None = Field(
        None, min_length=1, description="Why the promised notice is not kept; recorded as a broken promise."
    )
    notice_seconds: float | None = Field(
        None, ge=0, le=86400 * 30, description="The notice of an emergency; none if left out."
    )


class HostOrderBody(OperatorOrderBody):
    """Who does the work, and how long they may be silent."""

    driver: Literal["simulated", "external"] | None = Field(
        None, description="external: somebody else does it, and reports."
    )
    heartbeat_seconds: float | None = Field(
        None, gt=0, le=86400, description="How long an external driver may be silent before it has failed."
    )
    rehearsal: Name | None = Field(
        None,
        description="The scenario it is part of; 409 unless all machines concerned are of projects for it.",
    )


DEADLINE = "From then on the windows of projects give way, and guests cannot put it off further (RFC 3339)."

EXPECTED = "How long the work of a stage is expected to take: so much must fit into the windows of projects."


class MaintenanceBody(HostOrderBody):
    """What is to be done to a host's machines."""

    action: Literal["freeze", "reboot", "redeploy"]
    deadline: Time | None = Field(None, description=DEADLINE)
    expected_seconds: float | None = Field(None, gt=0, le=86400 * 7, description=EXPECTED)


class MachineOrderBody(HostOrderBody):
    """Why something is ordered, and on what terms."""

    now: bool = Field(
        default=False,
        description="Do not wait for the guests: the word of the machine's owner is approval enough.",
    )


class FailureBody(Body):
    """Why work outside failed."""

    reason: Line = "failed"


class HoldBody(Body):
    """Where nothing new is to be announced or started; neither project nor host: anywhere."""

    reason: Line = Field(min_length=1, description="Why, shown everywhere.")
    project: Name | None = None
    host: Name | None = None

    @model_validator(mode="after")
    def _one_reach(self) -> "HoldBody":
        if self.project is not None and self.host is not None:
            raise ValueError("expected a project or a host, not both")
        return self


class TokenBody(Body):
    """Who is to be let in, and as what."""

    name: Name = Field(description="What records call whoever uses it.")
    role: Role = Field(strict=False)
    project: Name | None = Field(None, description="A user's, or all that a viewer may see.")
    expires_seconds: float | None = Field(
        None, gt=0, le=LONGEST_LIFE.total_seconds(), description="Left out: never."
    )


class RolloutBody(OrderBody):
    """What is to be done to which hosts, and how many of them at once."""

    hosts: list[Name] | Literal["all"] = Field(
        description="Which hosts, in this order; all: those not failed."
    )
    action: Literal["freeze", "reboot", "redeploy"]
    hosts_at_once: int = Field(1, ge=1, le=1_000_000, description="How many hosts a wave has at most.")
    gap_seconds: float = Field(
        0, ge=0, le=86400 * 30, description="From the end of a wave to the next announcement."
    )
    driver: Literal["simulated", "external"] = Field(
        "simulated", description="external: somebody else does the work of each order, and reports."
    )
    heartbeat_seconds: float | None = Field(
        None, gt=0, le=86400, description="How long an external driver may be silent before it has failed."
    )
    deadline: Time | None = Field(None, description=DEADLINE)
    expected_seconds: float | None = Field(None, gt=0, le=86400 * 7, description=EXPECTED)
    health_seconds: float = Field(
        1800, gt=0, le=86400 * 30, description="How long after its work a machine may take to be healthy."
    )
    require_poll: bool = Field(
        default=False, description="A machine that polled before is healthy when it has polled again."
    )
    dry_run: bool = Field(default=False, description="Only show the plan.")


class ResumeBody(Body):
    """What whoever asks has seen of the rollout."""

    version: int | None = Field(
        default=None, ge=1, le=LARGEST, description="The version that was seen; 409 if it has changed since."
    )


class PauseBody(ResumeBody):
    """Why, and what whoever asks has seen of the rollout."""

    reason: Line = Field(default="", description="Why, for the records.")


class FaultBody(Body):
    """What guests meet instead of the answer that is due, and when."""

    number: int = Field(ge=0, le=LARGEST, description="Tells faults apart; calls are counted by it.")
    kind: Annotated[FaultKind, Field(strict=False)]
    machines: list[Name] = Field(default_factory=list, max_length=1000, description="Whose; none: all.")
    since: Time | None = Field(None, description="Service time (RFC 3339); left out: at once.")
    until: Time | None = Field(None, description="Left out: to the end.")
    calls: int | None = Field(None, ge=1, le=LARGEST, description="Of each machine that it spoils at most.")
    delay_seconds: float = Field(SLOW.total_seconds(), gt=0, le=86400, description="Of a slow answer.")
    notice_seconds: float = Field(
        SHORT_NOTICE.total_seconds(), ge=0, le=86400 * 30, description="Left when a short notice is shown."
    )


class RehearsalBody(Body):
    """What is played, by whose guests, and what these meet."""

    id: Name = Field(description="Made by whoever rehearses, and given again each time.")
    scenario: Name
    machines: list[Name] = Field(min_length=1, max_length=1000, description="Whose guests have a part.")
    faults: list[FaultBody] = Field(default_factory=list, max_length=100)


class AdvanceBody(Body):
    """How far the clock is to be turned."""

    seconds: float = Field(ge=0, allow_inf_nan=False)


class WebhookBody(Body):
    """Where records are to be pushed to."""

    url: Annotated[str, AfterValidator(_line), Field(max_length=2000, json_schema_extra={"format": "uri"})]
    project: Name | None = Field(
        None, description="Only records of this project; left out: all that you may see."
    )
    kinds: list[Annotated[Kind, Field(strict=False)]] = Field(
        default_factory=list, max_length=100, description="Only records of these kinds; none: all."
    )
    secret: Line | None = Field(
        None, description="What signs the calls, `whsec_` and 24 to 64 bytes in base64; left out: made."
    )
