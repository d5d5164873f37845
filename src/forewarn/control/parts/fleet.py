"""How the declared fleet is read."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from forewarn.core.disclosure import Names
from forewarn.core.model.fleet_counts import FleetSummary
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.project import Project
from forewarn.core.words import GroupName, HostName, MachineId, NameKind, ProjectName

# Fewer characters occur in the vm-ids of many machines.
LEAST_OF_ID = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFilter:
    """Which machines are asked for; None and nothing mean any."""

    project: ProjectName | None = None
    group: GroupName | None = None
    host: HostName | None = None
    places: frozenset[HostName] = frozenset()  # where they will be: the hosts that they are bound for, or on
    bound_for: HostName | None = None
    names: frozenset[str] = frozenset()  # in any case
    begins: str = ""  # how their names do, in any case
    # A part of the name, the address or (of at least `LEAST_OF_ID` characters) the vm-id, in any case.
    contains: str = ""


ANY_MACHINE = MachineFilter()


class FleetQueries(Protocol):
    """Reads projects, groups, hosts and machines of a scope."""

    def machine(self, name: str, *, project: ProjectName | None = None) -> Machine:
        """Find a machine by its name, any case; NotFound, or Conflict if several projects have it."""
        ...

    def machines(
        self, wanted: MachineFilter = ANY_MACHINE, *, after: str | None, limit: int
    ) -> tuple[Sequence[Machine], str | None]:
        """List machines by project and name; returns the cursor of the next page, None at the end."""
        ...

    def groups(self, *, after: str | None, limit: int) -> tuple[Sequence[Group], str | None]:
        """List groups by name, standalone machines left out."""
        ...

    def group(self, name: GroupName) -> Group | None:
        """Find a group, a standalone machine's own included."""
        ...

    def hosts(self, *, after: str | None, limit: int) -> tuple[Sequence[Host], str | None]:
        """List hosts by name; for a project, those that carry a machine of it."""
        ...

    def host(self, name: HostName) -> Host | None:
        """Find a host; for a project, if it carries a machine of it."""
        ...

    def unreachable_hosts(self) -> Sequence[Host]:
        """List the hosts that cannot be reached, by name."""
        ...

    def projects(self) -> Sequence[Project]:
        """List all projects by name."""
        ...

    def project(self, name: ProjectName) -> Project | None:
        """Find a project that is declared."""
        ...

    def names_among(self, words: Collection[str], *, project: ProjectName) -> Names:
        """Return which of some words are names, as a project would tell them apart."""
        ...

    def names_like(self, kind: NameKind, name: str, *, limit: int) -> Sequence[str]:
        """List those of the first names of a kind that are about as long as this one.

        The limit is how many are looked at.
        """
        ...

    def page_of_projects(self, *, after: str | None, limit: int) -> tuple[Sequence[Project], str | None]:
        """List projects by name, and return the cursor of the next page."""
        ...

    def summary(self) -> FleetSummary:
        """Count what there is; its cost grows with the machines, but none of them is read."""
        ...

    def stopped(self, machines: Sequence[MachineId]) -> frozenset[MachineId]:
        """Return which of these machines are stopped."""
        ...

    def last_seen(self, machines: Sequence[MachineId]) -> Mapping[MachineId, datetime]:
        """Return when each of these machines was last seen, as far as that is saved."""
        ...
