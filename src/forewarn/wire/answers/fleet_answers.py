"""Answers about machines, groups, hosts, projects, drivers and the declared fleet."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, ClassVar, Self

from forewarn.core.basic_types import GroupKind, HostState, MachineState
from forewarn.core.model.fleet_counts import FleetSummary
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host, HostResource
from forewarn.core.model.machine import Machine, MachineTraits
from forewarn.core.model.project import Project
from forewarn.wire.answers.answer import ApiAnswer, leading
from forewarn.wire.fleet import write_policy
from forewarn.wire.projects import PROJECT


@leading(
    *("vm_id", "name", "project", "group", "host"), *("update_domain", "fault_domain", "priority", "state")
)
@dataclass(frozen=True, slots=True, kw_only=True)
class MachineAnswer(MachineTraits, ApiAnswer):
    """A virtual machine: its declaration and its state."""

    NOUN: ClassVar = "machine"

    vm_id: str  #: Permanent id of the machine: the UUID from its hypervisor, or one that forewarn made.
    name: str  #: Name of the machine, unique in its project.
    project: str  #: Project of the machine.
    group: str | None  #: Group of the machine. Null: the machine is standalone.
    host: str | None  #: Host that carries the machine. Null: the machine was evicted.
    state: MachineState  #: State of the machine, such as `running` or `moving`.
    enabled: bool  #: Whether the guests of its group poll for events.
    last_seen: datetime | None  #: Last poll of the machine, in service time. Null: never.
    source: str  #: `declared` or `put` by people, or the driver that imports the machine.
    bound_for: str | None  #: Host that the machine is moving to, or that has room reserved for it.

    @classmethod
    def of(cls, machine: Machine, group: Group, *, last_seen: datetime | None) -> Self:
        """Show a machine of a group."""
        listed = None if group.kind is GroupKind.STANDALONE else group.name
        return cls.like(machine, vm_id=machine.id, group=listed, enabled=group.enabled, last_seen=last_seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAnswer(ApiAnswer):
    """A group of machines: the audience of an event."""

    NOUN: ClassVar = "group"

    name: str  #: Name of the group, unique in the fleet.
    project: str  #: Project of the group.
    kind: GroupKind  #: `cloud-service`, `availability-set` or `scale-set`.
    update_domains: int  #: Number of update domains.
    incarnation: int  #: Version of the group's document. It increases by one when an event changes.
    enabled: bool  #: Whether the guests of the group poll for events.
    enabled_at: datetime | None  #: When a guest first polled, in service time. Null: never.
    policy: Mapping[str, Any]  #: The declared policy. Keys with their default are left out.
    source: str  #: `declared` or `put` by people, or the driver that imports the group.

    @classmethod
    def of(cls, group: Group) -> Self:
        """Show a group."""
        return cls.like(group, policy=write_policy(group.policy))


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAnswer(ApiAnswer):
    """A physical node that runs machines."""

    NOUN: ClassVar = "host"

    name: str  #: Name of the host.
    state: HostState  #: `ok`, `cordoned`, `degraded`, `failed` or `lost`.
    driver: str  #: Driver that does the work on its machines: its own, or the default of the fleet.
    uri: str | None  #: Where the driver connects to the host.
    at_once: int | None  #: Maximum number of concurrent driver calls. Null: the driver's default.
    resources: Mapping[str, HostResource]  #: Capacity for machines, by resource name.
    labels: Mapping[str, str]  #: Labels that machines can require.
    bare_metal: bool  #: Whether the host is itself its only machine.
    cordoned_for: str | None  #: Order that cordoned the host. Null: not cordoned, or cordoned by a person.
    source: str  #: `declared` or `put` by people, or the driver that imports the host.
    reachable: bool | None  #: Whether the driver reaches the host. Null: not known.
    reached_at: datetime | None  #: When the driver last reached the host, in service time.
    unreachable_since: datetime | None  #: Since when the driver cannot reach the host. Null: it can.
    unreachable_because: str | None  #: Error of the driver. Null: the driver reaches the host.


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedHostAnswer(HostAnswer):
    """A host in a list, with its load."""

    carried: int  #: Number of machines on the host.
    free: Mapping[str, float]  #: Free capacity, by resource name. Machines on their way already count.


@dataclass(frozen=True, slots=True, kw_only=True)
class HostWithMachinesAnswer(HostAnswer):
    """A host with its machines."""

    machines: tuple[str, ...]  #: Names of the machines on the host.
    projects: tuple[str, ...]  #: Projects of these machines.

    @classmethod
    def of(cls, host: Host, machines: Iterable[Machine], **more: Any) -> Self:
        """Show a host and its machines."""
        names = tuple(machine.name for machine in machines)
        projects = sorted({machine.project for machine in machines})
        return cls.like(host, machines=names, projects=projects, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverAnswer(ApiAnswer):
    """A driver, installed or named by a host."""

    NOUN: ClassVar = "driver"

    name: str  #: Name of the driver.
    kind: str | None  #: Type of the driver, such as `libvirt` or `command`. Null: not installed.
    hosts: int  #: Number of hosts that use the driver.
    installed: bool  #: Whether the driver can be used. If not, its work waits.
    why: str | None  #: Why the driver cannot be used. Null: it can, or the reason is not known.


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAnswer(ApiAnswer):
    """A maintenance window of a project."""

    days: tuple[str, ...]  #: Weekdays on which the window opens, such as `sat`.
    start: str  #: Time of day when the window opens, such as `22:00`, in the project's time zone.
    length: float  #: Length in seconds.


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectAnswer(ApiAnswer):
    """A project: a tenant with its groups, machines and tokens."""

    NOUN: ClassVar = "project"

    name: str  #: Name of the project.
    time_zone: str  #: IANA time zone of the windows and blackout days.
    windows: tuple[WindowAnswer, ...]  #: When maintenance may happen. Empty: at any time.
    blackout: tuple[date, ...]  #: Days without maintenance.
    rehearsal: bool  #: Whether scenarios may run on the machines of the project.
    sees_hosts: bool  #: Whether the project's users see the names of hosts and operators.
    source: str  #: `declared` or `put` by people, or the driver that imports the project.

    @classmethod
    def of(cls, project: Project) -> Self:
        """Show a project, with defaults filled in."""
        calendar = project.calendar
        return cls.like(
            project,
            time_zone=str(calendar.zone),
            windows=tuple(WindowAnswer(**each) for each in PROJECT["windows"].write(calendar.windows)),
            blackout=tuple(sorted(calendar.blackout)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryAnswer(FleetSummary, ApiAnswer):
    """Counts of the fleet. A count is null if the caller may not see it."""

    NOUN: ClassVar = "summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetAnswer(ApiAnswer):
    """The fleet as a declaration."""

    fleet: Mapping[str, Any]  #: The declaration, with the keys of the fleet file.


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedFleetAnswer(FleetAnswer):
    """The fleet after a declaration was applied."""

    changes: tuple[str, ...]  #: One line for each change, such as `+ machine web-0`.


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedDomainsAnswer(ApiAnswer):
    """Changes that align update domains with hosts."""

    waves_before: int  #: Number of waves that a rollout over all hosts has now.
    waves_after: int  #: Number of waves after the changes.
    changes: tuple[str, ...]  #: One line for each machine that gets another update domain.


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportAnswer(ApiAnswer):
    """The result of an import."""

    source: str  #: Driver that listed the machines.
    changes: tuple[str, ...]  #: One line for each change of the fleet.
    conflicts: tuple[str, ...]  #: Declared values that the driver reports differently. They stay.
    notes: tuple[str, ...]  #: Machines that were found and not imported, and hosts that did not answer.
    removes: int  #: Number of machines that the import removes.
    of: int  #: Number of machines that this driver had imported before.
    removes_half: bool  #: Whether half of them would be removed, so that the request needs `yes`.
    digest: str  #: Digest of the difference. Send it to apply exactly this difference.
    applied: bool  #: Whether the changes were made.
