"""Instance metadata in Azure's form: a machine's own name, location and addresses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import TypeAlias

from forewarn.core.basic_types import GroupKind, Priority, ProjectName
from forewarn.core.model.machine import Machine

# The first version of Azure's metadata service. Any later date is accepted.
OLDEST_VERSION = "2017-03-01"
# The answer to a request without a version: the newest versions that Azure documents for this category.
NEWEST_VERSIONS = ("2023-11-15", "2023-07-01", "2021-12-13")


class InstanceMetadata(StrEnum):
    """How much metadata a machine gets."""

    FULL = "full"
    NAME = "name"  # for software that would otherwise detect Azure
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceDefaults:
    """Defaults for machines. Some clients ignore metadata without these fields."""

    location: str = "local"
    size: str = "standard"


Value: TypeAlias = str | list[dict[str, str]]
# A JSON value: an object, a list or a text.
Tree: TypeAlias = Mapping[str, "Tree"] | Sequence["Tree"] | str

_PRIORITIES = {Priority.REGULAR: "Regular", Priority.SPOT: "Spot"}


@dataclass(frozen=True, slots=True)
class Subject:
    """A machine, the kind of its group, and defaults."""

    machine: Machine
    kind: GroupKind
    defaults: InstanceDefaults = InstanceDefaults()

    @property
    def scale_set(self) -> str:
        """The name of its scale set, or an empty text."""
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
    # forewarn knows no images. A common detector ignores metadata in which one of these is missing.
    "sku": lambda of: "",
    "version": lambda of: "",
    "offer": lambda of: "",
    "publisher": lambda of: "",
    "resourceId": lambda of: resource_id(of),
}

_SPELLING = {name.lower(): name for name in COMPUTE}


def field_named(name: str) -> str | None:
    """Return the name of a `compute` field, written in any case; None if there is none."""
    return _SPELLING.get(name.lower())


def compute_field(of: Subject, field: str) -> Value:
    """Return one field of Azure's `compute`."""
    return COMPUTE[field](of)


def compute(of: Subject, *, detail: InstanceMetadata) -> dict[str, Value]:
    """Return the fields of Azure's `compute`, or only the name."""
    names = COMPUTE if detail is InstanceMetadata.FULL else ("name",)
    return {name: compute_field(of, name) for name in names}


# The fields of `network` that are texts, in lower case. The others are JSON.
NETWORK_TEXTS = frozenset({"macaddress", "privateipaddress", "publicipaddress"})


def network(machine: Machine) -> Mapping[str, Tree]:
    """Return the network interface of a machine: its address and MAC. Its subnet is not known."""
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
    """Return the IPv4 addresses and the IPv6 addresses."""
    if address is None:
        return [], []
    if ":" in address:
        return [], [{"privateIpAddress": address}]
    return [{"privateIpAddress": address, "publicIpAddress": ""}], []


def part_of(tree: Tree, path: Sequence[str]) -> Tree | None:
    """Return the part of a tree at a path of names, in any case, and indexes; None if there is none."""
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
    """Return the Azure resource id of a machine."""
    machine = of.machine
    begin = f"/subscriptions/{subscription_id(machine.project)}/resourceGroups/{machine.project}"
    kind = f"virtualMachineScaleSets/{of.scale_set}/virtualMachines" if of.scale_set else "virtualMachines"
    # The id of an instance in a scale set is its number: `web_3` is number 3 of `web`.
    name = machine.name.removeprefix(f"{of.scale_set}_") if of.scale_set else machine.name
    return f"{begin}/providers/Microsoft.Compute/{kind}/{name}"


def subscription_id(project: ProjectName) -> str:
    """Derive a permanent GUID from the name of a project."""
    digits = sha256(f"forewarn subscription\0{project}".encode(errors="surrogatepass")).hexdigest()
    # The two fixed digits are version 5, a name-based UUID, and the variant of RFC 9562.
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"
