"""Azure's Scheduled Events API: documents of every api-version, StartRequests, and error bodies.

Each version is declared as its differences from the one before. Only this module knows these differences.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any

from forewarn.core.basic_types import EventId, EventStatus, EventType, GroupKind
from forewarn.core.errors import Invalid
from forewarn.core.guests.document import GroupDocument, resource_names
from forewarn.core.model.event import Event
from forewarn.wire.texts import is_guid

FIELDS: Mapping[str, Callable[[Event], object]] = {
    "EventId": lambda event: event.id,
    "EventStatus": lambda event: event.status.value,
    "EventType": lambda event: event.type.value,
    "ResourceType": lambda event: "VirtualMachine",
    "Resources": resource_names,
    "NotBefore": lambda event: not_before(event),
    "Description": lambda event: event.description,
    "EventSource": lambda event: event.source.value,
    "DurationInSeconds": lambda event: event.duration_seconds,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The form of a document in one api-version, and its requirements for requests."""

    name: str
    types: frozenset[EventType]
    fields: tuple[str, ...]  # in the order of the document
    iaas_prefix: str  # before every name, except in cloud services
    needs_header: bool  # whether requests need `Metadata: true`
    preview: bool = False  # offered only if a setting enables it


_FIRST = Version(
    name="2017-03-01",
    types=frozenset({EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY}),
    fields=("EventId", "EventStatus", "EventType", "ResourceType", "Resources", "NotBefore"),
    iaas_prefix="_",
    needs_header=False,
)


def _after(
    last: Version, name: str, *fields: str, types: frozenset[EventType] = frozenset(), **more: Any
) -> Version:
    """Return a version that adds fields and types to the last one."""
    return replace(last, name=name, fields=last.fields + fields, types=last.types | types, **more)


_2017_08 = _after(_FIRST, "2017-08-01", iaas_prefix="", needs_header=True)
_2017_11 = _after(_2017_08, "2017-11-01", types=frozenset({EventType.PREEMPT}))
_2019_01 = _after(_2017_11, "2019-01-01", types=frozenset({EventType.TERMINATE}))
_2019_04 = _after(_2019_01, "2019-04-01", "Description")
_2019_08 = _after(_2019_04, "2019-08-01", "EventSource")
_2020_07 = _after(_2019_08, "2020-07-01", "DurationInSeconds")
_REBALANCE = frozenset({EventType.SPOT_REBALANCE_RECOMMENDATION})
_2024_07 = _after(_2020_07, "2024-07-09", types=_REBALANCE, preview=True)

VERSIONS = (_FIRST, _2017_08, _2017_11, _2019_01, _2019_04, _2019_08, _2020_07, _2024_07)
VERSION_INDEX: Mapping[str, int] = {version.name: index for index, version in enumerate(VERSIONS)}


def compact(value: object) -> bytes:
    """Write JSON without blanks."""
    return json.dumps(value, separators=(",", ":")).encode()


def error(text: str) -> bytes:
    """Write an error with the spacing of most Azure metadata errors."""
    return f'{{ "error": {json.dumps(text)} }}'.encode()


NO_HEADER = error("Bad request: . Required metadata header not specified")


def version_invalid(newest: Sequence[str]) -> bytes:
    """Write the error for a request without a valid version. It names the newest versions."""
    text = (
        "Bad request. api-version is invalid or was not specified in the request. "
        "For more information refer to aka.ms/azureimds"
    )
    return compact({"error": text, "newest-versions": list(newest)})


VERSION_UNKNOWN = error("Not found. Invalid version requested")
NOT_FOUND = error("Not found")


def offered(*, preview: bool) -> tuple[Version, ...]:
    """Return the offered versions, with or without previews."""
    return tuple(version for version in VERSIONS if preview or not version.preview)


# By whether previews are offered.
VERSION_INVALID = {
    preview: version_invalid([version.name for version in reversed(offered(preview=preview)[-3:])])
    for preview in (False, True)
}
VERSION_LIST = {
    preview: compact({"apiVersions": [version.name for version in offered(preview=preview)]})
    for preview in (False, True)
}


def write_document(document: GroupDocument, version: Version) -> bytes:
    """Write a document in one api-version. Equal documents give equal bytes."""
    prefix = "" if document.kind is GroupKind.CLOUD_SERVICE else version.iaas_prefix
    events = [
        {name: _prefixed(name, FIELDS[name](event), prefix) for name in version.fields}
        for event in document.events
        if event.type in version.types
    ]
    return compact({"DocumentIncarnation": document.incarnation, "Events": events})


def _prefixed(field: str, value: object, prefix: str) -> object:
    if field == "Resources" and isinstance(value, tuple):
        return [prefix + name for name in value]
    return value


def not_before(event: Event) -> str:
    """Write the NotBefore of an event; an empty text after its start."""
    return "" if event.status is EventStatus.STARTED else http_date(event.not_before)


# strftime depends on the locale. HTTP and Azure's clients need English.
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def http_date(moment: datetime) -> str:
    """Write a time in the format of HTTP and of all api-versions."""
    at = moment.astimezone(UTC)
    return (
        f"{_DAYS[at.weekday()]}, {at.day:02} {_MONTHS[at.month - 1]} {at.year:04} "
        f"{at.hour:02}:{at.minute:02}:{at.second:02} GMT"
    )


_DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")


def is_version_date(text: str) -> bool:
    """Return whether an api-version is a date, offered or not."""
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def read_start_requests(body: bytes) -> tuple[EventId, ...]:
    """Return the ids that a guest approves, in upper case and without duplicates."""
    items = _items(body, "StartRequests")
    # A dict keeps the order and drops duplicates.
    return tuple(dict.fromkeys(_event_id(item, f"StartRequests[{n}]") for n, item in enumerate(items)))


def read_defer_requests(body: bytes) -> dict[EventId, int]:
    """Return the ids that a guest defers, and the seconds of each. Azure has no deferrals."""
    wanted = {}
    for index, item in enumerate(_items(body, "DeferRequests")):
        where = f"DeferRequests[{index}]"
        event = _event_id(item, where)
        seconds = item.get("Seconds") if isinstance(item, dict) else None
        if not isinstance(seconds, int) or isinstance(seconds, bool) or not 0 < seconds <= MOST_SECONDS:
            raise Invalid(f"{where}.Seconds must be a whole number from 1 to {MOST_SECONDS}")
        wanted[event] = seconds
    return wanted


def _items(body: bytes, key: str) -> list[object]:
    request = _json(body)
    if not isinstance(request, dict):
        raise Invalid(f"the body must be a JSON object, not {_kind(request)}")
    if key not in request:
        raise Invalid(f"{key} is missing")
    items = request[key]
    if not isinstance(items, list):
        raise Invalid(f"{key} must be a list, not {_kind(items)}")
    if not items:
        raise Invalid(f"{key} is empty")
    return items


def _json(body: bytes) -> object:
    """Read JSON, with or without a byte order mark."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Invalid("the body is not UTF-8") from None
    if not text.strip():
        raise Invalid("the body is empty")
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise Invalid("the body is nested too deeply") from None
    except ValueError:
        raise Invalid("the body is not JSON") from None


def _no_constant(name: str) -> object:
    """Refuse NaN and Infinity, which are not JSON but which Python accepts."""
    raise ValueError(name)


def _event_id(item: object, where: str) -> EventId:
    if not isinstance(item, dict):
        raise Invalid(f"{where} must be an object, not {_kind(item)}")
    if "EventId" not in item:
        raise Invalid(f"{where}.EventId is missing")
    value = item["EventId"]
    if not isinstance(value, str):
        raise Invalid(f"{where}.EventId must be a string, not {_kind(value)}")
    if not is_guid(value):
        raise Invalid(f"{where}.EventId is not a GUID")
    return EventId(value.upper())


# A month. This bound only catches typos.
MOST_SECONDS = 30 * 86400


def _kind(value: object) -> str:
    """Return the JSON name of a value's type."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case _:
            return "an object"
