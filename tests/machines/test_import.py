"""Domains are imported from two real libvirtd, and changes outside forewarn are detected."""

from pathlib import Path
from typing import Any

from tests.helpers.programs.process import until
from tests.machines.bed import Bed
from tests.machines.serving import Service, serving

METADATA = (
    '<forewarn:machine xmlns:forewarn="urn:forewarn:machine:1" '
    'group="web" update-domain="1" mobility="live"/>'
)
NOVA = '<nova:instance xmlns:nova="http://openstack.org/xmlns/libvirt/nova/1.1"/>'


def imported(service: Service, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = service.post("/v1/fleet/import", json={"from": "libvirt", **more})
    return answer


def test_domains_are_imported_and_changes_outside_forewarn_are_followed(bed: Bed, tmp_path: Path) -> None:
    web = bed.guest("web-0", number=41, metadata=METADATA)
    bed.guest("off", number=42, on="kvm02", start=False)
    bed.guest("theirs", number=43, on="kvm02", start=False, metadata=NOVA)
    web.console.wait_for_boot()
    with serving(bed, tmp_path, {}) as service:
        until(
            lambda: imported(service, dry_run=True)["changes"],
            what="domains that are found",
        )
        first = imported(service)
        first["changes"].sort()
        assert first["changes"] == ["+ group web", "+ machine off, stopped", "+ machine web-0 on kvm01"]
        assert any("theirs is not imported: OpenStack's nova manages it" in note for note in first["notes"])
        machine = service.get("/v1/machines/web-0")["machine"]
        assert (machine["vm_id"], machine["mac"], machine["source"]) == (web.vm_id, web.mac, "libvirt")
        assert (machine["group"], machine["update_domain"], machine["mobility"]) == ("web", 1, "live")
        assert (machine["resources"].keys(), machine["resources"]["vcpus"]) == ({"memory", "vcpus"}, 1)
        until(
            lambda: imported(service) and service.get("/v1/machines/web-0")["machine"]["address"],
            what="the agent's word of its address",
        )
        assert service.get("/v1/machines/web-0")["machine"]["address"] == web.address
        assert imported(service)["changes"] == []

        bed.hosts["kvm01"].virsh("destroy", "web-0")
        assert imported(service)["changes"] == ["~ machine web-0: stopped on kvm01 outside forewarn"]
        bed.hosts["kvm01"].virsh("undefine", "web-0")
        definition = bed.folder / "domains" / "web-0.xml"
        bed.hosts["kvm02"].virsh("define", str(definition))
        bed.hosts["kvm02"].virsh("start", "web-0")
        assert imported(service)["changes"] == ["~ machine web-0: started on kvm02 outside forewarn"]
        bed.hosts["kvm02"].virsh("undefine", "off")
        refused = service.call("POST", "/v1/fleet/import", json={"from": "libvirt"})
        assert (refused.status_code, refused.json()["error"]["message"]) == (
            409,
            "the import would remove 1 of 2 machines: confirm with --yes if they are really gone",
        )
        assert imported(service, yes=True)["changes"] == ["- machine off: destroyed outside forewarn"]
        assert service.kinds().count("unannounced-impact") == 3


def test_a_failed_order_is_retried_on_the_host_to_which_its_machine_was_moved(
    bed: Bed, tmp_path: Path
) -> None:
    web = bed.guest("web-0", number=41, metadata=METADATA)
    here, there = bed.hosts["kvm01"], bed.hosts["kvm02"]
    web.console.wait_for_boot()
    with serving(bed, tmp_path, {}) as service:
        until(lambda: imported(service)["applied"], what="a machine that is imported")
        here.virsh("suspend", "web-0")
        order = service.order("/v1/machines/web-0/freeze", emergency="a test")
        service.wait_for_order(order, "failed")
        here.virsh("destroy", "web-0")
        here.virsh("undefine", "web-0")
        gone = imported(service)
        assert (gone["changes"], "web-0 is gone, and order" in " ".join(gone["notes"])) == ([], True)
        there.virsh("define", str(bed.folder / "domains" / "web-0.xml"))
        there.virsh("start", "web-0")
        found = imported(service)
        assert found["changes"] == ["~ machine web-0: moved from kvm01 to kvm02 outside forewarn"]
        assert any("retry it from where the machine is now" in note for note in found["notes"])
        service.post(f"/v1/orders/{order}/retry")
        service.wait_for_order(order)
        assert service.host_of("web-0") == "kvm02"
