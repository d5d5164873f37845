"""The notice of events, the counts of promises, and windows (rules 1 and 11)."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from forewarn.core.basic_types import Action, EventStatus, Kind, Source
from forewarn.core.model.event import Event
from forewarn.core.model.order import Order
from forewarn.core.model.project import Calendar
from forewarn.core.model.record import PromiseCounts, Record
from tests.rules.change import MOVING, PLANNED, Change

_OF_PROMISES = (
    *(Kind.EVENT_STARTED, Kind.NOTICE_LATE, Kind.NOTICE_NEVER),
    *(Kind.PROMISE_BROKEN, Kind.UNANNOUNCED_IMPACT),
)


def notice_is_kept(change: Change) -> Iterator[str]:
    """Rules 1 and 11: only an approval or a failed host allows an early start; nothing is short or late.

    An emergency may shorten the notice, with a record of a broken promise.
    """
    for event in change.after.events.values():
        order = change.after.orders[event.order]
        known = change.before.events.get(event.id)
        if order.action is Action.FAIL:
            continue
        short = event.not_before - event.announced_at < _least_notice(event, order, change)
        broken = bool(order.terms.emergency) and any(
            record.event == event.id and record.kind == Kind.PROMISE_BROKEN for record in change.records
        )
        if known is None and short and not broken:
            yield f"{event.id} has {event.not_before - event.announced_at} of notice"
        started = event.status is EventStatus.STARTED
        starts = started and (known is None or known.status is EventStatus.SCHEDULED)
        if starts and not event.approved and change.now < event.not_before:
            yield f"{event.id} started {event.not_before - change.now} early"
        if starts and change.now >= event.not_before + change.policy.stale_after:
            yield f"{event.id} started {change.now - event.not_before} late, when no guest expected it"


def _least_notice(event: Event, order: Order, change: Change) -> timedelta:
    """Return the minimum notice of a type, or the setting for groups that never listened."""
    least, unheard = change.policy.notice(event.type), change.policy.unheard_notice
    listened = event.group in change.before.groups and change.before.groups[event.group].heard
    return least if unheard is None or order.source is Source.USER or listened else min(least, unheard)


def promises_are_counted(change: Change) -> Iterator[str]:
    """The counts of promises match the history, and each machine counts once."""
    if change.counted is None:
        return
    said = {kind: [record for record in change.records if record.kind == kind] for kind in _OF_PROMISES}
    recorded = PromiseCounts(
        late=sum(map(_names_in, said[Kind.NOTICE_LATE])),
        never=sum(map(_names_in, said[Kind.NOTICE_NEVER])),
        broken=len(said[Kind.PROMISE_BROKEN]),
        unannounced=len(said[Kind.UNANNOUNCED_IMPACT]),
    )
    found = replace(change.counted, kept=0)
    if found != recorded:
        yield f"{found} is counted, {recorded} recorded"
    gone = [(event, _gone_from(event, change)) for event in change.before.events.values() if not event.judged]
    sure = sum(names for event, names in gone if _fell_due(event, event.started_at))
    # If an event starts and ends in this change, a machine may have left it before or after the start.
    starts = {record.event for record in said[Kind.EVENT_STARTED]}
    perhaps = sum(names for event, names in gone if event.id in starts and _fell_due(event, change.now))
    if not sure <= change.counted.judged <= sure + perhaps:
        left = f"{sure} to {sure + perhaps}"
        yield f"{change.counted.judged} machines are judged, {left} have left a started event"


def _gone_from(event: Event, change: Change) -> int:
    after = change.after.events.get(event.id)
    return len(event.resources) - (0 if after is None else len(after.resources))


def _fell_due(event: Event, started_at: datetime | None) -> bool:
    if started_at is None:
        return False
    return started_at > event.announced_at and event.not_before > event.announced_at


def _names_in(record: Record) -> int:
    return len(record.reason.partition(": ")[2].split(", "))


MOMENT, MINUTE, DAY = timedelta(microseconds=1), timedelta(minutes=1), timedelta(days=1)


def windows_are_respected(change: Change) -> Iterator[str]:
    """Maintenance starts only if its expected end is within the windows of all disturbed projects."""
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
            work = MINUTE  # the least; windows do not limit how long a move takes
        moments = [change.now + index * MINUTE for index in range(work // MINUTE)]
        moments.append(change.now + work - MOMENT)
        if (slew := change.after.slew) is not None:
            moments = [slew.to_system(moment) for moment in moments]
        if not past and not all(_is_open(calendar, moment) for moment in moments):
            yield f"{event.id} started outside the window of {project}"


def _is_open(calendar: Calendar, moment: datetime) -> bool:
    """Whether a moment is in a window, compared in local time."""
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
