"""An event as handlers get it: as JSON, in the environment of a program, filled into templates."""

import json
import re
from collections.abc import Callable, Mapping
from email.utils import format_datetime
from typing import Any

from forewarn.agent.handling import Task
from forewarn.core.errors import Invalid
from forewarn.core.time_formats import format_time
from forewarn.sdk.documents import Event, parse_event

UNKNOWN_DURATION = -1
# A system takes a quarter of a megabyte in all, or less; what is longer is on stdin, whole.
LONGEST_VARIABLE = 16 * 1024

_PLACEHOLDER = re.compile(r"\$\{([^{}]*)\}")


def as_wire(event: Event) -> dict[str, Any]:
    """Write an event as the newest api-version does."""
    return {
        "EventId": event.id,
        "EventStatus": str(event.status),
        "EventType": str(event.type),
        "ResourceType": event.resource_type,
        "Resources": list(event.resources),
        "NotBefore": "" if event.not_before is None else format_datetime(event.not_before, usegmt=True),
        "Description": event.description,
        "EventSource": str(event.source),
        "DurationInSeconds": duration_of(event),
    }


def from_wire(parsed: Mapping[str, Any]) -> Event:
    """Read an event that `as_wire` has written."""
    return parse_event(parsed)


def duration_of(event: Event) -> int:
    """Return how many seconds the interruption is, as the contract does: -1 if that is unknown."""
    return UNKNOWN_DURATION if event.duration is None else round(event.duration.total_seconds())


def facts_of(task: Task) -> dict[str, str]:
    """Return all that is known of a task, by the names that templates have for it."""
    event, left = task.event, task.seconds_left()
    return {
        "id": event.id,
        "type": str(event.type),
        "status": str(event.status),
        "source": str(event.source),
        "resources": ",".join(event.resources),
        "not_before": "" if event.not_before is None else format_time(event.not_before),
        "duration": str(duration_of(event)),
        "description": event.description,
        "seconds_left": "" if left is None else str(int(left)),
        "attempt": str(task.attempt),
        "machine": task.machine,
        "side": task.side.value,
        "failure": task.failure,
        "event": json.dumps(as_wire(event)),
    }


NAMES = (
    *("id", "type", "status", "source", "resources", "not_before", "duration", "description"),
    *("seconds_left", "attempt", "machine", "side", "failure", "event"),
)
_OF_THE_EVENT = NAMES[:8]
NUMBERS = frozenset({"duration", "seconds_left", "attempt"})


def environment_of(task: Task) -> dict[str, str]:
    """Return a task as variables of a program's environment."""
    facts = facts_of(task)
    del facts["event"], facts["failure"]
    return {
        f"FOREWARN_EVENT_{name.upper()}" if name in _OF_THE_EVENT else f"FOREWARN_{name.upper()}": _fit(value)
        for name, value in facts.items()
    }


def _fit(value: str) -> str:
    """Shorten a text to what an environment can hold: an endpoint may say anything."""
    return value.replace("\0", "").encode()[:LONGEST_VARIABLE].decode(errors="ignore")


def checked_template(text: str) -> str:
    """Refuse a template with a name in it that there is not."""
    for name in _PLACEHOLDER.findall(text):
        if name not in NAMES:
            raise Invalid(f"${{{name}}} is not known; expected one of {', '.join(NAMES)}")
    return text


def filled(template: Any, facts: Mapping[str, str]) -> Any:
    """Fill a template, or all texts in a structure of them."""
    return mapped(template, lambda text: _PLACEHOLDER.sub(lambda index: facts[index[1]], text))


def mapped(value: Any, change: Callable[[str], Any]) -> Any:
    """Change every text in a structure."""
    match value:
        case str():
            return change(value)
        case Mapping():
            return {key: mapped(each, change) for key, each in value.items()}
        case list() | tuple():
            return [mapped(each, change) for each in value]
        case _:
            return value
