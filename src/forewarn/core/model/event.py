"""Events, their approvals and deferrals."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from forewarn.core.basic_types import (
    HINTS,
    ApprovalRule,
    ApprovedBy,
    EventId,
    EventStatus,
    EventType,
    GroupName,
    MachineId,
    MachineName,
    OrderId,
    Source,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A machine named in an event."""

    machine: MachineId
    name: MachineName
    late: bool = False  # whether the machine could not see the event in time, once that is judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """Permission of a guest, a person or a policy to start an event early."""

    by: str
    kind: ApprovedBy
    at: datetime
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferral:
    """A guest's request for more time; each event can be deferred once."""

    by: MachineName
    at: datetime
    until: datetime  # the new NotBefore
    since: datetime  # the NotBefore before
    asked: timedelta  # the requested extension

    @property
    def granted(self) -> timedelta:
        """The granted extension."""
        return self.until - self.since


@dataclass(frozen=True, slots=True, kw_only=True)
class Postponement:
    """A later NotBefore, because the event could not be armed in time. It may move several times."""

    at: datetime  # when it moved last
    since: datetime  # the first NotBefore
    reason: str  # the domain that it waits for


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The notice of a stage to one group: the event that guests see."""

    id: EventId
    number: int  # of the record that announced it; a document lists events in this order
    order: OrderId
    stage: int
    group: GroupName
    update_domain: int
    type: EventType
    status: EventStatus
    source: Source
    description: str
    duration_seconds: int
    resources: tuple[Resource, ...]
    announced_at: datetime
    not_before: datetime
    armed_at: datetime | None = None  # when it began to block other update domains, and became startable
    started_at: datetime | None = None
    ended_at: datetime | None = None
    why: str = ""  # why it left the document
    approvals: tuple[Approval, ...] = ()
    rule: ApprovalRule = ApprovalRule.ANY
    deferred: Deferral | None = None
    postponed: Postponement | None = None
    judged: bool = False  # whether its promise of notice is counted
    forgotten: bool = False  # whether the times at which machines received it are deleted

    @property
    def hint(self) -> bool:
        """Whether it only recommends: it never starts, and the rules ignore it."""
        return self.type in HINTS

    @property
    def approved(self) -> bool:
        """Whether it may start before NotBefore."""
        return not self.awaited

    @property
    def awaited(self) -> tuple[MachineName, ...]:
        """The machines whose approval it needs; if any one is enough, all of its machines."""
        guests = {approval.by for approval in self.approvals if approval.kind is ApprovedBy.GUEST}
        names = tuple(named.name for named in self.resources)
        if any(approval.kind is not ApprovedBy.GUEST for approval in self.approvals):
            return ()
        match self.rule:
            case ApprovalRule.ANY:
                return () if guests else names
            case ApprovalRule.ALL:
                return tuple(name for name in names if name not in guests)
            case ApprovalRule.LEADER:
                return () if names[0] in guests else names[:1]

    @property
    def armed(self) -> bool:
        """Whether it blocks other update domains of its group."""
        return self.armed_at is not None

    @property
    def listed(self) -> bool:
        """Whether guests see it."""
        return self.ended_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeSummary:
    """The notice of all machines of some events that started and had promised any."""

    least: timedelta | None = None  # of the machines that received the event
    late: int = 0
    never: int = 0
    so_far: bool = False  # whether some events are not judged yet, so deliveries may still become known
