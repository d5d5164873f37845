"""What the agent is doing, and for how long: of a running agent, or of its journal."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from forewarn.agent.facts import duration_of
from forewarn.agent.journal.tracked_events import Attempt, Share, TrackedEvent, TrackedEvents
from forewarn.agent.setup.agent_config import Config
from forewarn.sdk.documents import Event


def of_events(
    tracked_events: TrackedEvents, *, now: datetime, seconds_left: Callable[[Event], float | None]
) -> list[dict[str, Any]]:
    """Return the status of every tracked event as JSON."""
    return [
        _tracked(id_, tracked, now=now, left=seconds_left(tracked.event))
        for id_, tracked in tracked_events.items()
    ]


def draining(tracked_events: TrackedEvents, config: Config) -> list[TrackedEvent]:
    """Return the events for which this machine should get no work."""
    names = {handler.name for handler in config.handlers if handler.drains}
    return [
        tracked
        for tracked in tracked_events.values()
        if any(name in names and not tracked.recovered(name) for name in tracked.touched())
    ]


def doing(tracked: TrackedEvent) -> str:
    """Return in a word how far an event is."""
    if tracked.left is not None:
        return "recovering"
    if any(attempt.ending is None or not attempt.settled for attempt in tracked.attempts.values()):
        return "preparing"
    if tracked.event.started:
        return "waiting for its end"
    return "approved" if tracked.approved else "prepared"


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
