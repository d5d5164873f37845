"""Instance metadata in the form that Azure clients read."""

from dataclasses import replace

import pytest

from forewarn.core.basic_types import (
    GroupKind,
    GroupName,
    HostName,
    MachineId,
    MachineName,
    Priority,
    ProjectName,
)
from forewarn.core.model.machine import Machine
from forewarn.wire.instance import (
    InstanceDefaults,
    InstanceMetadata,
    Subject,
    Tree,
    compute,
    field_named,
    network,
    part_of,
    subscription_id,
)

MACHINE = Machine(
    id=MachineId("13f56399-bd52-4150-9748-7190aae1ff21"),
    name=MachineName("web_3"),
    project=ProjectName("shop"),
    group=GroupName("web"),
    host=HostName("host-1"),
    update_domain=2,
    fault_domain=1,
    priority=Priority.SPOT,
    tags={"role": "front", "tier": "1"},
    location="north",
    zone="2",
    size="small",
    os="Linux",
    address="10.0.0.7",
    mac="00:0d:3a:f8:06:ec",
)


def told(machine: Machine = MACHINE, kind: GroupKind = GroupKind.STANDALONE) -> dict[str, object]:
    return dict(compute(Subject(machine, kind), detail=InstanceMetadata.FULL))


def resource(path: str) -> str:
    subscription = subscription_id(ProjectName("shop"))
    return f"/subscriptions/{subscription}/resourceGroups/shop/providers/Microsoft.Compute/{path}"


def test_compute_has_the_fields_of_the_contract() -> None:
    assert told(kind=GroupKind.SCALE_SET) == {
        "name": "web_3",
        "vmId": "13f56399-bd52-4150-9748-7190aae1ff21",
        "location": "north",
        "resourceGroupName": "shop",
        "subscriptionId": subscription_id(ProjectName("shop")),
        "vmScaleSetName": "web",
        "placementGroupId": "web",
        "platformUpdateDomain": "2",
        "platformFaultDomain": "1",
        "priority": "Spot",
        "tags": "role:front;tier:1",
        "tagsList": [{"name": "role", "value": "front"}, {"name": "tier", "value": "1"}],
        "zone": "2",
        "osType": "Linux",
        "vmSize": "small",
        "sku": "",
        "version": "",
        "offer": "",
        "publisher": "",
        "resourceId": resource("virtualMachineScaleSets/web/virtualMachines/3"),
    }


def test_location_and_size_default_to_the_settings() -> None:
    bare = replace(MACHINE, location="", size="")
    assert (told(bare)["location"], told(bare)["vmSize"]) == ("local", "standard")
    set_ = Subject(bare, GroupKind.STANDALONE, InstanceDefaults(location="attic", size="tiny"))
    compute_ = compute(set_, detail=InstanceMetadata.FULL)
    assert (compute_["location"], compute_["vmSize"]) == ("attic", "tiny")


def test_the_resource_id_of_a_machine_outside_scale_sets_ends_with_its_name() -> None:
    assert told(kind=GroupKind.AVAILABILITY_SET)["resourceId"] == resource("virtualMachines/web_3")


def test_the_network_has_the_address_and_the_mac() -> None:
    assert network(MACHINE) == {
        "interface": [
            {
                "ipv4": {
                    "ipAddress": [{"privateIpAddress": "10.0.0.7", "publicIpAddress": ""}],
                    "subnet": [],
                },
                "ipv6": {"ipAddress": []},
                "macAddress": "000D3AF806EC",
            }
        ]
    }


def test_an_ipv6_address_is_listed_under_ipv6() -> None:
    assert network(replace(MACHINE, address="fd77::20", mac=None)) == {
        "interface": [
            {
                "ipv4": {"ipAddress": [], "subnet": []},
                "ipv6": {"ipAddress": [{"privateIpAddress": "fd77::20"}]},
                "macAddress": "",
            }
        ]
    }


def test_a_machine_without_address_and_mac_has_no_interface() -> None:
    assert network(replace(MACHINE, address=None, mac=None)) == {"interface": []}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("INTERFACE/0/macaddress", "000D3AF806EC"),
        ("interface/0/ipv4/ipaddress/0/privateipaddress", "10.0.0.7"),
        ("interface/1", None),
        ("interface/-1", None),
        ("interface/\u0661", None),
        ("interface/first", None),
        ("interface/0/macaddress/x", None),
        ("other", None),
    ],
)
def test_a_part_is_found_by_its_path(path: str, found: Tree | None) -> None:
    assert part_of(network(MACHINE), path.split("/")) == found


@pytest.mark.parametrize("kind", [GroupKind.STANDALONE, GroupKind.AVAILABILITY_SET, GroupKind.CLOUD_SERVICE])
def test_only_a_scale_set_is_named(kind: GroupKind) -> None:
    assert (told(kind=kind)["vmScaleSetName"], told(kind=kind)["placementGroupId"]) == ("", "")


def test_with_the_setting_name_only_the_name_is_shown() -> None:
    assert compute(Subject(MACHINE, GroupKind.STANDALONE), detail=InstanceMetadata.NAME) == {"name": "web_3"}


def test_a_subscription_is_a_guid_of_its_project_and_stays_the_same() -> None:
    default = subscription_id(ProjectName("default"))
    assert default == "a81b7f75-d280-5a5e-8253-74741693f5ad"
    assert subscription_id(ProjectName("shop")) != default


def test_fields_are_found_in_any_case() -> None:
    assert field_named("VMID") == "vmId"
    assert field_named("tagslist") == "tagsList"
    assert field_named("customData") is None
