"""Groups, and what each asks for."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from forewarn.core.basic_types import DECLARED, ApprovalRule, GroupKind, GroupName, ProjectName, Work


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
    freezes_at_once: int = 0  # so many machines may be frozen together, whatever their update domains
    gang: bool = False  # its machines work on one thing, and are rather disturbed all together than in turn

    def at_most(self, work: Work) -> int | None:
        """Return how many machines work may disturb together, whatever their update domains; None: all.

        0: only those of one update domain.
        """
        if self.gang:
            return None
        return self.freezes_at_once if work is Work.FREEZE else 0

    def lets_together(self, machines: int, work: Work) -> bool:
        """Return whether work may disturb so many machines together, whatever their update domains."""
        most = self.at_most(work)
        return most is None or machines <= most


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
    heard: bool = False  # whether a guest of it has ever polled
    policy: GroupPolicy = GroupPolicy()
    source: str = DECLARED  # who speaks for it: people, or the driver that it was imported by

    @property
    def enabled(self) -> bool:
        """Whether a user's own order is announced to its guests before it is carried out."""
        return self.enabled_at is not None
