"""Instance metadata: what existing clients ask for to learn their own name, location and addresses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import TypeAlias

from forewarn.core.basic_types import GroupKind, Priority, ProjectName
from forewarn.core.model.machine import Machine

# The first version of Azure's metadata service; any later date is accepted.
OLDEST_VERSION = "2017-03-01"
# What a request without a version is told to ask with: the newest that Azure documents of this category.
NEWEST_VERSIONS = ("2023-11-15", "2023-07-01", "2021-12-13")


class InstanceMetadata(StrEnum):
    """How much of itself a machine is shown."""

    FULL = "full"
    NAME = "name"  # for fleets whose software should not take them for Azure
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceDefaults:
    """What a machine is told that declares nothing of the kind: shipping clients ignore one without them."""

    location: str = "local"
    size: str = "standard"


Value: TypeAlias = str | list[dict[str, str]]
# What JSON has: an object, a list or a text.
Tree: TypeAlias = Mapping[str, "Tree"] | Sequence["Tree"] | str

_PRIORITIES = {Priority.REGULAR: "Regular", Priority.SPOT: "Spot"}


@dataclass(frozen=True, slots=True)
class Subject:
    """The machine that asks, and what its metadata depends on besides."""

    machine: Machine
    kind: GroupKind
    defaults: InstanceDefaults = InstanceDefaults()

    @property
    def scale_set(self) -> str:
        """The scale set that it is of, if it is of one."""
        return self.machine.group if self.kind is GroupKind.SCALE_SET else ""


COMPUTE: Mapping[str, Callable[[Subject], Value]] = {
    "name": lambda of: of.machine.name,
    "vmId": lambda of: of.machine.id,
    "location": lambda of: of.machine.location or of.defaults.location,
    "resourceGroupName": lambda of: of.machine.project,
    "subscriptionId": lambda of: subscription_id(of.machine.project),
    "vmScaleSetName": lambda of: of.scale_set,
    "placementGroupId": lambda of: of.scale_set,
    "platformUpdateDomain": lambda of: str(of.machine.update_domain),
    "platformFaultDomain": lambda of: str(of.machine.fault_domain),
    "priority": lambda of: _PRIORITIES[of.machine.priority],
    "tags": lambda of: ";".join(f"{name}:{value}" for name, value in of.machine.tags.items()),
    "tagsList": lambda of: [{"name": name, "value": value} for name, value in of.machine.tags.items()],
    "zone": lambda of: of.machine.zone,
    "osType": lambda of: of.machine.os,
    "vmSize": lambda of: of.machine.size or of.defaults.size,
    # Of images, which forewarn does not know. A shipping detector drops everything when one is missing.
    "sku": lambda of: "",
    "version": lambda of: "",
    "offer": lambda of: "",
    "publisher": lambda of: "",
    "resourceId": lambda of: resource_id(of),
}

_SPELLING = {name.lower(): name for name in COMPUTE}


def field_named(name: str) -> str | None:
    """Find a field of `compute` by its name in any case."""
    return _SPELLING.get(name.lower())


def compute_field(of: Subject, field: str) -> Value:
    """Return one thing of a machine, as Azure's `compute` names it."""
    return COMPUTE[field](of)


def compute(of: Subject, *, detail: InstanceMetadata) -> dict[str, Value]:
    """Return all that may be shown of a machine."""
    names = COMPUTE if detail is InstanceMetadata.FULL else ("name",)
    return {name: compute_field(of, name) for name in names}


# The parts of `network` that are texts, in lower case; all others are asked for as JSON.
NETWORK_TEXTS = frozenset({"macaddress", "privateipaddress", "publicipaddress"})


def network(machine: Machine) -> Mapping[str, Tree]:
    """Return the interface of a machine as far as it is known: its address, its MAC, neither its subnet."""
    if machine.address is None and machine.mac is None:
        return {"interface": []}
    four, six = _addresses(machine.address)
    mac = (machine.mac or "").replace(":", "").upper()
    interface: Tree = {
        "ipv4": {"ipAddress": four, "subnet": []},
        "ipv6": {"ipAddress": six},
        "macAddress": mac,
    }
    return {"interface": [interface]}


def _addresses(address: str | None) -> tuple[list[Tree], list[Tree]]:
    """Write an address among those of IPv4 or those of IPv6."""
    if address is None:
        return [], []
    if ":" in address:
        return [], [{"privateIpAddress": address}]
    return [{"privateIpAddress": address, "publicIpAddress": ""}], []


def part_of(tree: Tree, path: Sequence[str]) -> Tree | None:
    """Find a part by the names and numbers that lead to it, in any case; None if there is none."""
    for step in path:
        found: Tree | None = None
        if isinstance(tree, Mapping):
            found = next((each for name, each in tree.items() if name.lower() == step.lower()), None)
        elif not isinstance(tree, str):
            found = next((each for index, each in enumerate(tree) if str(index) == step), None)
        if found is None:
            return None
        tree = found
    return tree


def resource_id(of: Subject) -> str:
    """Write the path by which Azure's software names a machine."""
    machine = of.machine
    begin = f"/subscriptions/{subscription_id(machine.project)}/resourceGroups/{machine.project}"
    kind = f"virtualMachineScaleSets/{of.scale_set}/virtualMachines" if of.scale_set else "virtualMachines"
    # An instance of a scale set is named by its number there: `web_3` is number 3 of `web`.
    name = machine.name.removeprefix(f"{of.scale_set}_") if of.scale_set else machine.name
    return f"{begin}/providers/Microsoft.Compute/{kind}/{name}"


def subscription_id(project: ProjectName) -> str:
    """Derive the GUID that stands for a project, the same for ever."""
    digits = sha256(f"forewarn subscription\0{project}".encode(errors="surrogatepass")).hexdigest()
    # The two fixed digits say "made from a name": version 5, and the variant of RFC 9562.
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"
