"""Part of the fleet, as saved: what a decision about orders, or about a rollout, is made from."""

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

# When each machine was first sent each event.
Sent: TypeAlias = Mapping[EventId, Mapping[MachineId, datetime]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Part of the fleet, as saved: all that a decision about some machines, hosts or orders needs.

    It holds those machines, all machines of those hosts, their hosts and groups, every open order that
    touches them, and the listed events of those orders.
    """

    number: int  # the newest of the feed
    defaults: FleetDefaults = NO_DEFAULTS
    projects: Mapping[ProjectName, Project] = field(default_factory=dict)
    hosts: Mapping[HostName, Host] = field(default_factory=dict)
    groups: Mapping[GroupName, Group] = field(default_factory=dict)
    machines: Mapping[MachineId, Machine] = field(default_factory=dict)
    orders: Mapping[OrderId, Order] = field(default_factory=dict)
    events: Mapping[EventId, Event] = field(default_factory=dict)
    # How many listed events each group has for each update domain, also those of orders not loaded here.
    listed: Mapping[GroupName, Mapping[int, int]] = field(default_factory=dict)
    # Those of them that are armed.
    armed: Mapping[GroupName, Mapping[int, ArmedDomain]] = field(default_factory=dict)
    # How full the emptiest sound hosts are: as many as the machines could be moved to, and some more.
    # None: it was not asked for, so nothing can be moved.
    room: Mapping[HostName, Room] | None = None
    # How many healthy machines groups need that ask for some.
    budgets: Mapping[GroupName, Budget] = field(default_factory=dict)
    grace: Grace | None = None
    slew: Slew | None = None  # how service time and the system's go on, if it is ahead
    absences: tuple[Absence, ...] = ()  # stretches in which guests could not be heard
    pace: MovePace = NO_MOVES  # how long moves take in this fleet
    holds: Mapping[str, Hold] = field(default_factory=dict)  # all that are in force, wherever they reach
    # When machines of the loaded events were first sent them.
    sent: Sent = field(default_factory=dict)


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
    pace: MovePace = NO_MOVES  # how long moves take in this fleet
    projects: Mapping[ProjectName, Project] = field(default_factory=dict)

    def all_domains_at_once(self) -> "HostSurvey":
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
