"""Whether a group is enabled: its first poll enables it, a day without polls disables it.

Only time in which the server could receive polls counts.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from forewarn.core.basic_types import Kind
from forewarn.core.draft import Draft
from forewarn.core.model.clock_slew import Absence
from forewarn.core.model.group import Group
from forewarn.core.policy import Policy
from forewarn.core.time_formats import format_span

# If the server is back for less than this between two absences, they count as one.
SHORTEST_PRESENCE = timedelta(minutes=1)
# The most brief absences, and the most long ones, that are kept: every transaction writes their row.
MOST_ABSENCES = 50


def enable(draft: Draft, group: Group, *, policy: Policy) -> Group:
    """Record a group's first poll. Idempotent."""
    if group.enabled:
        return group
    draft.record(Kind.GROUP_ENABLED, group)
    ready = draft.now + policy.enable_delay
    return draft.put_group(replace(group, enabled_at=draft.now, ready_at=ready, heard=True))


def disable(draft: Draft, group: Group, *, policy: Policy) -> Group:
    """Disable a group; its next poll enables it again."""
    draft.record(Kind.GROUP_DISABLED, group, reason=f"no poll for {format_span(policy.idle_after)}")
    return draft.put_group(replace(group, enabled_at=None, ready_at=None))


def idle_cutoff(now: datetime, absences: Sequence[Absence], *, policy: Policy) -> datetime:
    """Return the time before which saved activity proves that a group is idle."""
    left, moment = _needed(policy), now
    for absence in reversed(_long(absences)):
        if moment - absence.until >= left:
            break
        left -= moment - absence.until
        moment = absence.since
    return moment - left


def idle_at(last_active: datetime, absences: Sequence[Absence], *, policy: Policy) -> datetime:
    """Return when a group becomes idle after its last activity."""
    left, moment = _needed(policy), last_active
    for absence in _long(absences):
        if absence.until <= moment:
            continue
        heard = max(absence.since - moment, timedelta())
        if heard >= left:
            break
        left -= heard
        moment = absence.until
    return moment + left


def add_absence(absences: Sequence[Absence], latest: Absence, *, policy: Policy) -> tuple[Absence, ...]:
    """Add an absence, merge long neighbours, and drop those that no longer matter.

    Brief absences are not merged: between them guests could see events.
    """
    found: list[Absence] = []
    for absence in _long((*absences, latest)):
        if found and absence.since - found[-1].until < SHORTEST_PRESENCE:
            absence = Absence(since=found.pop().since, until=absence.until)
        found.append(absence)
    while len(found) > MOST_ABSENCES:
        found[:2] = [Absence(since=found[0].since, until=found[1].until)]
    oldest = idle_cutoff(latest.until, found, policy=policy)
    found += [absence for absence in (*absences, latest) if absence.brief][-MOST_ABSENCES:]
    return tuple(sorted((each for each in found if each.until > oldest), key=lambda each: each.since))


def _long(absences: Sequence[Absence]) -> list[Absence]:
    return [absence for absence in absences if not absence.brief]


def _needed(policy: Policy) -> timedelta:
    """Return the idle time that is required.

    Activity is saved only now and then, so the last poll may be later than the saved one.
    """
    return policy.idle_after + policy.save_activity_every
