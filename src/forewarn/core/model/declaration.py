"""A declared fleet, as in a fleet file."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from forewarn.core.basic_types import (
    DECLARED,
    DEFAULT_PROJECT,
    EXTERNAL,
    GroupName,
    HostName,
    MachineId,
    MachineName,
    ProjectName,
)
from forewarn.core.model.group import Group, GroupTraits
from forewarn.core.model.host import Host, HostTraits
from forewarn.core.model.machine import MachineTraits
from forewarn.core.model.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSpec(MachineTraits):
    """A declared machine."""

    name: MachineName
    host: HostName | None = None  # its first host; optional for a known machine
    group: GroupName | None = None  # None: standalone
    project: ProjectName = DEFAULT_PROJECT  # of its group, if it has one
    vm_id: MachineId | None = None  # None: its present id, or a new one
    source: str = DECLARED  # who declares it


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec(GroupTraits):
    """A declared group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSpec(HostTraits):
    """A declared host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetDefaults:
    """The settings of hosts that declare nothing else."""

    driver: str | None = None  # None: not declared

    def driver_of(self, own: str | None) -> str:
        """Return the driver of a host that declares `own`; by default, `external`."""
        return own or self.driver or EXTERNAL


NO_DEFAULTS = FleetDefaults()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostDrivers:
    """The driver of each host."""

    defaults: FleetDefaults = NO_DEFAULTS
    own: Mapping[HostName, str] = field(default_factory=dict)  # of the hosts that declare one

    def of(self, host: HostName) -> str:
        """Return the driver of a host."""
        return self.defaults.driver_of(self.own.get(host))


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSpec:
    """A declared fleet."""

    projects: tuple[Project, ...] = (Project(name=DEFAULT_PROJECT),)
    groups: tuple[GroupSpec, ...] = ()
    defaults: FleetDefaults = NO_DEFAULTS
    hosts: tuple[HostSpec, ...] = ()
    machines: tuple[MachineSpec, ...] = ()


def host_spec(host: Host) -> HostSpec:
    """Return the declaration of a host."""
    return HostSpec(**{each.name: getattr(host, each.name) for each in fields(HostSpec)})


def group_spec(group: Group) -> GroupSpec:
    """Return the declaration of a group."""
    return GroupSpec(**{each.name: getattr(group, each.name) for each in fields(GroupSpec)})
