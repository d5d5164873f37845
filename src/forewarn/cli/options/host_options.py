"""What is asked for of work on a host, as it is typed: commands for hosts take the same options."""

import inspect
from typing import Annotated, Any

import typer

from forewarn.cli.options.body_options import with_body
from forewarn.cli.options.shared_options import (
    Deadline,
    Driver,
    Heartbeat,
    Reason,
    Takes,
    Together,
    seconds_or_none,
)

Emergency = Annotated[
    str | None,
    typer.Option("--emergency", metavar="REASON", help="Give no notice; recorded as a broken promise."),
]
DespiteHold = Annotated[bool, typer.Option("--despite-hold", help="No hold stops the emergency.")]
Notice = Annotated[
    str | None, typer.Option("--notice", metavar="DURATION", help="Of an emergency, as 2m; left out: none.")
]


def _urgency(
    reason: Reason = None,
    emergency: Emergency = None,
    notice: Notice = None,
    despite_hold: DespiteHold = False,
) -> dict[str, Any]:
    """Make what is sent of why, and of promises that are not kept."""
    return {
        "reason": reason,
        "emergency": emergency,
        "notice_seconds": seconds_or_none(notice, hint="--notice"),
        "despite_hold": despite_hold or None,
    }


def _work(
    reason: Reason = None,
    emergency: Emergency = None,
    notice: Notice = None,
    despite_hold: DespiteHold = False,
    deadline: Deadline = None,
    takes: Takes = None,
    driver: Driver = None,
    heartbeat: Heartbeat = None,
    together: Together = None,
) -> dict[str, Any]:
    """Make what is sent of that and of the work: who does it, until when, how long, and how silent."""
    return {
        **_urgency(reason, emergency, notice, despite_hold),
        "driver": driver,
        "deadline": deadline,
        "expected_seconds": seconds_or_none(takes, hint="--takes"),
        "heartbeat_seconds": seconds_or_none(heartbeat, hint="--heartbeat"),
        "together": together,
    }


with_urgency = with_body(_urgency, inspect.signature(_urgency).parameters.values())
with_work = with_body(_work, inspect.signature(_work).parameters.values())
