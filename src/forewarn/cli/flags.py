"""What the API calls a field, and what it is on the command line: refusals name what was typed."""

import re

_FIELD = re.compile(r"([a-z_]+)(\[\d+\])?: ")

_SAME_NAME = (
    *(
        "abort",
        "action",
        "canary",
        "deadline",
        "despite_hold",
        "driver",
        "emergency",
        "fenced",
        "host",
        "hosts_at_once",
        "kind",
        "limit",
        "max_failures",
    ),
    *("name", "overlap", "project", "reason", "require_poll", "role", "secret", "since", "state"),
    *("host_work", "live", "to", "together", "whole"),
)
FLAGS = {
    **{name: f"--{name.replace('_', '-')}" for name in _SAME_NAME},
    "expected_seconds": "--takes",
    "expires_seconds": "--expires",
    "expiry": "--expires",
    "gap_seconds": "--gap",
    "health_seconds": "--health",
    "heartbeat_seconds": "--heartbeat",
    "mode": "--evacuate, --in-place",
    "notice_seconds": "--notice",
    "returning": "--return",
    "soak_seconds": "--soak",
    "from": "--from",
    "take": "--take",
    "kinds": "--kind",
    "tags": "--tag",
    "labels": "--label",
    "resources": "--resource",
    "hosts": "HOST",
    "seconds": "DURATION",
    "url": "URL",
}


def in_flags(message: str) -> str:
    """Name the flag instead of the field that a refusal begins with; whatever else it says stays."""
    from forewarn.wire.fleet import MACHINE

    flags = {**{name: f"--{name.replace('_', '-')}" for name in MACHINE}, **FLAGS}
    field = _FIELD.match(message)
    if field is None or field[1] not in flags:
        return message
    return f"{flags[field[1]]}: {message[field.end() :]}"
