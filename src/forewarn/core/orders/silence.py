"""What of the silence of those who work outside counts after a start of the service.

While a server runs, silence is counted by its monotonic clock, which cannot be set. Over a start only what
was saved is known, by the system's clock.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from forewarn.core.model.clock_slew import BRIEF, Absence

NOTHING = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """Until when a server ran before this start, in real time, and when it had been away before."""

    until: datetime
    absences: tuple[Absence, ...] = ()


def before_start(
    limit: timedelta, heard_at: datetime | None, presence: Presence | None, *, now: datetime
) -> timedelta:
    """Return how much of an order's silence counts that was before a start of the service.

    After a brief restart the count goes on, and leaves a minute at least. An outage that lasted longer may
    have swallowed a report, and a clock that was set tells nothing: then it begins anew, as after any other
    absence.
    """
    if heard_at is None or presence is None or not NOTHING <= now - presence.until <= BRIEF:
        return NOTHING
    since = max([heard_at, *(each.until for each in presence.absences if not each.brief)])
    return max(min(presence.until - since, limit - BRIEF), NOTHING)
