"""Groups and their policies."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from forewarn.core.basic_types import (
    DECLARED,
    DEFAULT_PROJECT,
    ApprovalRule,
    GroupKind,
    GroupName,
    ProjectName,
    Work,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPolicy:
    """The policy of a group; None and zero mean the default."""

    approval: ApprovalRule = ApprovalRule.ANY
    auto_approve: bool = False  # users' own orders start at once
    # The least notice of platform events, and of users' restarts and redeploys.
    notice: timedelta | None = None
    terminate_notice: timedelta | None = None
    degrade_notice: timedelta | None = None  # how early a degraded host is announced
    budget: int = 0  # how many healthy machines it needs during maintenance
    defer: timedelta = timedelta()  # how long a guest may defer an event, once
    freezes_at_once: int = 0  # how many machines may be frozen together, in any update domain
    gang: bool = False  # its machines do one job, so they are disturbed all together

    def at_most(self, work: Work) -> int | None:
        """Return how many machines of any update domain may be disturbed together; None: all.

        0: only machines of one update domain.
        """
        if self.gang:
            return None
        return self.freezes_at_once if work is Work.FREEZE else 0

    def lets_together(self, machines: int, work: Work) -> bool:
        """Whether work may disturb this many machines of any update domain together."""
        most = self.at_most(work)
        return most is None or machines <= most


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTraits:
    """The declared properties of a group."""

    name: GroupName
    kind: GroupKind
    update_domains: int = 1
    project: ProjectName = DEFAULT_PROJECT
    policy: GroupPolicy = GroupPolicy()
    source: str = DECLARED  # a person, a fleet file, or the driver that imported it


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(GroupTraits):
    """The audience of events, and the state of its document."""

    born: int = 0  # the record that added it; a later group of the same name has another
    incarnation: int = 1
    enabled_at: datetime | None = None  # the first poll; None while notice is disabled
    ready_at: datetime | None = None  # when polls are answered: enabled_at plus the enable delay
    heard: bool = False  # whether a guest of it has ever polled

    @property
    def enabled(self) -> bool:
        """Whether guests see a user's own order before forewarn carries it out."""
        return self.enabled_at is not None
