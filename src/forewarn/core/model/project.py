"""Projects."""

from dataclasses import dataclass

from forewarn.core.model.windows import ALWAYS, Calendar
from forewarn.core.words import DECLARED, ProjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A tenant: groups, machines and people."""

    name: ProjectName
    calendar: Calendar = ALWAYS  # when maintenance may disturb it
    rehearsal: bool = False  # whether scenarios may be played on its machines
    sees_hosts: bool = False  # whether its people see the names of hosts and operators
    source: str = DECLARED  # who speaks for it: people, or the driver that it was imported by
