"""Part of the fleet, as saved: what a decision is made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from forewarn.core.model.absence import Absence
from forewarn.core.model.armed import ArmedDomain
from forewarn.core.model.budget import Budget
from forewarn.core.model.declaration import NO_DEFAULTS, FleetDefaults
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.hold import Grace, Hold
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.pace import NO_MOVES, Pace
from forewarn.core.model.project import Project
from forewarn.core.model.room import Room
from forewarn.core.model.service_time import Slew
from forewarn.core.words import EventId, GroupName, HostName, MachineId, OrderId, ProjectName

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
    pace: Pace = NO_MOVES  # how long moves take in this fleet
    holds: Mapping[str, Hold] = field(default_factory=dict)  # all that are in force, wherever they reach
    # When machines of the loaded events were first sent them.
    sent: Sent = field(default_factory=dict)
