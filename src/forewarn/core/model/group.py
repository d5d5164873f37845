"""Groups, and what each asks for."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from forewarn.core.words import ApprovalRule, GroupKind, GroupName, ProjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPolicy:
    """What a group asks for beyond the contract; None and zero mean that it asks for nothing."""

    approval: ApprovalRule = ApprovalRule.ANY
    auto_approve: bool = False  # its users' own orders start at once
    notice: timedelta | None = (
        None  # at least so much for every platform event and users' restart or redeploy
    )
    terminate_notice: timedelta | None = None
    degrade_notice: timedelta | None = None  # how long ahead a degraded host is announced to its guests
    budget: int = 0  # how many healthy machines it needs while it is being maintained
    defer: timedelta = timedelta()  # how far a guest may put an event off, once


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Whom events are delivered to, and the state of its document."""

    name: GroupName
    project: ProjectName
    kind: GroupKind
    update_domains: int = 1
    born: int = 0  # the record that says it was added: another group of the same name has another
    incarnation: int = 1
    enabled_at: datetime | None = None  # the first poll; None while the feature is off
    ready_at: datetime | None = None  # when polls are answered: enabled_at and the enable delay
    policy: GroupPolicy = GroupPolicy()

    @property
    def enabled(self) -> bool:
        """Whether a user's own order is announced to its guests before it is carried out."""
        return self.enabled_at is not None
