"""The fleet as declared."""

from dataclasses import dataclass

from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.machine import MachineTraits
from forewarn.core.model.project import Project
from forewarn.core.words import (
    DEFAULT_PROJECT,
    GroupKind,
    GroupName,
    HostName,
    MachineName,
    ProjectName,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSpec(MachineTraits):
    """A machine, as declared."""

    name: MachineName
    host: HostName | None = None  # its first one; may be left out for a machine that is known
    group: GroupName | None = None  # None: standalone
    project: ProjectName = DEFAULT_PROJECT  # its group's, where it has one


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
