"""Counts of the fleet: machines, hosts, groups and events by state."""

from collections.abc import Mapping
from dataclasses import dataclass

from forewarn.core.basic_types import GroupKind, GroupName, ProjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainSummary:
    """The machines of an update domain, and how many of them current events name."""

    update_domain: int  #: Index of the update domain.
    machines: int  #: Number of machines.
    states: Mapping[str, int]  #: Number of machines by state. States without a machine are left out.
    scheduled: int  #: Number of machines in current events with the status `Scheduled`.
    started: int  #: Number of machines in current events with the status `Started`.


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """The machines of a group; without a name, all standalone machines of a project."""

    name: GroupName | None  #: Name of the group. Null: the standalone machines of the project.
    project: ProjectName  #: Project of the machines.
    kind: GroupKind  #: Kind of group.
    machines: int  #: Number of machines.
    update_domains: tuple[DomainSummary, ...]  #: Counts by update domain.


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSummary:
    """Counts by state. A count that exists only for the whole fleet is None for one project."""

    machines: int  #: Number of machines.
    states: Mapping[str, int]  #: Number of machines by state.
    #: Number of hosts by state. For one project: hosts that carry its machines. Null: not visible.
    hosts: Mapping[str, int] | None
    events: Mapping[str, int]  #: Number of current events by status.
    orders: Mapping[str, int]  #: Number of open orders by state.
    rollouts: Mapping[str, int] | None  #: Number of open rollouts by state. Null: one project.
    holds: int | None  #: Number of holds. Null: one project.
    groups: tuple[GroupSummary, ...]  #: Counts by group name, then the standalone machines by project.
