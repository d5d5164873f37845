"""A rollout that is planned before its turn: others should not wait while many hosts are cut into waves."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from forewarn.core.copies import replace
from forewarn.core.model.rollout import Rollout
from forewarn.core.model.slice import HostSurvey
from forewarn.core.words import HostName

# A rollout over more hosts has its orders placed by the engine's next look, some at a time.
MOST_HOSTS_AT_ONCE = 20
# A plan that is older, in service time, may have missed the beginning or the end of a window.
LONGEST_AGE = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlan:
    """A rollout that may be begun; the first wave of a large one has been chosen."""

    rollout: Rollout
    survey: HostSurvey  # what of the fleet it was decided by
    warnings: tuple[str, ...]
    made_at: datetime
    number: int  # the newest change that was known

    @property
    def is_large(self) -> bool:
        """Whether its orders are placed later."""
        return is_large(self.rollout.hosts)

    def is_recent(self, now: datetime) -> bool:
        """Return whether little time has passed since."""
        return timedelta() <= now - self.made_at <= LONGEST_AGE


def is_large(hosts: Collection[HostName]) -> bool:
    """Return whether the orders of a rollout over these hosts are placed some at a time from the first."""
    return len(hosts) > MOST_HOSTS_AT_ONCE


def are_alike(one: HostSurvey, other: HostSurvey) -> bool:
    """Return whether a plan that was made of one survey may be carried out by another.

    How long moves have taken decides nothing.
    """
    return replace(one, pace=other.pace) == other
