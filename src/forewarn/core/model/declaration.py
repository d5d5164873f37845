"""The fleet as declared."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.project import Project
from forewarn.core.words import (
    DEFAULT_PROJECT,
    GroupKind,
    GroupName,
    HostName,
    MachineName,
    Priority,
    ProjectName,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSpec:
    """A machine, as declared."""

    name: MachineName
    host: HostName | None = None  # its first one; may be left out for a machine that is known
    group: GroupName | None = None  # None: standalone
    project: ProjectName = DEFAULT_PROJECT  # its group's, where it has one
    update_domain: int = 0
    fault_domain: int = 0
    priority: Priority = Priority.REGULAR
    network: str = ""
    address: str | None = None
    port: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    location: str = ""
    zone: str = ""
    size: str = ""
    os: str = ""


NO_POLICY = GroupPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec:
    """A group, as declared."""

    name: GroupName
    kind: GroupKind
    update_domains: int = 1
    project: ProjectName = DEFAULT_PROJECT
    policy: GroupPolicy = NO_POLICY


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSpec:
    """A whole fleet, as declared."""

    projects: tuple[Project, ...] = (Project(name=DEFAULT_PROJECT),)
    groups: tuple[GroupSpec, ...] = ()
    hosts: tuple[HostName, ...] = ()
    machines: tuple[MachineSpec, ...] = ()
