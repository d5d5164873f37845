"""Counts of the fleet: machines, hosts, groups and events by state."""

from collections.abc import Mapping
from dataclasses import dataclass

from forewarn.core.basic_types import GroupKind, GroupName, ProjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainSummary:
    """The machines of an update domain, and how many of them current events name."""

    update_domain: int
    machines: int
    states: Mapping[str, int]  # without states that no machine is in
    scheduled: int
    started: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """The machines of a group; without a name, all standalone machines of a project."""

    name: GroupName | None
    project: ProjectName
    kind: GroupKind
    machines: int
    update_domains: tuple[DomainSummary, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSummary:
    """Counts by state; None: the count is of the whole fleet, and one project was asked for."""

    machines: int
    states: Mapping[str, int]
    hosts: Mapping[str, int] | None  # for a project: the hosts that carry its machines
    events: Mapping[str, int]  # listed ones
    orders: Mapping[str, int]  # open ones
    rollouts: Mapping[str, int] | None  # open ones
    holds: int | None
    groups: tuple[GroupSummary, ...]  # by name, then the standalone machines of each project
