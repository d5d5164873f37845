"""The schemas of declarations, for the OpenAPI document; `forewarn.wire.fleet` reads and checks them."""

from typing import Any

from forewarn.core.words import ApprovalRule, GroupKind, Priority
from forewarn.wire.fields import LONGEST_TEXT, MOST_DOMAINS, NAME
from forewarn.wire.projects import DAYS

Schema = dict[str, Any]


def _object(properties: Schema, *, required: tuple[str, ...] = ()) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def _map(of: Schema) -> Schema:
    return {"type": "object", "propertyNames": {"pattern": _NAME["pattern"]}, "additionalProperties": of}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_NAME: Schema = {"type": "string", "pattern": f"^{NAME.pattern}$"}
_TEXT: Schema = {"type": "string", "maxLength": LONGEST_TEXT}
_DOMAIN: Schema = {"type": "integer", "minimum": 0, "maximum": MOST_DOMAINS - 1}
_KINDS = [kind.value for kind in GroupKind if kind is not GroupKind.STANDALONE]

_MACHINE_FIELDS: Schema = {
    "name": _NAME,
    "group": _or_null({**_NAME, "description": "Left out: standalone."}),
    "project": _NAME,
    "host": _or_null({**_NAME, "description": "The host that carries it, or its first."}),
    "update_domain": _DOMAIN,
    "fault_domain": _DOMAIN,
    "priority": {"type": "string", "enum": [priority.value for priority in Priority]},
    "network": _TEXT,
    "address": _or_null({"type": "string", "description": "Where its requests come from, IPv4 or IPv6."}),
    "port": _or_null({"type": "integer", "minimum": 1, "maximum": 65535}),
    "tags": {"type": "object", "additionalProperties": _TEXT},
    "location": _TEXT,
    "zone": _TEXT,
    "size": _TEXT,
    "os": _TEXT,
}

_SPAN: Schema = {
    "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": "^([0-9]{1,9}[smhd])+$"}],
    "description": "Seconds, or a text such as 15m.",
}

_POLICY = _object(
    {
        "approval": {"type": "string", "enum": [rule.value for rule in ApprovalRule]},
        "auto_approve": {"type": "boolean"},
        "notice": _SPAN,
        "terminate_notice": _SPAN,
        "degrade_notice": _SPAN,
        "budget": {"type": "integer", "minimum": 0, "maximum": MOST_DOMAINS * 100},
        "defer": _SPAN,
    }
)

_WINDOW = _object(
    {
        "days": {"type": "array", "minItems": 1, "items": {"type": "string", "enum": list(DAYS)}},
        "start": {"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"},
        "length": _SPAN,
    },
    required=("start", "length"),
)

_PROJECT = _object(
    {
        "time_zone": {"type": "string", "description": "Of the IANA database; left out: UTC."},
        "windows": {"type": "array", "items": _WINDOW},
        "blackout": {
            "type": "array",
            "items": {
                "type": "string",
                "description": "A day, or the first and last: 2026-12-24/2027-01-01.",
            },
        },
        "rehearsal": {"type": "boolean", "description": "Whether scenarios may be played on its machines."},
    }
)

_GROUP = _object(
    {
        "kind": {"type": "string", "enum": _KINDS},
        "update_domains": {"type": "integer", "minimum": 1, "maximum": MOST_DOMAINS},
        "project": _NAME,
        "policy": _POLICY,
    },
    required=("kind",),
)

MACHINE = _object(_MACHINE_FIELDS)

FLEET = _object(
    {
        "projects": _map(_PROJECT),
        "groups": _map(_GROUP),
        "hosts": _map(_object({})),
        "machines": {"type": "array", "items": _object(_MACHINE_FIELDS, required=("name", "host"))},
    }
)
