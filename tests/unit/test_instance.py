"""Instance metadata, as clients of Azure read it."""

import pytest

from forewarn.core.model.machine import Machine
from forewarn.core.words import GroupKind, GroupName, HostName, MachineId, MachineName, Priority, ProjectName
from forewarn.wire.instance import InstanceMetadata, compute, field_named, subscription_id

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
)


def test_compute_has_the_fields_of_the_contract() -> None:
    assert compute(MACHINE, GroupKind.SCALE_SET, detail=InstanceMetadata.FULL) == {
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
    }


def test_compute_begins_with_the_name_and_ends_with_the_size() -> None:
    names = list(compute(MACHINE, GroupKind.SCALE_SET, detail=InstanceMetadata.FULL))
    assert (names[0], names[-1]) == ("name", "vmSize")


@pytest.mark.parametrize("kind", [GroupKind.STANDALONE, GroupKind.AVAILABILITY_SET, GroupKind.CLOUD_SERVICE])
def test_only_a_scale_set_is_named(kind: GroupKind) -> None:
    told = compute(MACHINE, kind, detail=InstanceMetadata.FULL)
    assert (told["vmScaleSetName"], told["placementGroupId"]) == ("", "")


def test_with_the_name_setting_only_the_name_is_told() -> None:
    assert compute(MACHINE, GroupKind.STANDALONE, detail=InstanceMetadata.NAME) == {"name": "web_3"}


def test_a_subscription_is_a_guid_of_its_project_and_stays_the_same() -> None:
    default = subscription_id(ProjectName("default"))
    assert default == "a81b7f75-d280-5a5e-8253-74741693f5ad"
    assert subscription_id(ProjectName("shop")) != default


def test_fields_are_found_in_any_case() -> None:
    assert field_named("VMID") == "vmId"
    assert field_named("tagslist") == "tagsList"
    assert field_named("customData") is None
