"""A rehearsal on a running server, as it is kept: after a restart, and for other servers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from forewarn.core.rehearsal.faults import Fault
from forewarn.core.words import ProjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRehearsal:
    """A rehearsal that goes on, or that somebody has ended for good."""

    project: ProjectName
    id: str
    scenario: str
    machines: Mapping[str, str]  # their names by their ids, in the order in which they were named
    faults: tuple[Fault, ...] = ()
    by: str
    begun_at: datetime
    renewed_at: datetime  # real time: when it was last asked for
    ended_by: str = ""  # who has ended it, so that whoever plays it does not begin it again
