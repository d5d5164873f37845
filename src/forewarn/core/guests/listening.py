"""Whether a group's guests listen: the first poll enables the feature, a day of silence disables it.

Only time in which guests could be heard counts as silence.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from forewarn.core.basic_types import Kind
from forewarn.core.draft import Draft
from forewarn.core.model.clock_slew import Absence
from forewarn.core.model.group import Group
from forewarn.core.policy import Policy

# A service that is back for less than that between two absences was not there for its guests.
SHORTEST_PRESENCE = timedelta(minutes=1)
# However often it came and went, as many brief and as many long ones: every transaction writes their row.
MOST_ABSENCES = 50


def enable(draft: Draft, group: Group, *, policy: Policy) -> Group:
    """Take a first poll; the second changes nothing."""
    if group.enabled:
        return group
    draft.record(Kind.GROUP_ENABLED, group)
    ready = draft.now + policy.enable_delay
    return draft.put_group(replace(group, enabled_at=draft.now, ready_at=ready, heard=True))


def disable(draft: Draft, group: Group, *, policy: Policy) -> Group:
    """Stop taking a group as listening; its next poll enables it again."""
    draft.record(Kind.GROUP_DISABLED, group, reason=f"no poll for {policy.idle_after}")
    return draft.put_group(replace(group, enabled_at=None, ready_at=None))


def idle_cutoff(now: datetime, absences: Sequence[Absence], *, policy: Policy) -> datetime:
    """Return which saved activity is old enough to be sure of a day's silence."""
    left, moment = _needed(policy), now
    for absence in reversed(_long(absences)):
        if moment - absence.until >= left:
            break
        left -= moment - absence.until
        moment = absence.since
    return moment - left


def idle_at(last_active: datetime, absences: Sequence[Absence], *, policy: Policy) -> datetime:
    """Return when a group that was last active then may be disabled."""
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
    """Return the absences that still matter, with the latest; long neighbours are joined into one.

    Brief ones are not joined: between them guests could see what was announced.
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
    """How much silence it takes: a poll may be newer than the one saved by what lies between two saves."""
    return policy.idle_after + policy.save_activity_every
