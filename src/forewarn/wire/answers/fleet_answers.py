"""Machines, groups, hosts, projects, and the fleet as it is declared."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, ClassVar, Self

from forewarn.core.basic_types import GroupKind, HostState, MachineState
from forewarn.core.model.declaration import HostDrivers
from forewarn.core.model.fleet_counts import FleetSummary
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host, HostLoad, HostResource
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
    """A machine, and what its guests have made known."""

    NOUN: ClassVar = "machine"

    vm_id: str
    name: str
    project: str
    group: str | None  # null: standalone
    host: str | None
    state: MachineState
    enabled: bool
    last_seen: datetime | None
    source: str  # who speaks for it: people, or the driver that it was imported by
    bound_for: str | None  # the host that it moves to, or that is kept for it

    @classmethod
    def of(cls, machine: Machine, group: Group, *, last_seen: datetime | None) -> Self:
        """Show a machine of a group."""
        listed = None if group.kind is GroupKind.STANDALONE else group.name
        return cls.like(machine, vm_id=machine.id, group=listed, enabled=group.enabled, last_seen=last_seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAnswer(ApiAnswer):
    """A group of machines, which events are delivered to."""

    NOUN: ClassVar = "group"

    name: str
    project: str
    kind: GroupKind
    update_domains: int
    incarnation: int
    enabled: bool
    enabled_at: datetime | None
    policy: Mapping[str, Any]
    source: str  # who speaks for it: people, or the driver that it was imported by

    @classmethod
    def of(cls, group: Group) -> Self:
        """Show a group, with its policy as it is declared."""
        return cls.like(group, policy=write_policy(group.policy))


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAnswer(ApiAnswer):
    """What carries machines."""

    NOUN: ClassVar = "host"

    name: str
    state: HostState
    driver: str  # who does the work on it: its own, or that of the fleet
    uri: str | None  # where its driver reaches it
    at_once: int | None  # how many calls its driver may make there together; null: as the driver says
    resources: Mapping[str, HostResource]  # what machines take of it
    labels: Mapping[str, str]
    bare_metal: bool  # it is itself the one machine that it carries
    cordoned_for: str | None  # the order that has cordoned it; null: nobody, or a person
    source: str  # who speaks for it: people, or the driver that it was imported by
    reachable: bool | None  # whether its driver reaches it; null: it was not asked, or cannot tell
    reached_at: datetime | None  # when its driver last reached it, in service time
    unreachable_since: datetime | None
    unreachable_because: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedHostAnswer(HostAnswer):
    """A host, how many machines are on it, and what is free for more."""

    carried: int  # how many machines
    free: Mapping[str, float]  # what is left of each of its `resources`

    @classmethod
    def of(cls, host: Host, load: HostLoad, drivers: HostDrivers, **reached: Any) -> Self:
        """Show a host, who does the work on it, and whether they reach it."""
        return cls.like(host, load, driver=drivers.of(host.name), **reached)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostWithMachinesAnswer(HostAnswer):
    """A host, the names of the machines it carries, and of the projects that those belong to."""

    machines: tuple[str, ...]
    projects: tuple[str, ...]

    @classmethod
    def of(cls, host: Host, machines: Iterable[Machine], drivers: HostDrivers, **reached: Any) -> Self:
        """Show a host and the machines it carries."""
        names = tuple(machine.name for machine in machines)
        projects = sorted({machine.project for machine in machines})
        return cls.like(host, machines=names, projects=projects, driver=drivers.of(host.name), **reached)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverAnswer(ApiAnswer):
    """Who can do work."""

    NOUN: ClassVar = "driver"

    name: str
    kind: str | None  # null: it is not installed
    hosts: int  # how many it works on
    installed: bool  # and can be used; else what it has to do waits
    why: str | None  # it cannot be used


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAnswer(ApiAnswer):
    """When maintenance may disturb a project."""

    days: tuple[str, ...]
    start: str
    length: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectAnswer(ApiAnswer):
    """A tenant, and what it has declared."""

    NOUN: ClassVar = "project"

    name: str
    time_zone: str
    windows: tuple[WindowAnswer, ...]
    blackout: tuple[date, ...]
    rehearsal: bool
    sees_hosts: bool
    source: str  # who speaks for it: people, or the driver that it was imported by

    @classmethod
    def of(cls, project: Project) -> Self:
        """Show a project, with what it leaves to its default."""
        calendar = project.calendar
        return cls.like(
            project,
            time_zone=str(calendar.zone),
            windows=tuple(WindowAnswer(**each) for each in PROJECT["windows"].write(calendar.windows)),
            blackout=tuple(sorted(calendar.blackout)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryAnswer(FleetSummary, ApiAnswer):
    """What there is, counted; null what the caller does not see."""

    NOUN: ClassVar = "summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetAnswer(ApiAnswer):
    """A fleet, as it would be declared."""

    fleet: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedFleetAnswer(FleetAnswer):
    """A fleet, as it would be declared, and what was changed to get there."""

    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedDomainsAnswer(ApiAnswer):
    """What changes so that update domains follow the hosts, and how many waves a rollout then has."""

    waves_before: int
    waves_after: int
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportAnswer(ApiAnswer):
    """What an import changes, and what it leaves alone."""

    source: str  # the driver that was asked
    changes: tuple[str, ...]
    conflicts: tuple[str, ...]  # where the source and people differ: theirs stays
    notes: tuple[str, ...]  # what was found and not taken, or could not be looked at
    removes: int  # machines that are gone
    of: int  # how many the source had imported
    removes_half: bool  # then it wants to be told that this is meant
    digest: str  # of this difference
    applied: bool
