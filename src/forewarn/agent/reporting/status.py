"""What the agent is doing, and for how long: as a running agent tells it, or its journal."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from forewarn.agent.facts import duration_of
from forewarn.agent.journal.tracked_events import Attempt, Case, Cases, Share
from forewarn.agent.setup.agent_config import Config
from forewarn.sdk.documents import Event


def of_cases(
    cases: Cases, *, now: datetime, seconds_left: Callable[[Event], float | None]
) -> list[dict[str, Any]]:
    """Tell of every event that is taken up."""
    return [_case(id_, case, now=now, left=seconds_left(case.event)) for id_, case in cases.items()]


def draining(cases: Cases, config: Config) -> list[Case]:
    """Find the events for which this machine should get no work."""
    names = {handler.name for handler in config.handlers if handler.drains}
    return [
        case
        for case in cases.values()
        if any(name in names and not case.recovered(name) for name in case.touched())
    ]


def doing(case: Case) -> str:
    """Say in a word how far an event is."""
    if case.left is not None:
        return "recovering"
    if any(attempt.ending is None or not attempt.settled for attempt in case.attempts.values()):
        return "preparing"
    if case.event.started:
        return "waiting for its end"
    return "approved" if case.approved else "prepared"


def _case(id_: str, case: Case, *, now: datetime, left: float | None) -> dict[str, Any]:
    event = case.event
    return {
        "id": id_,
        "type": str(event.type),
        "status": str(event.status),
        "source": str(event.source),
        "resources": list(event.resources),
        "not_before": None if event.not_before is None else event.not_before.isoformat(),
        "seconds_left": None if left is None else round(left),
        "duration_seconds": duration_of(event),
        "doing": doing(case),
        "since": case.since.isoformat(),
        "for_seconds": _seconds(case.since, now),
        "approved": None if case.approved is None else case.approved.isoformat(),
        "left": None if case.left is None else case.left.isoformat(),
        "handlers": [_attempt(share, attempt, now=now) for share, attempt in case.attempts.items()],
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
