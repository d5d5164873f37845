"""What keeps work from starting: an operator's hold, and the grace after a jump of the clock."""

from dataclasses import dataclass
from datetime import datetime

from forewarn.core.words import HostName, ProjectName

# In words, where a hold of neither a project nor a host reaches.
FLEET_REACH = "the whole fleet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """An operator's order that nothing new is announced or started: anywhere, in a project, or on a host."""

    id: str
    reason: str
    by: str
    at: datetime
    project: ProjectName | None = None
    host: HostName | None = None
    abort: bool = False  # what is under way there is called off too


@dataclass(frozen=True, slots=True, kw_only=True)
class Grace:
    """Unapproved starts are deferred: the clock jumped, and guests lost that much of their notice."""

    until: datetime
    announced_before: datetime
