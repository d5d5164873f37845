"""The saved part of the fleet that a decision about orders or a rollout needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from forewarn.core.basic_types import EventId, GroupName, HostName, MachineId, OrderId, ProjectName, Work
from forewarn.core.model.clock_slew import Absence, Slew
from forewarn.core.model.constraints import ArmedDomain, Budget, Grace, Hold
from forewarn.core.model.declaration import NO_DEFAULTS, FleetDefaults
from forewarn.core.model.event import Event
from forewarn.core.model.footprint import NO_MOVES, Footprint, MovePace
from forewarn.core.model.group import Group, GroupPolicy
from forewarn.core.model.host import Host, Room
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.project import Project

# When each machine first received each event.
Sent: TypeAlias = Mapping[EventId, Mapping[MachineId, datetime]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The saved part of the fleet that a decision about some machines, hosts or orders needs.

    It contains those machines, all machines of those hosts, their hosts and groups, every open order that
    touches them, and the listed events of those orders.
    """

    number: int  # of the newest change in the feed
    defaults: FleetDefaults = NO_DEFAULTS
    projects: Mapping[ProjectName, Project] = field(default_factory=dict)
    hosts: Mapping[HostName, Host] = field(default_factory=dict)
    groups: Mapping[GroupName, Group] = field(default_factory=dict)
    machines: Mapping[MachineId, Machine] = field(default_factory=dict)
    orders: Mapping[OrderId, Order] = field(default_factory=dict)
    events: Mapping[EventId, Event] = field(default_factory=dict)
    # How many listed events each update domain of a group has, including those of orders not loaded here.
    listed: Mapping[GroupName, Mapping[int, int]] = field(default_factory=dict)
    # The armed ones among them.
    armed: Mapping[GroupName, Mapping[int, ArmedDomain]] = field(default_factory=dict)
    # The load of the emptiest usable hosts: as many as there are machines to move, and some more. None: not
    # loaded, so nothing can be moved.
    room: Mapping[HostName, Room] | None = None
    # The budgets of the groups that have one.
    budgets: Mapping[GroupName, Budget] = field(default_factory=dict)
    grace: Grace | None = None
    slew: Slew | None = None  # if service time is ahead of the system clock
    absences: tuple[Absence, ...] = ()  # times in which the server received no polls
    pace: MovePace = NO_MOVES  # how long moves take in this fleet
    holds: Mapping[str, Hold] = field(default_factory=dict)  # all holds of the fleet
    # When machines of the loaded events first received them.
    sent: Sent = field(default_factory=dict)


_UNDISTURBING = Footprint()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSurvey:
    """The part of the fleet that a decision about a rollout needs."""

    hosts: Mapping[HostName, Host] = field(default_factory=dict)
    footprints: Mapping[HostName, Footprint] = field(default_factory=dict)
    orders: Mapping[HostName, Order] = field(default_factory=dict)  # the open order of each host
    armed: Mapping[GroupName, Mapping[int, ArmedDomain]] = field(default_factory=dict)
    # The next four are of the disturbed groups; standalone machines are not included.
    budgets: Mapping[GroupName, Budget] = field(default_factory=dict)
    notices: Mapping[GroupName, timedelta] = field(default_factory=dict)  # if a policy asks for one
    sizes: Mapping[GroupName, int] = field(default_factory=dict)  # numbers of members
    policies: Mapping[GroupName, GroupPolicy] = field(default_factory=dict)  # other than the default
    heard: frozenset[GroupName] = frozenset()  # the disturbed groups whose guests have ever polled
    # How many machines of a group may be disturbed together in any update domain, if limited.
    at_most: Mapping[GroupName, int] = field(default_factory=dict)
    racks: Mapping[str, int] = field(default_factory=dict)  # the hosts in each that take machines
    holds: tuple[Hold, ...] = ()
    slew: Slew | None = None  # if service time is ahead of the system clock
    pace: MovePace = NO_MOVES  # how long moves take in this fleet
    projects: Mapping[ProjectName, Project] = field(default_factory=dict)

    def all_domains_at_once(self) -> "HostSurvey":
        """Return the survey for work on all update domains of each host at once."""
        at_once = {host: replace(footprint, at_once=True) for host, footprint in self.footprints.items()}
        return replace(self, footprints=at_once)

    def disturbed_by(self, work: Work) -> "HostSurvey":
        """Return the survey for some work: ignore the update domains of groups whose policy allows it."""
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
        """Return the footprint of work on a host."""
        return self.footprints.get(host, _UNDISTURBING)
