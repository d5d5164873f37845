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
class HostSpec:
    """A host, as declared."""

    name: HostName
    driver: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetDefaults:
    """What holds for every host that declares nothing else."""

    driver: str | None = None  # who does the work; None: nothing is said


NO_DEFAULTS = FleetDefaults()


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSpec:
    """A whole fleet, as declared."""

    projects: tuple[Project, ...] = (Project(name=DEFAULT_PROJECT),)
    groups: tuple[GroupSpec, ...] = ()
    defaults: FleetDefaults = NO_DEFAULTS
    hosts: tuple[HostSpec, ...] = ()
    machines: tuple[MachineSpec, ...] = ()
