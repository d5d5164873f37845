"""How the declared fleet is read: projects, groups, hosts, machines and who has polled."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.project import Project
from forewarn.core.words import (
    GroupName,
    HostName,
    MachineId,
    MachineName,
    ProjectName,
)


class FleetReads(Protocol):
    """Reads the declared fleet."""

    def machine(self, name: str, *, project: ProjectName | None) -> Machine:
        """Find a machine by its name, any case; NotFound, or Conflict if several projects have it."""
        ...

    def machine_by_id(self, machine: MachineId) -> Machine | None:
        """Find a machine by its id."""
        ...

    def machines(
        self,
        *,
        after: str | None,
        limit: int,
        group: GroupName | None = None,
        host: HostName | None = None,
    ) -> tuple[Sequence[Machine], str | None]:
        """List machines by project and name: all, or those of a group, on a host, or both.

        Returns the cursor of the next page, None at the end.
        """
        ...

    def groups(self, *, after: str | None, limit: int) -> tuple[Sequence[Group], str | None]:
        """List groups by name, standalone machines left out."""
        ...

    def group(self, name: GroupName) -> Group | None:
        """Find a group, a standalone machine's own included."""
        ...

    def idle_groups(self, *, since: datetime, limit: int) -> Sequence[Group]:
        """List enabled groups whose last saved activity is not after a moment, the longest idle first."""
        ...

    def next_group_ready(self, *, after: datetime) -> datetime | None:
        """Say when the next group becomes ready, of those that become so after a moment."""
        ...

    def oldest_activity(self) -> datetime | None:
        """Say when the enabled group that has been silent for longest was last active."""
        ...

    def hosts(self, *, after: str | None, limit: int) -> tuple[Sequence[Host], str | None]:
        """List hosts by name."""
        ...

    def host(self, name: HostName) -> Host | None:
        """Find a host."""
        ...

    def projects(self) -> Sequence[Project]:
        """List all projects by name."""
        ...

    def page_of_projects(self, *, after: str | None, limit: int) -> tuple[Sequence[Project], str | None]:
        """List projects by name, and give the cursor of the next page."""
        ...

    def last_seen(self, machines: Sequence[MachineId]) -> Mapping[MachineId, datetime]:
        """Say when each of these machines was last seen, as far as that is saved."""
        ...

    def silent_machines(self, hosts: Sequence[HostName]) -> Mapping[MachineId, MachineName]:
        """Find the machines on these hosts that were never seen, as far as that is saved."""
        ...

    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Count machines, hosts, orders and listed events by state, for the metrics."""
        ...

    def applied_fleet(self) -> str | None:
        """Return the digest of the fleet file last applied."""
        ...
