"""An event in the forms that handlers get: JSON, environment variables and templates."""

import json
import re
from collections.abc import Callable, Mapping
from email.utils import format_datetime
from typing import Any

from forewarn.agent.handling import Task
from forewarn.core.errors import Invalid
from forewarn.core.time_formats import format_time
from forewarn.sdk.documents import Event

UNKNOWN_DURATION = -1
# The environment of a process is limited to a quarter of a megabyte or less. stdin has the whole event.
LONGEST_VARIABLE = 16 * 1024

_PLACEHOLDER = re.compile(r"\$\{([^{}]*)\}")


def as_wire(event: Event) -> dict[str, Any]:
    """Return an event as JSON of the newest api-version."""
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


def duration_of(event: Event) -> int:
    """Return the seconds of interruption as the contract does: -1 if unknown."""
    return UNKNOWN_DURATION if event.duration is None else round(event.duration.total_seconds())


def facts_of(task: Task) -> dict[str, str]:
    """Return the values of a task by their names in templates."""
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
_EVENT_NAMES = NAMES[:8]
NUMBERS = frozenset({"duration", "seconds_left", "attempt"})


def environment_of(task: Task) -> dict[str, str]:
    """Return a task as environment variables."""
    facts = facts_of(task)
    del facts["event"], facts["failure"]
    return {
        f"FOREWARN_EVENT_{name.upper()}" if name in _EVENT_NAMES else f"FOREWARN_{name.upper()}": _fit(value)
        for name, value in facts.items()
    }


def _fit(value: str) -> str:
    """Shorten a text for the environment, because an endpoint may send texts of any length."""
    return value.replace("\0", "").encode()[:LONGEST_VARIABLE].decode(errors="ignore")


def checked_template(text: str) -> str:
    """Refuse a template with an unknown name."""
    for name in _PLACEHOLDER.findall(text):
        if name not in NAMES:
            raise Invalid(f"${{{name}}} is unknown; expected one of {', '.join(NAMES)}")
    return text


def filled(template: Any, facts: Mapping[str, str]) -> Any:
    """Fill in a template, or every text of a structure."""
    return mapped(template, lambda text: _PLACEHOLDER.sub(lambda index: facts[index[1]], text))


def mapped(value: Any, change: Callable[[str], Any]) -> Any:
    """Apply a function to every text of a structure."""
    match value:
        case str():
            return change(value)
        case Mapping():
            return {key: mapped(each, change) for key, each in value.items()}
        case list() | tuple():
            return [mapped(each, change) for each in value]
        case _:
            return value
