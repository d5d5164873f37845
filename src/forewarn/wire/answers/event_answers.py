"""Events, and what notice machines got of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
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
from forewarn.core.guests.notice import MachineNotice
from forewarn.core.model.event import Event, NoticeSummary
from forewarn.core.orders import events
from forewarn.wire.answers.answer import ApiAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswer(ApiAnswer):
    """Who let an event start early."""

    by: str
    kind: ApprovedBy
    at: datetime
    address: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferralAnswer(ApiAnswer):
    """Who deferred an event, when, and by how much."""

    by: str
    at: datetime
    until: datetime
    asked_seconds: float
    granted_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PostponementAnswer(ApiAnswer):
    """Why an event could not be armed in time, and from when (`since`) its `not_before` was moved."""

    at: datetime
    since: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventAnswer(ApiAnswer):
    """What is announced to guests; `not_before` stays known after the start."""

    NOUN: ClassVar = "event"

    id: str
    type: EventType
    status: EventStatus
    resources: tuple[str, ...]
    not_before: datetime
    source: Source
    description: str
    duration_seconds: int
    approved: bool
    approval: ApprovalRule
    awaited: tuple[str, ...]
    awaits: str | None
    approvals: tuple[ApprovalAnswer, ...]
    deferred: DeferralAnswer | None
    group: str | None
    update_domain: int
    order: str
    announced_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    why: str | None
    armed_at: datetime | None
    postponed: PostponementAnswer | None
    stage: int  # which stage of its order it announces, counted from 0

    @classmethod
    def of(cls, event: Event, **more: object) -> Self:
        """Show an event."""
        return cls.like(
            event,
            resources=resource_names(event),
            approval=event.rule,
            awaits=events.awaited_approvals(event),
            approvals=tuple(map(ApprovalAnswer.like, event.approvals)),
            deferred=DeferralAnswer.like(event.deferred) if event.deferred else None,
            postponed=PostponementAnswer.like(event.postponed) if event.postponed else None,
            group=listed_group(event.group),
            **more,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeAnswer(ApiAnswer):
    """What notice all machines of some events got."""

    least_seconds: float | None
    late: int
    never: int
    # Some of the events are still listed: they are judged when they end.
    so_far: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedEventAnswer(EventAnswer):
    """An event, whose machines it names (null if nothing tells any more), and whether it is simulated."""

    project: str | None
    simulated: bool  # nothing is really done
    # What notice its machines got, once it has started; in lists, where it is asked for.
    notice: NoticeAnswer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineNoticeAnswer(ApiAnswer):
    """When a machine of an event was first sent it, and how long before the start."""

    machine: str
    sent_at: datetime | None
    notice_seconds: float | None
    late: bool
    away_seconds: float | None  # for how long it was really away, if its driver has measured that


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDetailAnswer(ListedEventAnswer):
    """An event, what notice each of its machines got, and how long it disturbed them."""

    notices: tuple[MachineNoticeAnswer, ...]
    impact_seconds: float | None

    @classmethod
    def noted(
        cls,
        event: Event,
        notices: Iterable[MachineNotice],
        *,
        impact: timedelta | None,
        project: str | None,
        simulated: bool,
        notice: NoticeSummary | None,
    ) -> Self:
        """Show an event that may be over."""
        return cls.of(
            event,
            project=project,
            simulated=simulated,
            notice=NoticeAnswer.like(notice) if notice else None,
            notices=tuple(map(MachineNoticeAnswer.like, notices)),
            impact_seconds=None if impact is None else impact.total_seconds(),
        )


def listed_group(name: GroupName) -> GroupName | None:
    """Return the name of a group; None for that of a standalone machine, which is not listed."""
    return None if name.startswith(STANDALONE) else name
