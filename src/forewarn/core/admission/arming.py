"""When an event is armed: from then on it keeps other update domains of its group away, and may start.

That is from its announcement, or, where its notice is longer than its type's minimum, from when only that
minimum is left or it is approved (rule 4). So a week's notice keeps nobody away until its last minutes.
"""

from datetime import datetime, timedelta

from forewarn.core.model.event import Event
from forewarn.core.moments import whole_second
from forewarn.core.policy import Notice, Policy

# However short work is said to be: an event that is looked at again and again is no better off.
LEAST_MOVE = timedelta(minutes=1)
# An event that has waited for long is moved further each time, but not beyond what others may wait for it.
LONGEST_MOVE = timedelta(minutes=30)


def with_announcement(notice: Notice) -> bool:
    """Return whether what is announced so is armed at once."""
    return notice.ahead <= notice.least


def arm_at(event: Event, policy: Policy) -> datetime:
    """Return when only the minimum is left of an event's notice."""
    return event.not_before - policy.notice(event.type)


def is_ready(event: Event, *, now: datetime, policy: Policy) -> bool:
    """Return whether an event is to be armed, if nobody keeps it from that.

    One that was refused before is ready whenever it is looked at: it has waited long enough.
    """
    return event.approved or event.postponed is not None or arm_at(event, policy) <= now


def postponed_until(event: Event, *, now: datetime, policy: Policy) -> datetime:
    """Return the NotBefore of an event that cannot be armed now: by then those it waits for may be over."""
    waited = timedelta() if event.postponed is None else event.not_before - event.postponed.since
    move = max(LEAST_MOVE, policy.expected_work, min(waited, LONGEST_MOVE))
    return whole_second(max(event.not_before, now + policy.notice(event.type) + move))
