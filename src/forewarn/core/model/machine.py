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
    """The declared properties of a machine except its name and place."""

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
    labels: Mapping[str, str] = field(default_factory=dict)  # the labels that its host must have


TRAITS = tuple(each.name for each in fields(MachineTraits))


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine(MachineTraits):
    """A virtual machine."""

    id: MachineId
    name: MachineName
    project: ProjectName
    group: GroupName
    host: HostName | None  # None: evicted and not started again
    last_host: HostName | None = None  # if it is on no host: the previous one, which may still define it
    bound_for: HostName | None = None  # the host that it moves to
    state: MachineState = MachineState.RUNNING
    source: str = DECLARED  # a person, a fleet file, or the driver that imported it

    @property
    def destination(self) -> HostName | None:
        """The host whose load it counts for: the one that it moves to, or the one that it is on."""
        return self.host if self.bound_for is None else self.bound_for
