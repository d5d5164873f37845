"""Events: what guests see of an order, and their answers to it."""

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
    """A guest, a person or a policy allowed an event to start early."""

    by: str
    kind: ApprovedBy
    at: datetime
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferral:
    """A guest asked for more time; each event can be deferred once."""

    by: MachineName
    at: datetime
    until: datetime  # the NotBefore that came of it
    since: datetime  # the NotBefore that was
    asked: timedelta  # how much more time was asked for

    @property
    def granted(self) -> timedelta:
        """How much more time came of it."""
        return self.until - self.since


@dataclass(frozen=True, slots=True, kw_only=True)
class Postponement:
    """An event could not be armed in time, so its NotBefore was moved, perhaps several times."""

    at: datetime  # when it was moved last
    since: datetime  # the NotBefore that was before all that
    reason: str  # for whom it waits


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The notice of a stage to one group: what guests see."""

    id: EventId
    number: int  # the record that announced it; a document lists events by it
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
    armed_at: datetime | None = None  # since when it keeps other update domains away, and may start
    started_at: datetime | None = None
    ended_at: datetime | None = None
    why: str = ""  # why it left the document
    approvals: tuple[Approval, ...] = ()
    rule: ApprovalRule = ApprovalRule.ANY
    deferred: Deferral | None = None
    postponed: Postponement | None = None
    judged: bool = False  # whether what became of its promise of notice is counted
    forgotten: bool = False  # whether it is not kept any more when its machines were told

    @property
    def hint(self) -> bool:
        """Whether it only recommends something: it never starts, and no rule counts it."""
        return self.type in HINTS

    @property
    def approved(self) -> bool:
        """Whether it may start before its time."""
        return not self.awaited

    @property
    def awaited(self) -> tuple[MachineName, ...]:
        """Whose approval it still needs; where any machine's will do, all that are named."""
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
        """Whether it keeps other update domains of its group away."""
        return self.armed_at is not None

    @property
    def listed(self) -> bool:
        """Whether guests see it."""
        return self.ended_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeSummary:
    """What notice all machines of some events got, of those that have started and were promised any."""

    least: timedelta | None = None  # of the machines that were sent the event
    late: int = 0
    never: int = 0
    so_far: bool = False  # whether some of the events are not judged yet: word of who was sent them may come
