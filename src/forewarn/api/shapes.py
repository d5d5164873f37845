"""The shapes of answers, for the OpenAPI document; `forewarn.wire` writes the answers themselves."""

from datetime import date, datetime

from pydantic import BaseModel, ConfigDict, Field

from forewarn.core.access import Role
from forewarn.core.model.rollout import RolloutState, WaveState
from forewarn.core.rehearsal.faults import FaultKind
from forewarn.core.words import (
    Action,
    ApprovalRule,
    ApprovedBy,
    EventStatus,
    EventType,
    GroupKind,
    HostState,
    Kind,
    MachineState,
    OrderState,
    Priority,
    Source,
    StageState,
    StepState,
    Work,
)


class Shape(BaseModel):
    """Exactly these keys, always all of them."""

    model_config = ConfigDict(extra="forbid")


class Machine(Shape):
    """A machine, and what its guests have made known."""

    vm_id: str
    name: str
    project: str
    group: str | None
    host: str | None
    update_domain: int
    fault_domain: int
    priority: Priority
    state: MachineState
    network: str
    address: str | None
    port: int | None
    tags: dict[str, str]
    location: str
    zone: str
    size: str
    os: str
    enabled: bool
    last_seen: datetime | None


class Group(Shape):
    """Whom events are delivered to."""

    name: str
    project: str
    kind: GroupKind
    update_domains: int
    incarnation: int
    enabled: bool
    enabled_at: datetime | None
    policy: dict[str, object]


class Host(Shape):
    """What carries machines."""

    name: str
    state: HostState


class HostWithMachines(Host):
    """A host, the names of what it carries, and of the projects that those belong to."""

    machines: list[str]
    projects: list[str]


class Window(Shape):
    """When maintenance may disturb a project."""

    days: list[str]
    start: str
    length: float


class Project(Shape):
    """A tenant, and what it has declared."""

    name: str
    time_zone: str
    windows: list[Window]
    blackout: list[date]
    rehearsal: bool


class Fault(Shape):
    """What guests meet instead of the answer that is due."""

    number: int
    kind: FaultKind
    machines: list[str]
    since: datetime | None
    until: datetime | None
    calls: int | None
    delay_seconds: float
    notice_seconds: float
    on: bool  # now


class SeenEvent(Shape):
    """When a guest was first sent an event, and what the event was then."""

    event: str
    at: datetime
    what: str


class ApprovedEvent(Shape):
    """When a guest approved an event."""

    event: str
    at: datetime


class RehearsingGuest(Shape):
    """What the guest of a machine has done in a rehearsal so far."""

    machine: str
    polls: int
    spoiled: int  # requests that got no sound answer
    meets: str  # what is wrong with its answers at present
    first_poll: datetime | None
    last_poll: datetime | None
    last_sound: datetime | None  # answer that was as it should be
    seen: list[SeenEvent]
    listed: list[str]  # the events of the last document it was sent
    approved: list[ApprovedEvent]


class Rehearsal(Shape):
    """A scenario that is being played in a project."""

    id: str
    scenario: str
    by: str
    begun_at: datetime
    faults: list[Fault]
    guests: list[RehearsingGuest]


class Approval(Shape):
    """Who let an event start early."""

    by: str
    kind: ApprovedBy
    at: datetime
    address: str | None


class Deferral(Shape):
    """Who put an event off, when, and by how much; null what was not kept yet when it happened."""

    by: str
    at: datetime
    until: datetime
    asked_seconds: float | None
    granted_seconds: float | None


class Event(Shape):
    """What guests are told."""

    id: str
    type: EventType
    status: EventStatus
    resources: list[str]
    not_before: datetime
    source: Source
    description: str
    duration_seconds: int
    approved: bool
    approval: ApprovalRule
    awaited: list[str]
    awaits: str | None
    approvals: list[Approval]
    deferred: Deferral | None
    group: str | None
    update_domain: int
    order: str
    announced_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    why: str | None


class Told(Shape):
    """When a machine of an event was first sent it, and how long before the start."""

    machine: str
    sent_at: datetime | None
    notice_seconds: float | None
    late: bool


class NotedEvent(Event):
    """An event, what notice each of its machines got, and how long it disturbed them."""

    notices: list[Told]
    impact_seconds: float | None


class Waiting(Shape):
    """What waits, and for what reason."""

    what: str
    reason: str


class Step(Shape):
    """One machine's share of a stage."""

    machine: str
    state: StepState
    attempt: int
    target: str | None
    begun_at: datetime | None
    ended_at: datetime | None
    why: str | None


class Stage(Shape):
    """A part of an order with at most one update domain of any group."""

    state: StageState
    started_at: datetime | None
    steps: list[Step]


class Order(Shape):
    """What is going to be done, by whom and why."""

    id: str
    action: Action
    work: Work | None
    source: Source
    project: str | None
    machine: str | None
    host: str | None
    state: OrderState
    by: str
    reason: str | None
    driver: str
    emergency: str | None
    heartbeat_seconds: float | None
    deadline: datetime | None
    expected_seconds: float | None
    rollout: str | None
    rehearsal: str | None
    created_at: datetime
    ended_at: datetime | None
    why: str | None
    waiting: list[Waiting]
    stages: list[Stage]
    steps: list[Step]


class Notice(Shape):
    """What notice all machines of an order got."""

    least_seconds: float | None
    late: int
    never: int


class NotedOrder(Order):
    """An order, and what notice its machines got."""

    notice: Notice


class Record(Shape):
    """A line of the history."""

    number: int
    at: datetime
    kind: str
    project: str | None
    group: str | None
    host: str | None
    machine: str | None
    event: str | None
    order: str | None
    by: str | None
    reason: str | None


class Webhook(Shape):
    """Where records are pushed to, and how that fares."""

    id: str
    url: str
    project: str | None
    owner: str | None
    kinds: list[Kind]
    by: str
    created_at: datetime
    delivered: int
    behind: int
    failures: int
    failing_since: datetime | None
    error: str | None
    next_try_seconds: float | None


class Page(Shape):
    """A page of a list."""

    next: str | None


class Machines(Page):
    """Machines by project and name."""

    machines: list[Machine]


class Groups(Page):
    """Groups by name."""

    groups: list[Group]


class Hosts(Page):
    """Hosts by name."""

    hosts: list[Host]


class Projects(Page):
    """Projects by name."""

    projects: list[Project]


class Orders(Page):
    """Orders, newest first."""

    orders: list[Order]


class Events(Page):
    """Current events, oldest first."""

    events: list[Event]


class Records(Page):
    """Records, newest first."""

    records: list[Record]
    missing_up_to: int | None = Field(
        description="Up to which number records after `above` may have been removed; null if none were."
    )


class Webhooks(Page):
    """Webhooks, oldest first."""

    webhooks: list[Webhook]


class OneWebhook(Shape):
    """One webhook."""

    webhook: Webhook


class NewWebhook(OneWebhook):
    """A webhook, and the secret that is shown once."""

    secret: str


class Trial(Shape):
    """What came of a call."""

    delivered: bool
    error: str | None


class OneMachine(Shape):
    """One machine."""

    machine: Machine


class OneGroup(Shape):
    """One group."""

    group: Group


class OneHost(Shape):
    """One host."""

    host: HostWithMachines


class OneRehearsal(Shape):
    """What is being played."""

    rehearsal: Rehearsal


class EndedRehearsal(OneRehearsal):
    """What was played, and the orders that were called off with it."""

    called_off: list[str]


class OneProject(Shape):
    """One project."""

    project: Project


class OneEvent(Shape):
    """One event."""

    event: Event


class OneNotedEvent(Shape):
    """One event, and what notice was given of it."""

    event: NotedEvent


class OrderOnMachine(Shape):
    """An order, the event that tells of it, or the reason why there is none."""

    order: Order
    event: Event | None
    reason: str | None


class Hold(Shape):
    """Where nothing new is announced or started."""

    id: str
    reach: str
    project: str | None
    host: str | None
    reason: str
    by: str
    at: datetime


class OneHold(Shape):
    """A hold."""

    hold: Hold


class Holds(Shape):
    """All holds."""

    holds: list[Hold]
    next: None


class ExpectedStage(Shape):
    """When a stage of a wave is to be expected."""

    announce_at: datetime
    start_at: datetime
    end_at: datetime


class Wave(Shape):
    """Hosts that are done together: when that was and, of a plan or on demand, when it is to be expected."""

    hosts: list[str]
    state: WaveState
    orders: list[str]
    announced_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    announce_at: datetime | None
    start_at: datetime | None
    end_at: datetime | None
    stages: list[ExpectedStage]


class Rollout(Shape):
    """Host orders in waves."""

    id: str | None
    state: RolloutState
    aborting: bool
    action: Work
    hosts: list[str]
    hosts_at_once: int
    gap_seconds: float
    driver: str
    deadline: datetime | None
    expected_seconds: float | None
    health_seconds: float
    require_poll: bool
    version: int
    waves: list[Wave]
    waiting: list[Waiting]
    given_up: list[str]
    notice: Notice
    warnings: list[str]
    by: str
    reason: str | None
    why: str | None
    created_at: datetime
    ended_at: datetime | None
    ends_at: datetime | None


class OneRollout(Shape):
    """A rollout, or the plan of one."""

    rollout: Rollout


class Rollouts(Page):
    """Rollouts, newest first."""

    rollouts: list[Rollout]


class OrderWithEvents(Shape):
    """An order and its events."""

    order: Order
    events: list[Event]


class NotedOrderWithEvents(Shape):
    """An order and its events, and what notice was given of them."""

    order: NotedOrder
    events: list[NotedEvent]


class Token(Shape):
    """A token, without its secret."""

    name: str
    role: Role
    project: str | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None


class Tokens(Page):
    """Tokens, the oldest first."""

    tokens: list[Token]


class OneToken(Shape):
    """One token."""

    token: Token


class RevokedToken(OneToken):
    """A token that is no longer good, and what that leaves behind."""

    warnings: list[str]


class NewToken(OneToken):
    """A token, and its secret, which is shown this once."""

    secret: str


class Fleet(Shape):
    """A fleet, as it would be declared; what was changed to get there."""

    fleet: dict[str, object]
    changes: list[str] | None = None


class Clock(Shape):
    """Service time."""

    kind: str
    now: datetime
    speed: float


class Status(Shape):
    """A probe's answer."""

    status: str
