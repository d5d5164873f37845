"""The status of events, from a running agent or from its journal."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from forewarn.agent.facts import duration_of
from forewarn.agent.handling import Side
from forewarn.agent.journal.tracked_events import Attempt, Share, TrackedEvent, TrackedEvents
from forewarn.agent.setup.agent_config import Config
from forewarn.core.basic_types import HINTS, EventStatus
from forewarn.sdk.documents import Event


def of_events(
    tracked_events: TrackedEvents,
    *,
    now: datetime,
    seconds_left: Callable[[Event], float | None],
    not_approved: Callable[[str], str | None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Return the status of every tracked event as JSON."""
    return [
        {
            **_tracked(id_, tracked, now=now, left=seconds_left(tracked.event)),
            **_approval(id_, tracked, not_approved(id_)),
        }
        for id_, tracked in tracked_events.items()
    ]


def is_held(tracked: TrackedEvent, config: Config) -> bool:
    """Return whether the agent withholds the approval of an event because a handler has failed."""
    waits = tracked.event.status == EventStatus.SCHEDULED and tracked.left is None
    return waits and tracked.approved is None and bool(config.holding(tracked.failures()))


def draining(tracked_events: TrackedEvents, config: Config) -> list[TrackedEvent]:
    """Return the events that keep this machine from getting work."""
    names = {handler.name for handler in config.handlers if handler.drains}
    return [
        tracked
        for tracked in tracked_events.values()
        if any(name in names and not tracked.recovered(name) for name in tracked.touched())
    ]


def doing(tracked: TrackedEvent) -> str:
    """Return the phase of an event."""
    if tracked.left is not None or _unsettled(tracked, Side.RECOVER):
        return "recovering"
    if tracked.restarted is not None:
        return "waiting for its end"
    if _unsettled(tracked, Side.PREPARE):
        return "preparing"
    if tracked.failures() and tracked.approved is None:
        return "preparation failed"
    if tracked.event.started:
        return "waiting for its end"
    return "approved" if tracked.approved else "prepared"


def _unsettled(tracked: TrackedEvent, side: Side) -> bool:
    return any(share.side is side and not attempt.settled for share, attempt in tracked.attempts.items())


def _approval(id_: str, tracked: TrackedEvent, why: str | None) -> dict[str, Any]:
    """Return why an event is not approved and what a person can do; None if it is or cannot be approved."""
    failed = ", ".join(tracked.failures())
    why = why or (f"{failed} failed" if failed else None)
    if tracked.approved is not None or tracked.left is not None or tracked.event.started or why is None:
        return {"not_approved": None, "next": None}
    if tracked.event.status != EventStatus.SCHEDULED or tracked.event.type in HINTS:
        return {"not_approved": why, "next": None}
    ready = "make the machine ready by hand, then " if failed else ""
    return {"not_approved": why, "next": f"{ready}let it start early with `forewarn guest approve {id_}`"}


def _tracked(id_: str, tracked: TrackedEvent, *, now: datetime, left: float | None) -> dict[str, Any]:
    event = tracked.event
    return {
        "id": id_,
        "type": str(event.type),
        "status": str(event.status),
        "source": str(event.source),
        "resources": list(event.resources),
        "not_before": None if event.not_before is None else event.not_before.isoformat(),
        "seconds_left": None if left is None else round(left),
        "duration_seconds": duration_of(event),
        "doing": doing(tracked),
        "since": tracked.since.isoformat(),
        "for_seconds": _seconds(tracked.since, now),
        "approved": None if tracked.approved is None else tracked.approved.isoformat(),
        "failed": tracked.failures(),
        "restarted": None if tracked.restarted is None else tracked.restarted.isoformat(),
        "left": None if tracked.left is None else tracked.left.isoformat(),
        "handlers": [_attempt(share, attempt, now=now) for share, attempt in tracked.attempts.items()],
    }


def _attempt(share: Share, attempt: Attempt, *, now: datetime) -> dict[str, Any]:
    return {
        "handler": share.handler,
        "side": share.side.value,
        "attempt": attempt.number,
        "state": "running" if attempt.ending is None else attempt.ending.value,
        "for_seconds": _seconds(attempt.begun, attempt.ended or now),
        "pid": None if attempt.process is None else attempt.process.pid,
        "why": attempt.why or None,
    }


def _seconds(since: datetime, now: datetime) -> float:
    return round(max(0.0, (now - since).total_seconds()), 1)
