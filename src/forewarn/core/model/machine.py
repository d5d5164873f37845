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

    update_domain: int = 0  #: Update domain, from 0.
    fault_domain: int = 0  #: Fault domain, from 0.
    priority: Priority = Priority.REGULAR  #: `regular`, or `spot` if it may be evicted.
    network: str = ""  #: Name of its network.
    address: str | None = None  #: Source address of its requests. Null: not declared.
    mac: str | None = None  #: MAC address. Null: not declared.
    port: int | None = None  #: Loopback port with a guest endpoint only for this machine. Null: none.
    tags: Mapping[str, str] = field(default_factory=dict)  #: Tags for instance metadata.
    location: str = ""  #: Location for instance metadata.
    zone: str = ""  #: Availability zone for instance metadata.
    size: str = ""  #: Machine size for instance metadata.
    os: str = ""  #: Operating system for instance metadata.
    mobility: Mobility = Mobility.COLD  #: How the machine can leave its host.
    resources: Mapping[str, float] = field(default_factory=dict)  #: Resources that it uses, by name.
    labels: Mapping[str, str] = field(default_factory=dict)  #: Labels that its host must have.


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
