"""Windows: maintenance starts where its end fits into them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from forewarn.core.checks.change import MOVING, PLANNED, Change
from forewarn.core.model.windows import Calendar
from forewarn.core.words import EventStatus

MOMENT, MINUTE, DAY = timedelta(microseconds=1), timedelta(minutes=1), timedelta(days=1)


def windows_are_heeded(change: Change) -> Iterator[str]:
    """Maintenance starts only where its expected end fits into the windows of all it disturbs."""
    for event in change.after.events.values():
        order, known = change.after.orders[event.order], change.before.events.get(event.id)
        if event.status is not EventStatus.STARTED or (known and known.status is EventStatus.STARTED):
            continue
        if order.action not in PLANNED or order.terms.emergency:
            continue
        past = order.terms.deadline is not None and order.terms.deadline <= change.now
        project = change.after.groups[event.group].project
        calendar = change.after.projects[project].calendar
        work = order.terms.expected or change.policy.expected_work
        if order.stages[event.stage].kind in MOVING:
            work = MINUTE  # at least; how long a move takes is no rule
        moments = [change.now + index * MINUTE for index in range(work // MINUTE)]
        moments.append(change.now + work - MOMENT)
        if (slew := change.after.slew) is not None:
            moments = [slew.to_system(moment) for moment in moments]
        if not past and not all(_is_open(calendar, moment) for moment in moments):
            yield f"{event.id} started outside the window of {project}"


def _is_open(calendar: Calendar, moment: datetime) -> bool:
    """Return whether a moment lies in a window, by looking at each one on the wall."""
    local = moment.astimezone(calendar.zone)
    if local.date() in calendar.blackout:
        return False
    for window in calendar.windows:
        for back in range(window.length // DAY + 2):
            day = local.date() - back * DAY
            opens = datetime.combine(day, window.start, tzinfo=calendar.zone).astimezone(UTC)
            if day.weekday() in window.days and opens <= moment < opens + window.length:
                return True
    return not calendar.windows
