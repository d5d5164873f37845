"""What of the fleet a rollout is decided by: its hosts, and whom work on each disturbs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from forewarn.core.copies import replace
from forewarn.core.model.armed import ArmedDomain
from forewarn.core.model.budget import Budget
from forewarn.core.model.footprint import Footprint
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.hold import Hold
from forewarn.core.model.host import Host
from forewarn.core.model.order import Order
from forewarn.core.model.pace import NO_MOVES, Pace
from forewarn.core.model.project import Project
from forewarn.core.model.service_time import Slew
from forewarn.core.words import GroupName, HostName, ProjectName, Work

_UNDISTURBING = Footprint()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSurvey:
    """What of the fleet a rollout is decided by."""

    hosts: Mapping[HostName, Host] = field(default_factory=dict)
    footprints: Mapping[HostName, Footprint] = field(default_factory=dict)
    orders: Mapping[HostName, Order] = field(default_factory=dict)  # what each host has open already
    armed: Mapping[GroupName, Mapping[int, ArmedDomain]] = field(default_factory=dict)
    # The next four are of those groups that are disturbed; no machine that stands alone is among them.
    budgets: Mapping[GroupName, Budget] = field(default_factory=dict)
    notices: Mapping[GroupName, timedelta] = field(default_factory=dict)  # what they ask for
    sizes: Mapping[GroupName, int] = field(default_factory=dict)  # how many members they have
    policies: Mapping[GroupName, GroupPolicy] = field(default_factory=dict)  # of those that ask for something
    heard: frozenset[GroupName] = frozenset()  # of all that are disturbed, who has ever listened
    # How many of a group may be disturbed together whatever their update domains, where that is limited.
    at_most: Mapping[GroupName, int] = field(default_factory=dict)
    racks: Mapping[str, int] = field(default_factory=dict)  # how many hosts of each take machines
    holds: tuple[Hold, ...] = ()
    slew: Slew | None = None  # how service time and the system's go on, if it is ahead
    pace: Pace = NO_MOVES  # how long moves take in this fleet
    projects: Mapping[ProjectName, Project] = field(default_factory=dict)

    def with_domains_at_once(self) -> "HostSurvey":
        """Return the same hosts, each done in one go whatever update domains it carries."""
        at_once = {host: replace(footprint, at_once=True) for host, footprint in self.footprints.items()}
        return replace(self, footprints=at_once)

    def disturbed_by(self, work: Work) -> "HostSurvey":
        """Return the same hosts, where update domains do not count for groups that say so of this work."""
        most = {group: policy.at_most(work) for group, policy in self.policies.items()}
        most = {group: limit for group, limit in most.items() if limit != 0}
        if not most:
            return self
        free = {host: footprint.with_free(most) for host, footprint in self.footprints.items()}
        return replace(self, footprints=free, at_most={g: n for g, n in most.items() if n is not None})

    def frozen(self, group: GroupName) -> int:
        """Return how many machines of a group are named in armed Freezes."""
        return sum(armed.frozen for armed in self.armed.get(group, {}).values())

    def footprint(self, host: HostName) -> Footprint:
        """Return whom work on a host disturbs."""
        return self.footprints.get(host, _UNDISTURBING)
