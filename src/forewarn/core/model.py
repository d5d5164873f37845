"""Machines, hosts, groups, orders, stages, steps, events, records: the things of forewarn as values.

Everything is frozen; a change makes a new value. Times are aware and UTC.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from forewarn.core.windows import ALWAYS, Calendar
from forewarn.core.words import (
    Action,
    ApprovalRule,
    ApprovedBy,
    EventId,
    EventStatus,
    EventType,
    GroupKind,
    GroupName,
    HostName,
    HostState,
    MachineId,
    MachineName,
    MachineState,
    OrderId,
    OrderState,
    Priority,
    ProjectName,
    Source,
    StageState,
    StepState,
    Work,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A tenant: groups, machines and people."""

    name: ProjectName
    calendar: Calendar = ALWAYS  # when maintenance may disturb it
    rehearsal: bool = False  # whether scenarios may be played on its machines


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPolicy:
    """What a group asks for beyond the contract; None and zero mean that it asks for nothing."""

    approval: ApprovalRule = ApprovalRule.ANY
    auto_approve: bool = False  # its users' own orders start at once
    notice: timedelta | None = (
        None  # at least so much for every platform event and users' restart or redeploy
    )
    terminate_notice: timedelta | None = None
    degrade_notice: timedelta | None = None  # how long ahead its guests are told of a degraded host
    budget: int = 0  # how many healthy machines it needs while it is being maintained
    defer: timedelta = timedelta()  # how far a guest may put an event off, once


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The physical node that carries machines."""

    name: HostName
    state: HostState = HostState.OK


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Whom events are delivered to, and what of them its guests have been told."""

    name: GroupName
    project: ProjectName
    kind: GroupKind
    update_domains: int = 1
    born: int = 0  # the record that says it was added: another group of the same name has another
    incarnation: int = 1
    enabled_at: datetime | None = None  # the first poll; None while the feature is off
    ready_at: datetime | None = None  # when polls are answered: enabled_at and the enable delay
    last_active: datetime | None = None  # the newest poll that has been saved
    policy: GroupPolicy = GroupPolicy()

    @property
    def enabled(self) -> bool:
        """Whether its guests are told before a user's own order is carried out."""
        return self.enabled_at is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A virtual machine."""

    id: MachineId
    name: MachineName
    project: ProjectName
    group: GroupName
    host: HostName | None  # None: stopped after an eviction, carried by nobody
    bound_for: HostName | None = None  # where it is being moved to
    update_domain: int = 0
    fault_domain: int = 0
    priority: Priority = Priority.REGULAR
    state: MachineState = MachineState.RUNNING
    network: str = ""
    address: str | None = None
    port: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    location: str = ""
    zone: str = ""
    size: str = ""
    os: str = ""

    @property
    def place(self) -> HostName | None:
        """The host that is to carry it: where it is counted when others look for one."""
        return self.host if self.bound_for is None else self.bound_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One machine's share of a stage: what a driver does."""

    machine: MachineId
    name: MachineName
    group: GroupName
    domain: int
    state: StepState = StepState.WAITING
    attempt: int = 1
    target: HostName | None = None  # where the machine is to be afterwards, if it moves
    begun_at: datetime | None = None
    look_at: datetime | None = None  # when to ask the driver again, while running
    ended_at: datetime | None = None
    why: str = ""  # why it failed or became moot


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A part of an order with machines of at most one update domain of any group."""

    state: StageState
    steps: tuple[Step, ...]
    started_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Why something cannot go on yet: `what` waits, for `reason`."""

    what: str
    reason: str
    group: GroupName | None = None  # the group whose events it waits for, if that is the cause
    stuck: bool = False  # nothing that is under way will change it: a person must
    until: datetime | None = None  # at that time it is no more true, whether anybody has looked or not


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What was asked for beside the action itself."""

    emergency: str = ""  # why the promised notice is not kept; only an operator may say so
    notice: timedelta | None = None  # the notice of an emergency
    at_once: bool = False  # the owner of the machine does not want to wait for its guests
    heartbeat: timedelta | None = None  # how long an external driver may be silent
    expected: timedelta | None = None  # how long the work is expected to take, where windows bind it
    paused: str = ""  # why the rollout it is part of does not go on
    deadline: datetime | None = None  # from then on windows give way, and guests cannot put it off further
    rollout: str | None = None  # the rollout that the order is part of
    rehearsal: str = ""  # the scenario that it is part of, which only guests that agreed to it may meet


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is going to be done, by whom and why."""

    id: OrderId
    number: int  # the record that says it was placed; orders are listed by it
    action: Action
    work: Work | None  # None: nothing is done to machines (cordon, restore, …)
    source: Source
    project: ProjectName | None  # None: an order on a host
    machine: MachineId | None
    machine_name: MachineName | None
    host: HostName | None
    by: str
    reason: str = ""
    driver: str = "simulated"
    terms: Terms = Terms()
    state: OrderState = OrderState.QUEUED
    stages: tuple[Stage, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    created_at: datetime
    ended_at: datetime | None = None
    why: str = ""  # why it failed or was cancelled
    due_at: datetime | None = None  # when the engine must look at it next

    @property
    def open(self) -> bool:
        """Whether anything may still come of it."""
        return self.ended_at is None

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps of all stages."""
        return tuple(step for stage in self.stages for step in stage.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A machine named in an event."""

    machine: MachineId
    name: MachineName


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """The word of a guest, a person or a policy that an event may start early."""

    by: str
    kind: ApprovedBy
    at: datetime
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferral:
    """The word of a guest that it needs more time; each event can be put off once."""

    by: MachineName
    at: datetime
    until: datetime  # the NotBefore that came of it
    since: datetime | None = None  # the NotBefore that was; None of events put off before it was kept
    asked: timedelta | None = None  # how much more time was asked for; likewise

    @property
    def granted(self) -> timedelta | None:
        """How much more time came of it, if that is known."""
        return None if self.since is None else self.until - self.since


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The notice of a stage to one group: what guests see."""

    id: EventId
    number: int  # the record that announced it; a document lists events by it
    order: OrderId
    stage: int
    group: GroupName
    domain: int
    type: EventType
    status: EventStatus
    source: Source
    description: str
    duration_seconds: int
    resources: tuple[Resource, ...]
    announced_at: datetime
    not_before: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    why: str = ""  # why it left the document
    approvals: tuple[Approval, ...] = ()
    rule: ApprovalRule = ApprovalRule.ANY
    deferred: Deferral | None = None

    @property
    def approved(self) -> bool:
        """Whether it may start before its time."""
        return not self.awaited

    @property
    def awaited(self) -> tuple[MachineName, ...]:
        """Whose word it still needs; where any machine's will do, all that are named."""
        guests = {word.by for word in self.approvals if word.kind is ApprovedBy.GUEST}
        names = tuple(named.name for named in self.resources)
        if any(word.kind is not ApprovedBy.GUEST for word in self.approvals):
            return ()
        match self.rule:
            case ApprovalRule.ANY:
                return () if guests else names
            case ApprovalRule.ALL:
                return tuple(name for name in names if name not in guests)
            case ApprovalRule.LEADER:
                return () if names[0] in guests else names[:1]

    @property
    def listed(self) -> bool:
        """Whether guests see it."""
        return self.ended_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """What notice all machines of some events got, of those that have started and were promised any."""

    least: timedelta | None = None  # of the machines that were told
    late: int = 0
    never: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A numbered line of the history."""

    number: int
    at: datetime
    kind: str
    project: ProjectName | None = None
    group: GroupName | None = None
    host: HostName | None = None
    machine: MachineName | None = None
    event: EventId | None = None
    order: OrderId | None = None
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """An operator's word that nothing new is announced or started: anywhere, in a project, or on a host."""

    id: str
    reason: str
    by: str
    at: datetime
    project: ProjectName | None = None
    host: HostName | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grace:
    """Unapproved starts are put off: the clock jumped, and guests lost that much of their notice."""

    until: datetime
    announced_before: datetime
