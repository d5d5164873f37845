"""Machines."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from forewarn.core.basic_types import (
    DECLARED,
    GroupName,
    HostName,
    MachineId,
    MachineName,
    MachineState,
    Mobility,
    Priority,
    ProjectName,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineTraits:
    """What is declared of a machine beside its name and where it belongs."""

    update_domain: int = 0
    fault_domain: int = 0
    priority: Priority = Priority.REGULAR
    network: str = ""
    address: str | None = None
    mac: str | None = None
    port: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    location: str = ""
    zone: str = ""
    size: str = ""
    os: str = ""
    mobility: Mobility = Mobility.COLD
    resources: Mapping[str, float] = field(default_factory=dict)  # what it takes of its host
    labels: Mapping[str, str] = field(default_factory=dict)  # what it asks of its host


TRAITS = tuple(each.name for each in fields(MachineTraits))


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine(MachineTraits):
    """A virtual machine."""

    id: MachineId
    name: MachineName
    project: ProjectName
    group: GroupName
    host: HostName | None  # None: evicted, and not started again
    last_host: HostName | None = None  # of one that is on none: where it was, and its hypervisor may have it
    bound_for: HostName | None = None  # where it is being moved to
    state: MachineState = MachineState.RUNNING
    source: str = DECLARED  # who speaks for it: people, or the driver that it was imported by

    @property
    def destination(self) -> HostName | None:
        """The host that is to carry it: where it is counted when others look for one."""
        return self.host if self.bound_for is None else self.bound_for
