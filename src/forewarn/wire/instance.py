"""Instance metadata: what existing clients ask for to learn their own name and location."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from hashlib import sha256

from forewarn.core.model.machine import Machine
from forewarn.core.words import GroupKind, Priority, ProjectName

# The first version of Azure's instance metadata; any later date is accepted.
OLDEST_VERSION = "2017-04-02"


class InstanceMetadata(StrEnum):
    """How much of itself a machine is shown."""

    FULL = "full"
    NAME = "name"  # for fleets whose software should not take them for Azure
    OFF = "off"


Value = str | list[dict[str, str]]

_PRIORITIES = {Priority.REGULAR: "Regular", Priority.SPOT: "Spot"}


def _scale_set(machine: Machine, kind: GroupKind) -> str:
    return machine.group if kind is GroupKind.SCALE_SET else ""


COMPUTE: Mapping[str, Callable[[Machine, GroupKind], Value]] = {
    "name": lambda machine, kind: machine.name,
    "vmId": lambda machine, kind: machine.id,
    "location": lambda machine, kind: machine.location,
    "resourceGroupName": lambda machine, kind: machine.project,
    "subscriptionId": lambda machine, kind: subscription_id(machine.project),
    "vmScaleSetName": _scale_set,
    "placementGroupId": _scale_set,
    "platformUpdateDomain": lambda machine, kind: str(machine.update_domain),
    "platformFaultDomain": lambda machine, kind: str(machine.fault_domain),
    "priority": lambda machine, kind: _PRIORITIES[machine.priority],
    "tags": lambda machine, kind: ";".join(f"{name}:{value}" for name, value in machine.tags.items()),
    "tagsList": lambda machine, kind: [
        {"name": name, "value": value} for name, value in machine.tags.items()
    ],
    "zone": lambda machine, kind: machine.zone,
    "osType": lambda machine, kind: machine.os,
    "vmSize": lambda machine, kind: machine.size,
}

_SPELLING = {name.lower(): name for name in COMPUTE}


def field_named(name: str) -> str | None:
    """Find a field of `compute` by its name in any case."""
    return _SPELLING.get(name.lower())


def compute_field(machine: Machine, kind: GroupKind, field: str) -> Value:
    """Return one thing of a machine, as Azure's `compute` names it."""
    return COMPUTE[field](machine, kind)


def compute(machine: Machine, kind: GroupKind, *, detail: InstanceMetadata) -> dict[str, Value]:
    """Return all that may be shown of a machine."""
    names = COMPUTE if detail is InstanceMetadata.FULL else ("name",)
    return {name: compute_field(machine, kind, name) for name in names}


def subscription_id(project: ProjectName) -> str:
    """Derive the GUID that stands for a project, the same for ever."""
    digits = sha256(f"forewarn subscription\0{project}".encode(errors="surrogatepass")).hexdigest()
    # The two fixed digits say "made from a name": version 5, and the variant of RFC 9562.
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"
