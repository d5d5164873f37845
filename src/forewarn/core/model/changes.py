"""What one use case has changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from forewarn.core.model.declaration import FleetDefaults
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.hold import Hold
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.project import Project
from forewarn.core.model.promise import MonthlyPromises
from forewarn.core.model.record import Record
from forewarn.core.model.rollout import Rollout
from forewarn.core.words import GroupName, HostName, Kind, MachineId, ProjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What one use case has changed: saved in one transaction, or not at all."""

    now: datetime
    number: int  # of the newest record, after these
    defaults: FleetDefaults | None = None  # None: as they were
    projects: tuple[Project, ...] = ()
    hosts: tuple[Host, ...] = ()
    groups: tuple[Group, ...] = ()
    machines: tuple[Machine, ...] = ()
    orders: tuple[Order, ...] = ()
    events: tuple[Event, ...] = ()
    records: tuple[Record, ...] = ()
    holds: tuple[Hold, ...] = ()
    rollouts: tuple[Rollout, ...] = ()
    removed_holds: tuple[str, ...] = ()
    removed_projects: tuple[ProjectName, ...] = ()
    removed_hosts: tuple[HostName, ...] = ()
    removed_groups: tuple[GroupName, ...] = ()
    removed_machines: tuple[MachineId, ...] = ()
    # Groups that lost an event, gained a healthy machine or have another policy: orders that wait for them
    # are looked at again.
    relieved_groups: frozenset[GroupName] = frozenset()
    # Hosts that gained a machine: an order on one must give it its own notice.
    hosts_gaining_machines: frozenset[HostName] = frozenset()
    # All groups and hosts that anything has changed about, before and after: rollouts may wait for them.
    changed_groups_and_hosts: frozenset[str] = frozenset()
    # Something that concerns every open order has changed.
    wake_all: bool = False
    # A group with a budget lost a machine, or needs more: rollouts may wait for what will never be.
    budgets_tightened: bool = False
    # How many more machines the records of a kind name, for the metrics.
    tallies: Mapping[Kind, int] = field(default_factory=dict)
    # What has become of promises, to be added to what is counted.
    promises: tuple[MonthlyPromises, ...] = ()
