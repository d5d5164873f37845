"""Stretches of service time in which guests could not be heard."""

from dataclasses import dataclass
from datetime import datetime, timedelta

# A restart takes that long at most. A client that gets no answer for so long, and retries, loses nothing.
BRIEF = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """The service was down or frozen, or its clock jumped: nothing follows from not hearing guests."""

    since: datetime
    until: datetime

    @property
    def brief(self) -> bool:
        """Whether it is too short to matter for silence; it still takes notice from guests."""
        return self.until - self.since <= BRIEF
