"""What is asked for of work on a host, as it is typed: commands for hosts take the same options."""

from typing import Any

from forewarn.cli.command_group import flag, option
from forewarn.cli.options.shared_options import (
    DEADLINE,
    DRIVER,
    HEARTBEAT,
    REASON,
    TAKES,
    TOGETHER,
    seconds_or_none,
)

URGENCY = (
    REASON,
    option("--emergency", "REASON", "Give no notice; recorded as a broken promise."),
    option("--notice", "DURATION", "Of an emergency, as 2m; left out: none."),
    flag("--despite-hold", "No hold stops the emergency."),
)
WORK = (*URGENCY, DEADLINE, TAKES, DRIVER, HEARTBEAT, TOGETHER)


def urgency(
    *, reason: str | None, emergency: str | None, notice: str | None, despite_hold: bool
) -> dict[str, Any]:
    """Make what is sent of why, and of promises that are not kept."""
    return {
        "reason": reason,
        "emergency": emergency,
        "notice_seconds": seconds_or_none(notice, hint="--notice"),
        "despite_hold": despite_hold or None,
    }


def work(
    *,
    deadline: str | None,
    takes: str | None,
    driver: str | None,
    heartbeat: str | None,
    together: str | None,
    **urgent: Any,
) -> dict[str, Any]:
    """Make what is sent of that and of the work: who does it, until when, how long, and how silent."""
    return {
        **urgency(**urgent),
        "driver": driver,
        "deadline": deadline,
        "expected_seconds": seconds_or_none(takes, hint="--takes"),
        "heartbeat_seconds": seconds_or_none(heartbeat, hint="--heartbeat"),
        "together": together,
    }
