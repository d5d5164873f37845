"""Whether a group's guests listen: the first poll enables the feature, a day of silence disables it."""

from dataclasses import replace
from datetime import datetime

from forewarn.core.draft import Draft
from forewarn.core.model.group import Group
from forewarn.core.policy import Policy
from forewarn.core.words import Kind


def enable(draft: Draft, group: Group, *, policy: Policy) -> Group:
    """Take a first poll; the second changes nothing."""
    if group.enabled:
        return group
    draft.record(Kind.GROUP_ENABLED, group)
    ready = draft.now + policy.enable_delay
    return draft.put_group(replace(group, enabled_at=draft.now, ready_at=ready, last_active=draft.now))


def disable(draft: Draft, group: Group, *, policy: Policy) -> Group:
    """Stop taking a group as listening; its next poll enables it again."""
    draft.record(Kind.GROUP_DISABLED, group, reason=f"no poll for {policy.idle_after}")
    return draft.put_group(replace(group, enabled_at=None, ready_at=None))


def silent_since(now: datetime, *, policy: Policy) -> datetime:
    """Return which saved activity is old enough to be sure of a day's silence.

    A poll may be as much newer than the one saved as lies between two saves, also over a crash.
    """
    return now - policy.idle_after - policy.save_activity_every


def silent_at(last_active: datetime, *, policy: Policy) -> datetime:
    """Return when a group that was last active then may be disabled."""
    return last_active + policy.idle_after + policy.save_activity_every
