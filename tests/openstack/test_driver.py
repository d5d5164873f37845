"""The answers of the driver: attempts, hosts and inventory."""

from dataclasses import replace
from pathlib import Path

import pytest

from forewarn.control.driver import Unknown
from forewarn.core.basic_types import HostName, MachineId, Work
from forewarn.core.errors import Unavailable
from forewarn.drivers.openstack.driver import OpenStackDriver
from tests.helpers.programs.process import free_port
from tests.openstack.driver_calls import COMPUTE1, LIBRARY_WARNINGS, SavedStep, made, task
from tests.openstack.real_nova import Nova

pytestmark = LIBRARY_WARNINGS


@pytest.fixture
def driver(nova: Nova, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenStackDriver:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", f"{nova.write_clouds(tmp_path)}")
    return made()


def test_an_unreachable_cloud_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = Nova(f"http://127.0.0.1:{free_port()}/v2.1", None)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", f"{nobody.write_clouds(tmp_path)}")
    driver = made()
    assert isinstance(driver.begin(task("u")), Unknown)
    marked = task("u", mark="order=O attempt=1 how=reboot at=2026-11-16T12:00:00+00:00")
    assert isinstance(driver.check(marked), Unknown)
    assert isinstance(driver.cancel(marked), Unknown)
    assert "the cloud does not answer: " in f"{driver.reach(COMPUTE1)}"
    with pytest.raises(Unavailable, match="the cloud does not answer: "):
        driver.inventory([])


def test_a_404_of_another_service_does_not_mean_that_a_server_is_gone(
    nova: Nova, driver: OpenStackDriver
) -> None:
    step = SavedStep(task(nova.create("web"), Work.TERMINATE))
    step.begin(driver)
    nova.behave(misrouted=True)
    answer = step.check(driver)
    assert isinstance(answer, Unknown)
    assert "does not come from nova" in answer.why


def test_a_cloud_missing_from_clouds_yaml_is_unknown_and_named(driver: OpenStackDriver) -> None:
    answer = made(cloud="nowhere").begin(task("u"))
    assert isinstance(answer, Unknown)
    assert "Cloud nowhere was not found" in answer.why


def test_hosts_are_reached_through_nova(nova: Nova, driver: OpenStackDriver) -> None:
    moved = replace(task("u"), target=COMPUTE1)
    assert (driver.reach(COMPUTE1), driver.precheck(moved)) == (None, None)
    nova.set_service("compute1", status="disabled", disabled_reason="olga: memory test")
    assert driver.precheck(moved) == "its compute service is disabled in nova: olga: memory test"
    nova.set_service("compute1", forced_down=True)
    assert driver.reach(COMPUTE1) == "nova reports its compute service as down"
    elsewhere = replace(COMPUTE1, name=HostName("kvm1"))
    assert "nova has no compute service on kvm1" in f"{driver.reach(elsewhere)}"


def test_the_inventory_has_servers_hosts_groups_and_domains(nova: Nova, driver: OpenStackDriver) -> None:
    group = nova.call(
        "POST", "/os-server-groups", {"server_group": {"name": "db", "policy": "anti-affinity"}}
    )
    aggregate = nova.call("POST", "/os-aggregates", {"aggregate": {"name": "rack-2"}})["aggregate"]["id"]
    nova.call("POST", f"/os-aggregates/{aggregate}/action", {"add_host": {"host": "compute2"}})
    domain = {"set_metadata": {"metadata": {"forewarn:update-domain": "2"}}}
    nova.call("POST", f"/os-aggregates/{aggregate}/action", domain)
    web = nova.create("web", network=True, metadata={"forewarn:mobility": "live"})
    db = nova.create("db 0", host="compute2", hints={"group": group["server_group"]["id"]})
    there = driver.inventory([])
    found = {each.vm_id: each for each in there.machines}
    assert set(found) == {web, db}
    assert [each.name for each in there.hosts] == ["compute1", "compute2"]
    unique = f"db-{group['server_group']['id'][:8]}"
    assert [(each.name, each.called) for each in there.groups] == [(unique, "db")]
    (port,) = nova.server(web)["addresses"].values()
    assert found[MachineId(web)].addresses == tuple(each["addr"] for each in port)
    assert found[MachineId(web)].macs == (port[0]["OS-EXT-IPS-MAC:mac_addr"],)
    assert (found[MachineId(web)].host, found[MachineId(web)].mobility) == ("compute1", "live")
    mine = found[MachineId(db)]
    assert (mine.name, mine.group, mine.update_domain, mine.host) == ("db-0", unique, 2, "compute2")


def test_only_addresses_of_the_named_networks_count(nova: Nova, driver: OpenStackDriver) -> None:
    web = nova.create("web", network=True)
    ((network, ports),) = nova.server(web)["addresses"].items()
    (found,) = made(addresses=["elsewhere", network]).inventory([]).machines
    assert found.addresses == tuple(each["addr"] for each in ports)
    assert found.own_network == f"{found.project}.{network}"
    (without,) = made(addresses="elsewhere").inventory([]).machines
    assert (without.addresses, without.macs) == ((), ())
