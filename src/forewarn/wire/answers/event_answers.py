"""Answers about events, and the notice that machines got."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from forewarn.core.basic_types import (
    STANDALONE,
    ApprovalRule,
    ApprovedBy,
    EventStatus,
    EventType,
    GroupName,
    Source,
)
from forewarn.core.guests.document import resource_names
from forewarn.core.model.event import Event
from forewarn.core.orders import events
from forewarn.wire.answers.answer import ApiAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswer(ApiAnswer):
    """Permission to start an event before its `not_before`."""

    by: str  #: Name of the machine, person or policy that approved.
    kind: ApprovedBy  #: Whether a guest, a person or a policy approved.
    at: datetime  #: When the approval was saved, in service time.
    address: str | None  #: Source address of the request. Null: not known.


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferralAnswer(ApiAnswer):
    """A deferral of an event by a guest."""

    by: str  #: Name of the machine that deferred the event.
    at: datetime  #: When the machine deferred the event, in service time.
    until: datetime  #: The new `not_before`.
    asked_seconds: float  #: Time that the machine requested.
    granted_seconds: float  #: Time that was granted. The group's policy limits it.


@dataclass(frozen=True, slots=True, kw_only=True)
class PostponementAnswer(ApiAnswer):
    """A move of `not_before` because another update domain of the group has an armed event."""

    at: datetime  #: When forewarn last moved `not_before`, in service time.
    since: datetime  #: The `not_before` before the first move.
    reason: str  #: Names the update domain that the event waits for.


@dataclass(frozen=True, slots=True, kw_only=True)
class EventAnswer(ApiAnswer):
    """The notice of a stage to one group, as its guests see it."""

    NOUN: ClassVar = "event"

    id: str  #: GUID of the event, in upper case.
    type: EventType  #: Impact on the machines, such as `Freeze` or `Reboot`.
    status: EventStatus  #: `Scheduled` until the work starts, then `Started`.
    resources: tuple[str, ...]  #: Names of the affected machines.
    not_before: datetime  #: Earliest start without an approval. It stays known after the start.
    source: Source  #: Whether a user or the platform ordered the work.
    description: str  #: Description for guests.
    duration_seconds: int  #: Expected length of the impact. -1: not known.
    approved: bool  #: Whether the event has the approvals that it needs.
    approval: ApprovalRule  #: Which machines must approve: any one, all of them, or the leader.
    awaited: tuple[str, ...]  #: Machines that have not approved yet and must.
    awaits: str | None  #: Missing approvals in words. Null: none is missing.
    approvals: tuple[ApprovalAnswer, ...]  #: Approvals so far.
    deferred: DeferralAnswer | None  #: Deferral by a guest. Null: not deferred.
    group: str | None  #: Group that sees the event. Null: a standalone machine.
    update_domain: int  #: Update domain of the affected machines.
    order: str  #: Id of the order that the event announces.
    announced_at: datetime  #: When guests could first see the event, in service time.
    started_at: datetime | None  #: When the work started. Null: not started.
    ended_at: datetime | None  #: When the event left the document. Null: still listed.
    why: str | None  #: Why the event left the document. Null: still listed.
    #: When the event became armed: from then on other update domains of its group wait. Null: not armed.
    armed_at: datetime | None
    postponed: PostponementAnswer | None  #: Why `not_before` was moved. Null: it was not moved.
    stage: int  #: Index of the announced stage of the order, from 0.

    @classmethod
    def of(cls, event: Event, *views: object, **more: object) -> Self:
        """Show an event. Attributes of the views give the fields that the event lacks."""
        return cls.like(
            event,
            *views,
            resources=resource_names(event),
            approval=event.rule,
            awaits=events.awaited_approvals(event),
            group=listed_group(event.group),
            **more,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeAnswer(ApiAnswer):
    """The notice that the machines of one or more events got."""

    least_seconds: float | None  #: Shortest notice of all machines. Null: no machine got notice.
    late: int  #: Number of machines that got less notice than promised.
    never: int  #: Number of machines that were never sent the event.
    so_far: bool  #: Whether some events are still listed, so that the counts can change.


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedEventAnswer(EventAnswer):
    """An event in a list."""

    project: str | None  #: Project of the machines. Null: not known any more.
    simulated: bool  #: Whether the work is only simulated.
    #: Notice that the machines got. Null: the event has not started, or `notices` was not requested.
    notice: NoticeAnswer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineNoticeAnswer(ApiAnswer):
    """The notice that one machine got of an event."""

    machine: str  #: Name of the machine.
    sent_at: datetime | None  #: When the machine was first sent the event. Null: never.
    notice_seconds: float | None  #: Time between `sent_at` and the start. Null: never sent or not started.
    late: bool  #: Whether the machine got less notice than promised.
    away_seconds: float | None  #: Measured interruption of the machine. Null: not measured.


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDetailAnswer(ListedEventAnswer):
    """An event with the notice of each machine and the measured impact."""

    notices: tuple[MachineNoticeAnswer, ...]  #: Notice of each machine.
    impact_seconds: float | None  #: Measured length of the impact. Null: not known.


def listed_group(name: GroupName) -> GroupName | None:
    """Return the name of a group. None: the unlisted group of a standalone machine."""
    return None if name.startswith(STANDALONE) else name
