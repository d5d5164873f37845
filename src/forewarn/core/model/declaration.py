"""The fleet as declared."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from forewarn.core.basic_types import (
    DECLARED,
    DEFAULT_PROJECT,
    EXTERNAL,
    GroupKind,
    GroupName,
    HostName,
    MachineId,
    MachineName,
    ProjectName,
)
from forewarn.core.model.group import Group, GroupPolicy
from forewarn.core.model.host import Host, HostResource
from forewarn.core.model.machine import MachineTraits
from forewarn.core.model.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSpec(MachineTraits):
    """A machine, as declared."""

    name: MachineName
    host: HostName | None = None  # its first one; may be left out for a machine that is known
    group: GroupName | None = None  # None: standalone
    project: ProjectName = DEFAULT_PROJECT  # its group's, where it has one
    vm_id: MachineId | None = None  # None: the one that it has, or one that is made for it
    source: str = DECLARED  # whose word this is


NO_POLICY = GroupPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec:
    """A group, as declared."""

    name: GroupName
    kind: GroupKind
    update_domains: int = 1
    project: ProjectName = DEFAULT_PROJECT
    policy: GroupPolicy = NO_POLICY
    source: str = DECLARED  # whose word this is


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSpec:
    """A host, as declared."""

    name: HostName
    driver: str | None = None
    uri: str | None = None
    at_once: int | None = None
    resources: Mapping[str, HostResource] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    bare_metal: bool = False
    source: str = DECLARED  # whose word this is


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetDefaults:
    """What holds for every host that declares nothing else."""

    driver: str | None = None  # who does the work; None: nothing is said

    def driver_of(self, own: str | None) -> str:
        """Return who does the work on a host that declares this; where nothing is said, somebody outside."""
        return own or self.driver or EXTERNAL


NO_DEFAULTS = FleetDefaults()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostDrivers:
    """Who does the work on which host."""

    defaults: FleetDefaults = NO_DEFAULTS
    own: Mapping[HostName, str] = field(default_factory=dict)  # of the hosts that declare one

    def of(self, host: HostName) -> str:
        """Return who does the work on a host."""
        return self.defaults.driver_of(self.own.get(host))


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSpec:
    """A whole fleet, as declared."""

    projects: tuple[Project, ...] = (Project(name=DEFAULT_PROJECT),)
    groups: tuple[GroupSpec, ...] = ()
    defaults: FleetDefaults = NO_DEFAULTS
    hosts: tuple[HostSpec, ...] = ()
    machines: tuple[MachineSpec, ...] = ()


def host_spec(host: Host) -> HostSpec:
    """Return how a host would be declared."""
    return HostSpec(**{each.name: getattr(host, each.name) for each in fields(HostSpec)})


def group_spec(group: Group) -> GroupSpec:
    """Return how a group would be declared."""
    return GroupSpec(**{each.name: getattr(group, each.name) for each in fields(GroupSpec)})
