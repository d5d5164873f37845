"""The schemas of declarations, for the OpenAPI document; `forewarn.wire.fleet` reads and checks them."""

from typing import Any

from forewarn.core.words import GroupKind, Priority
from forewarn.wire.fields import LONGEST_TEXT, MOST_DOMAINS, NAME

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

_GROUP = _object(
    {
        "kind": {"type": "string", "enum": _KINDS},
        "update_domains": {"type": "integer", "minimum": 1, "maximum": MOST_DOMAINS},
        "project": _NAME,
        "policy": _object({}),
    },
    required=("kind",),
)

MACHINE = _object(_MACHINE_FIELDS)

FLEET = _object(
    {
        "projects": _map(_object({})),
        "groups": _map(_GROUP),
        "hosts": _map(_object({})),
        "machines": {"type": "array", "items": _object(_MACHINE_FIELDS, required=("name", "host"))},
    }
)
