"""Instance metadata of a machine."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from forewarn.sdk.documents import excerpt
from forewarn.sdk.guest_errors import Unreadable


def _named(azure: str) -> str:
    """Declare a string that has another name in Azure."""
    text: str = field(default="", metadata={"azure": azure})
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """The instance metadata of a machine; unknown values are empty."""

    name: str  # as in events
    vm_id: str = _named("vmId")
    location: str = ""
    resource_group: str = _named("resourceGroupName")
    subscription_id: str = _named("subscriptionId")
    scale_set: str = _named("vmScaleSetName")
    placement_group: str = _named("placementGroupId")
    update_domain: str = _named("platformUpdateDomain")
    fault_domain: str = _named("platformFaultDomain")
    priority: str = ""
    zone: str = ""
    os: str = _named("osType")
    size: str = _named("vmSize")
    tags: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)


def parse_instance(body: bytes) -> Instance:
    """Parse the category `compute` of instance metadata."""
    try:
        parsed = json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise Unreadable(f"instance metadata that is not JSON: {excerpt(body)}") from None
    if not isinstance(parsed, dict) or not isinstance(parsed.get("name"), str) or not parsed["name"]:
        raise Unreadable(f"instance metadata without a name: {excerpt(body)}")
    texts = {each.name: each.metadata.get("azure", each.name) for each in fields(Instance)}
    values: dict[str, Any] = {ours: _text(parsed.get(theirs)) for ours, theirs in texts.items()}
    return Instance(**values | {"tags": MappingProxyType(_tags(parsed))})


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _tags(parsed: Mapping[str, Any]) -> dict[str, str]:
    """Parse the list of tags; older versions have one string only, such as `a:1;b:2`."""
    listed = parsed.get("tagsList")
    if isinstance(listed, list):
        pairs = [(each.get("name"), each.get("value")) for each in listed if isinstance(each, dict)]
        return {name: _text(value) for name, value in pairs if isinstance(name, str)}
    pieces = (piece.partition(":") for piece in _text(parsed.get("tags")).split(";"))
    return {name: value for name, _, value in pieces if name}
