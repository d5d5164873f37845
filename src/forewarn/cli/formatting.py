"""Times, lists and states, as commands print them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from forewarn.core.basic_types import EXTERNAL, SIMULATED
from forewarn.core.text_formats import counted as counted
from forewarn.core.time_formats import format_span, format_span_briefly

if TYPE_CHECKING:
    from forewarn.wire.answers.event_answers import EventAnswer, NoticeAnswer
    from forewarn.wire.answers.order_answers import OrderAnswer
    from forewarn.wire.answers.rollout_answers import RolloutAnswer

# Marks the result of a simulation, so that people do not take it for work.
SIMULATED_MARK = "simulated: nothing is really done"
DONE_OUTSIDE = "an external program, which reports progress"

# Measured spans below this many seconds show tenths.
TENTHS_BELOW = 10.0

NOTICES = {
    "notice": "minimum notice",
    "terminate_notice": "notice before termination",
    "degrade_notice": "notice of a degraded host",
}


def utc(moment: datetime) -> str:
    """Write a moment for people."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def span_or_none(seconds: float | None) -> str | None:
    """Write a span of time, if it is known."""
    return None if seconds is None else format_span_briefly(seconds)


def measured(seconds: float | None) -> str | None:
    """Write a measured span, if it is known; a short one shows tenths of a second."""
    if seconds is None or seconds >= TENTHS_BELOW:
        return span_or_none(seconds)
    return format_span(round(seconds, 1))


def countdown(moment: datetime, now: datetime) -> str:
    """Write a moment relative to now: `in 14 m 32 s`, `2 m ago`."""
    seconds = (moment - now).total_seconds()
    if round(seconds) == 0:
        return "now"
    return f"in {format_span_briefly(seconds)}" if seconds > 0 else f"{format_span_briefly(seconds)} ago"


def starts(event: "EventAnswer", now: datetime) -> str:
    """Write when an event starts or has started, relative to now."""
    if event.started_at is not None:
        return f"started {countdown(event.started_at, now)}".replace("started now", "just started")
    return until_start(event.not_before, now)


def until_start(not_before: datetime, now: datetime) -> str:
    """Write when a scheduled event may start: `in 14 m 32 s`, `due for 20 s`."""
    overdue = (now - not_before).total_seconds()
    if round(overdue) <= 0:
        return countdown(not_before, now)
    return f"due for {format_span_briefly(overdue)}"


def between(start: datetime, end: datetime | None) -> str:
    """Write the time from one moment to another."""
    return "-" if end is None else format_span_briefly((end - start).total_seconds())


def is_simulated(order: "OrderAnswer") -> bool:
    """Return whether the order really touches no machine."""
    drivers = {order.driver, *(step.driver for step in order.host_steps)}
    return drivers == {SIMULATED} and order.work is not None and order.work.touches_machines


def is_done_outside(order: "OrderAnswer") -> bool:
    """Return whether an external program works on the machines of an order or on its host."""
    if any(step.driver == EXTERNAL for step in order.host_steps):
        return True
    return order.driver == EXTERNAL and order.work is not None and order.work.touches_machines


def simulated_part(rollout: "RolloutAnswer") -> str:
    """Write how much of a rollout is simulated; empty if all of it is real."""
    simulated, whole = len(rollout.simulated_hosts), len(rollout.hosts)
    if not simulated:
        return ""
    return "simulated" if simulated == whole else f"simulated on {simulated} of {counted(whole, 'host')}"


def rollout_state(rollout: "RolloutAnswer") -> str:
    """Return the state of a rollout; an aborted one that still finishes started hosts is `aborting`."""
    return "aborting" if rollout.aborting else rollout.state


def rollout_progress(rollout: "RolloutAnswer") -> str:
    """Write how many hosts are done and, if the rollout was aborted, which are not."""
    text = f"{len(rollout.hosts_done)} of {counted(len(rollout.hosts), 'host')} done"
    stopped = rollout.aborting or rollout.state == "aborted"
    return f"{text}; not done: {some(rollout.hosts_not_done)}" if stopped and rollout.hosts_not_done else text


def some(words: Sequence[str], most: int = 10) -> str:
    """Join words, and count those beyond `most`: `a, b and 7 more`."""
    if len(words) <= most:
        return listing(words)
    return f"{', '.join(words[:most])} and {len(words) - most} more"


def listing(words: Sequence[str]) -> str:
    """Join words: `a, b and c`; `none` if there are none."""
    *most, last = words or ["none"]
    return f"{', '.join(most)} and {last}" if most else last


_FILTERS = {
    "state": "in state",
    "project": "of project",
    "group": "of group",
    "host": "on host",
    "machine": "of machine",
    "event": "of event",
    "order": "of order",
    "kind": "of kind",
    "since": "since",
    "until": "until",
    "by": "by",
    "text": "with",
    "month": "of month",
    "name": "of name",
    "contains": "with",
    "begins": "whose names begin with",
}


def none_found(what: str, otherwise: str, **filters: object) -> str:
    """Say that no item passes the given filters or, without filters, `otherwise`."""
    asked = [f"{_FILTERS[name]} {_listed(value)}" for name, value in filters.items() if value]
    return f"No {what} {', '.join(asked)}." if asked else otherwise


def _listed(value: object) -> str:
    return " or ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def notice(given: "NoticeAnswer") -> str | None:
    """Write the notice that machines got: `least 9 m 38 s, late 0, never polled 19`; None before a start.

    `never polled` counts machines that did not receive the event. They may have polled at other times.
    """
    least = span_or_none(given.least_seconds)
    if least is None and not given.never:
        return None
    text = f"least {least or '-'}, late {given.late}, never polled {given.never}"
    return f"{text} so far" if given.so_far else text


def policy(asked: Mapping[str, Any]) -> list[str]:
    """Write how the policy of a group differs from the default."""
    approval = {"any": "any machine approves", "all": "all named machines must approve"}
    parts = [approval.get(asked["approval"], "the first named machine must approve")]
    if asked["auto_approve"]:
        parts.append("orders of users start without approval")
    parts += [f"{what} {format_span_briefly(asked[key])}" for key, what in NOTICES.items() if key in asked]
    if asked["budget"]:
        parts.append(f"needs {asked['budget']} healthy machines during a rollout")
    if asked.get("freezes_at_once"):
        parts.append(f"{asked['freezes_at_once']} machines of any update domain may be frozen together")
    if asked.get("gang"):
        parts.append("all update domains may be disturbed together")
    if asked["defer"]:
        parts.append(f"a guest may defer an event by {format_span_briefly(asked['defer'])}")
    return parts
