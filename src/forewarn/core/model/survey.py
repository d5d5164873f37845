"""What of the fleet a rollout is decided by: its hosts, and whom work on each disturbs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from forewarn.core.copies import replace
from forewarn.core.model.armed import ArmedDomain
from forewarn.core.model.budget import Budget
from forewarn.core.model.footprint import Footprint
from forewarn.core.model.hold import Hold
from forewarn.core.model.host import Host
from forewarn.core.model.order import Order
from forewarn.core.model.project import Project
from forewarn.core.words import GroupName, HostName, ProjectName

_UNDISTURBING = Footprint()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSurvey:
    """What of the fleet a rollout is decided by."""

    hosts: Mapping[HostName, Host] = field(default_factory=dict)
    footprints: Mapping[HostName, Footprint] = field(default_factory=dict)
    orders: Mapping[HostName, Order] = field(default_factory=dict)  # what each host has open already
    armed: Mapping[GroupName, Mapping[int, ArmedDomain]] = field(default_factory=dict)
    budgets: Mapping[GroupName, Budget] = field(default_factory=dict)
    notices: Mapping[GroupName, timedelta] = field(default_factory=dict)  # what groups ask for
    sizes: Mapping[GroupName, int] = field(default_factory=dict)  # how many members groups have
    holds: tuple[Hold, ...] = ()
    projects: Mapping[ProjectName, Project] = field(default_factory=dict)

    def with_domains_at_once(self) -> "HostSurvey":
        """Return the same hosts, each done in one go whatever update domains it carries."""
        at_once = {host: replace(footprint, at_once=True) for host, footprint in self.footprints.items()}
        return replace(self, footprints=at_once)

    def footprint(self, host: HostName) -> Footprint:
        """Return whom work on a host disturbs."""
        return self.footprints.get(host, _UNDISTURBING)
