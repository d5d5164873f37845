"""The fleet, counted: what of it there is, in which state, and what is announced to it."""

from collections.abc import Mapping
from dataclasses import dataclass

from forewarn.core.basic_types import GroupKind, GroupName, ProjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainSummary:
    """The machines of an update domain, and how many of them current events name."""

    update_domain: int
    machines: int
    states: Mapping[str, int]  # those that some machine is in
    scheduled: int
    started: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """The machines of a group; or, without a name, all standalone machines of a project."""

    name: GroupName | None
    project: ProjectName
    kind: GroupKind
    machines: int
    update_domains: tuple[DomainSummary, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSummary:
    """What there is, by its state; None: it belongs to no project, and one project alone is asked for."""

    machines: int
    states: Mapping[str, int]
    hosts: Mapping[str, int] | None  # for a project, those that carry a machine of it
    events: Mapping[str, int]  # listed ones
    orders: Mapping[str, int]  # open ones
    rollouts: Mapping[str, int] | None  # open ones
    holds: int | None
    groups: tuple[GroupSummary, ...]  # by name, and after them the standalone machines of each project
