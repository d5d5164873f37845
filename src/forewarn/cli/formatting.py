"""Times, lists and states as commands print them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from forewarn.core.basic_types import EXTERNAL, SIMULATED
from forewarn.core.time_formats import format_span, format_span_briefly
from forewarn.core.text_formats import counted as counted

if TYPE_CHECKING:
    from forewarn.wire.answers.event_answers import EventAnswer, NoticeAnswer
    from forewarn.wire.answers.order_answers import OrderAnswer
    from forewarn.wire.answers.rollout_answers import RolloutAnswer

# Wherever the result of a simulation is shown, so that it is not taken for work.
SIMULATED_MARK = "simulated: nothing is really done"

# Of spans that were measured, tenths of a second count below this.
TENTHS_BELOW = 10.0

NOTICES = {
    "notice": "of notice at least",
    "terminate_notice": "of notice before it is terminated",
    "degrade_notice": "of notice of a degraded host",
}


def utc(moment: datetime) -> str:
    """Write a moment for people."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def span_or_none(seconds: float | None) -> str | None:
    """Write a span of time, if it is known."""
    return None if seconds is None else format_span_briefly(seconds)


def measured(seconds: float | None) -> str | None:
    """Write a span that was measured, if it is known: of a short one tenths count."""
    if seconds is None or seconds >= TENTHS_BELOW:
        return span_or_none(seconds)
    return format_span(round(seconds, 1))


def countdown(moment: datetime, now: datetime) -> str:
    """Write a moment as seen from now: `in 14 m 32 s`, `2 m ago`."""
    seconds = (moment - now).total_seconds()
    if round(seconds) == 0:
        return "now"
    return f"in {format_span_briefly(seconds)}" if seconds > 0 else f"{format_span_briefly(seconds)} ago"


def starts(event: "EventAnswer", now: datetime) -> str:
    """Write when an event starts or has started, as seen from now."""
    if event.started_at is not None:
        return f"started {countdown(event.started_at, now)}".replace("started now", "just started")
    return until_start(event.not_before, now)


def until_start(not_before: datetime, now: datetime) -> str:
    """Write when an event that has not started may start: `in 14 m 32 s`, `due for 20 s` if it waits."""
    overdue = (now - not_before).total_seconds()
    if round(overdue) <= 0:
        return countdown(not_before, now)
    return f"due for {format_span_briefly(overdue)}"


def between(start: datetime, end: datetime | None) -> str:
    """Write the time from one moment to another."""
    return "-" if end is None else format_span_briefly((end - start).total_seconds())


def is_simulated(order: "OrderAnswer") -> bool:
    """Return whether nothing is really done to the machines of an order."""
    drivers = {order.driver, *(step.driver for step in order.host_steps)}
    return drivers == {SIMULATED} and order.work is not None and order.work.touches_machines


def is_done_outside(order: "OrderAnswer") -> bool:
    """Return whether somebody outside does something to the machines of an order, or to its host."""
    if any(step.driver == EXTERNAL for step in order.host_steps):
        return True
    return order.driver == EXTERNAL and order.work is not None and order.work.touches_machines


def simulated_part(rollout: "RolloutAnswer") -> str:
    """Name how much of a rollout nothing is really done of; nothing, if all of it is real."""
    simulated, whole = len(rollout.simulated_hosts), len(rollout.hosts)
    if not simulated:
        return ""
    return "simulated" if simulated == whole else f"simulated on {simulated} of {counted(whole, 'host')}"


def rollout_state(rollout: "RolloutAnswer") -> str:
    """Return the state of a rollout; one that was aborted and finishes what it has begun is aborting."""
    return "aborting" if rollout.aborting else rollout.state


def rollout_progress(rollout: "RolloutAnswer") -> str:
    """Write how many hosts are done and, of a rollout that does no more, which are not."""
    said = f"{len(rollout.hosts_done)} of {counted(len(rollout.hosts), 'host')} done"
    stopped = rollout.aborting or rollout.state == "aborted"
    return f"{said}; not done: {some(rollout.hosts_not_done)}" if stopped and rollout.hosts_not_done else said


def some(words: Sequence[str], most: int = 10) -> str:
    """Join words as a person would, and count those that are too many: `a, b and 7 more`."""
    if len(words) <= most:
        return listing(words)
    return f"{', '.join(words[:most])} and {len(words) - most} more"


def listing(words: Sequence[str]) -> str:
    """Join words as a person would: `a, b and c`."""
    *most, last = words or ["nobody"]
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
    """Say that a list is empty: for what reason, or that nothing passes the filters that were given."""
    asked = [f"{_FILTERS[name]} {_listed(value)}" for name, value in filters.items() if value]
    return f"No {what} {', '.join(asked)}." if asked else otherwise


def _listed(value: object) -> str:
    return " or ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def notice(given: "NoticeAnswer") -> str | None:
    """Write what notice machines got: `least 9 m 38 s, late 0, never polled 19`; None before a start.

    A machine that never polled was not sent the event: it may have polled at other times.
    """
    least = span_or_none(given.least_seconds)
    if least is None and not given.never:
        return None
    said = f"least {least or '-'}, late {given.late}, never polled {given.never}"
    return f"{said} so far" if given.so_far else said


def policy(asked: Mapping[str, Any]) -> list[str]:
    """Write what a group asks for beyond what every group gets."""
    approval = {"any": "any machine of it approves", "all": "all named machines must approve"}
    said = [approval.get(asked["approval"], "the first named machine must approve")]
    if asked["auto_approve"]:
        said.append("its users' own orders start without waiting")
    for key, what in NOTICES.items():
        if key in asked:
            said.append(f"{format_span_briefly(asked[key])} {what}")
    if asked["budget"]:
        said.append(f"needs {asked['budget']} healthy machines during a rollout")
    if asked.get("freezes_at_once"):
        said.append(f"{asked['freezes_at_once']} of it may be frozen together, whatever their update domains")
    if asked.get("gang"):
        said.append("its update domains may all be disturbed together")
    if asked["defer"]:
        said.append(f"a guest may put an event off by {format_span_briefly(asked['defer'])}")
    return said
