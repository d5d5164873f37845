"""The bodies of requests, where anything unknown is an error, and what the rules take them for."""

from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from forewarn.api.field_types import LARGEST, HostField, Line, Name, ProjectField, Time, one_line
from forewarn.control.rehearsals.open_rehearsals import Rehearsal
from forewarn.control.rollouts.rollouts import RolloutRequest
from forewarn.core.access import LONGEST_LIFE, Grant, Role
from forewarn.core.errors import Invalid
from forewarn.core.model.order import OrderTerms
from forewarn.core.model.rollout import RolloutTerms
from forewarn.core.orders.requests import OrderRequest
from forewarn.core.rehearsal.faults import SHORT_NOTICE, SLOW, Fault, FaultKind
from forewarn.core.words import EXTERNAL, SIMULATED, DriverName, Kind, Work


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


T = TypeVar("T", bound=_Dataclass)


class Body(BaseModel):
    """A body of JSON."""

    model_config = ConfigDict(extra="forbid", strict=True)

    def asked(self, kind: type[T], **given: Any) -> T:
        """Make a value of what is given and of the body's fields; `gap_seconds` is the timedelta `gap`."""
        for name, value in self:
            attribute = name.removesuffix("_seconds")
            if value is not None and attribute not in given and attribute in kind.__dataclass_fields__:
                given[attribute] = value if attribute == name else timedelta(seconds=value)
        return kind(**given)


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


Heartbeat = Annotated[
    float | None,
    Field(gt=0, le=86400, description="How long an external driver may be silent before it has failed."),
]
MaintenanceWork = Literal["freeze", "reboot", "redeploy"]
Deadline = Annotated[
    Time | None,
    Field(description="From then on windows give way, and guests cannot defer it any more (RFC 3339)."),
]
ExpectedSeconds = Annotated[
    float | None,
    Field(
        gt=0,
        le=86400 * 7,
        description="How long the work of a stage is expected to take: so much must fit into the windows of "
        "projects.",
    ),
]


class HostOrderBody(OperatorOrderBody):
    """Who does the work, and how long they may be silent."""

    driver: DriverName | None = Field(None, description="external: it is done outside, and reported.")
    heartbeat_seconds: Heartbeat = None
    rehearsal: Name | None = Field(
        None,
        description="The scenario it is part of; 409 unless all machines concerned are of projects for it.",
    )

    def request(self, by: str, **terms: Any) -> OrderRequest:
        """Return what is asked for beside the action, and by whom."""
        if self.notice_seconds is not None and self.emergency is None:
            expected = "expected only beside an emergency, which says why notice is shortened"
            raise Invalid(f"notice_seconds: {expected}")
        _check_heartbeat(self.heartbeat_seconds, self.driver)
        return self.asked(OrderRequest, by=by, terms=self.asked(OrderTerms, **terms))


class MaintenanceBody(HostOrderBody):
    """What is to be done to a host's machines."""

    action: MaintenanceWork
    deadline: Deadline = None
    expected_seconds: ExpectedSeconds = None


class MachineOrderBody(HostOrderBody):
    """Why something is ordered, and on what terms."""

    now: bool = Field(
        default=False,
        description="Do not wait for the guests: the word of the machine's owner is approval enough.",
    )

    def request(self, by: str, **terms: Any) -> OrderRequest:
        """Return what is asked for beside the action, and by whom."""
        return super().request(by, at_once=self.now, **terms)


def _check_heartbeat(seconds: float | None, driver: str | None) -> None:
    if seconds is not None and driver != EXTERNAL:
        raise Invalid('heartbeat_seconds: expected only beside driver "external"')


class FailureBody(Body):
    """Why work outside failed."""

    reason: Line = "failed"


class HoldBody(Body):
    """Where nothing new is to be announced or started; neither project nor host: anywhere."""

    reason: Line = Field(min_length=1, description="Why, shown everywhere.")
    project: ProjectField | None = None
    host: HostField | None = None

    @model_validator(mode="after")
    def _one_reach(self) -> "HoldBody":
        if self.project is not None and self.host is not None:
            raise ValueError("expected a project or a host, not both")
        return self


class TokenBody(Body):
    """Who is to be let in, and as what."""

    name: Name = Field(description="What records call its user.")
    role: Role = Field(strict=False)
    project: ProjectField | None = Field(None, description="A user's, or all that a viewer may see.")
    expires_seconds: float | None = Field(
        None, gt=0, le=LONGEST_LIFE.total_seconds(), description="Left out: never."
    )

    def grant(self) -> Grant:
        """Return what the token is to be."""
        seconds = self.expires_seconds
        return self.asked(Grant, life=None if seconds is None else timedelta(seconds=seconds))


class RolloutBody(OrderBody):
    """What is to be done to which hosts, and how many of them at once."""

    hosts: list[HostField] | Literal["all"] = Field(
        description="Which hosts, in this order; all: those not failed."
    )
    action: MaintenanceWork
    hosts_at_once: int = Field(1, ge=1, le=1_000_000, description="How many hosts a wave has at most.")
    gap_seconds: float = Field(
        0, ge=0, le=86400 * 30, description="From the end of a wave to the next announcement."
    )
    driver: DriverName = Field(
        SIMULATED, description="external: the work of each order is done outside, and reported."
    )
    heartbeat_seconds: Heartbeat = None
    deadline: Deadline = None
    expected_seconds: ExpectedSeconds = None
    health_seconds: float = Field(
        1800, gt=0, le=86400 * 30, description="How long after its work a machine may take to be healthy."
    )
    require_poll: bool = Field(
        default=False, description="A machine that polled before is healthy when it has polled again."
    )
    dry_run: bool = Field(default=False, description="Only show the plan.")

    def request(self, by: str) -> RolloutRequest:
        """Return what is asked for, and by whom."""
        _check_heartbeat(self.heartbeat_seconds, self.driver)
        hosts = None if self.hosts == "all" else tuple(self.hosts)
        terms = self.asked(RolloutTerms)
        return self.asked(RolloutRequest, hosts=hosts, work=Work(self.action), terms=terms, by=by)


class ResumeBody(Body):
    """What the caller has seen of the rollout."""

    version: int | None = Field(
        default=None, ge=1, le=LARGEST, description="The version that was seen; 409 if it has changed since."
    )


class PauseBody(ResumeBody):
    """Why, and what the caller has seen of the rollout."""

    reason: Line = Field(default="", description="Why, for the records.")


class FaultBody(Body):
    """What guests meet instead of the answer that is due, and when."""

    number: int = Field(ge=0, le=LARGEST, description="Tells faults apart; calls are counted by it.")
    kind: Annotated[FaultKind, Field(strict=False)]
    machines: list[Name] = Field(default_factory=list, max_length=1000, description="Whose; none: all.")
    since: Time | None = Field(None, description="Service time (RFC 3339); left out: at once.")
    until: Time | None = Field(None, description="Left out: to the end.")
    calls: int | None = Field(None, ge=1, le=LARGEST, description="Of each machine that it spoils at most.")
    delay_seconds: float = Field(SLOW.total_seconds(), ge=0, le=86400, description="Of a slow answer.")
    notice_seconds: float = Field(
        SHORT_NOTICE.total_seconds(), ge=0, le=86400 * 30, description="Left when a short notice is shown."
    )

    def fault(self) -> Fault:
        """Return the fault."""
        return self.asked(Fault, machines=tuple(self.machines))


class RehearsalBody(Body):
    """What is played, by whose guests, and what these meet."""

    id: Name = Field(description="Made by the caller, and given again each time.")
    scenario: Name
    machines: list[Name] = Field(min_length=1, max_length=1000, description="Whose guests have a part.")
    faults: list[FaultBody] = Field(default_factory=list, max_length=100)

    def rehearsal(self) -> Rehearsal:
        """Return what is to be played."""
        faults = tuple(each.fault() for each in self.faults)
        return self.asked(Rehearsal, machines=tuple(self.machines), faults=faults)


class AdvanceBody(Body):
    """How far the clock is to be turned."""

    seconds: float = Field(ge=0, allow_inf_nan=False)


class WebhookBody(Body):
    """Where records are to be pushed to."""

    url: Annotated[str, AfterValidator(one_line), Field(max_length=2000, json_schema_extra={"format": "uri"})]
    project: ProjectField | None = Field(
        None, description="Only records of this project; left out: all that you may see."
    )
    kinds: list[Annotated[Kind, Field(strict=False)]] = Field(
        default_factory=list, max_length=100, description="Only records of these kinds; none: all."
    )
    secret: Line | None = Field(
        None, description="What signs the calls, `whsec_` and 24 to 64 bytes in base64; left out: made."
    )
