"""What the driver answers, asked directly: attempts, hosts, and what there is."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from forewarn.config import Settings
from forewarn.control.driver import Cancelled, Done, DriverTask, Failed, NotBegun, Running, Unknown
from forewarn.core.copies import replace
from forewarn.core.errors import Unavailable
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.words import (
    Action,
    GroupName,
    HostName,
    MachineId,
    MachineName,
    OrderId,
    ProjectName,
    Work,
)
from forewarn.drivers.driver_setup import DriverSetup
from forewarn.drivers.openstack.driver import OpenStackDriver, make
from tests.openstack.real_nova import Nova
from tests.process import free_port, until

# The library warns of parts of its own.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Support for InfluxDB"),
    pytest.mark.filterwarnings("ignore:The 'service_type' parameter"),
]

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
COMPUTE1 = Host(name=HostName("compute1"))


def made(**options: Any) -> OpenStackDriver:
    given = {"cloud": "lab", "answer-for": "10s", **options}
    return make(DriverSetup(name="openstack", settings=Settings(), options=given, monotonic=lambda: 0.0))


@pytest.fixture
def driver(nova: Nova, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenStackDriver:
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", f"{nova.write_clouds(tmp_path)}")
    return made()


def task(server: str, work: Work = Work.REBOOT, *, attempt: int = 1) -> DriverTask:
    web = Machine(
        id=MachineId(server),
        name=MachineName("web"),
        project=ProjectName("default"),
        group=GroupName("web"),
        host=COMPUTE1.name,
    )
    return DriverTask(
        order=OrderId("O"),
        attempt=attempt,
        action=Action.RESTART,
        work=work,
        machine=web,
        source=COMPUTE1,
        target=None,
        begun_at=NOON,
        now=NOON,
        driver="openstack",
    )


def test_an_older_attempt_is_refused_also_by_another_process(nova: Nova, driver: OpenStackDriver) -> None:
    web = nova.create("web")
    assert isinstance(driver.begin(task(web, attempt=2)), Running)
    late = Failed("attempt 2 has been begun since")
    assert driver.begin(task(web, attempt=1)) == late
    other = made()
    assert (other.begin(task(web, attempt=1)), other.check(task(web, attempt=1))) == (late, late)
    assert nova.actions(web) == ["reboot"]


def test_a_step_that_is_called_off_before_it_began_never_begins(nova: Nova, driver: OpenStackDriver) -> None:
    web = nova.create("web")
    assert driver.check(task(web)) == NotBegun()
    assert driver.cancel(task(web)) == Cancelled()
    off = Failed("it was called off")
    assert (driver.begin(task(web)), made().begin(task(web))) == (off, off)
    assert isinstance(made().begin(task(web, attempt=2)), Running)
    assert nova.actions(web) == ["reboot"]


def test_a_step_is_done_however_often_it_is_asked_about(nova: Nova, driver: OpenStackDriver) -> None:
    web = nova.create("web")
    driver.begin(task(web, Work.EVICT))
    until(lambda: driver.check(task(web, Work.EVICT)) == Done(), what="the server to be stopped")
    assert made().check(task(web, Work.EVICT)) == Done()


def test_a_cloud_that_is_not_there_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = Nova(f"http://127.0.0.1:{free_port()}/v2.1", None)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", f"{nobody.write_clouds(tmp_path)}")
    driver = made()
    assert isinstance(driver.begin(task("u")), Unknown)
    assert isinstance(driver.check(task("u")), Unknown)
    assert isinstance(driver.cancel(task("u")), Unknown)
    assert "the cloud cannot be asked: " in f"{driver.reach(COMPUTE1)}"
    with pytest.raises(Unavailable, match="the cloud cannot be asked: "):
        driver.inventory([])


def test_a_cloud_that_clouds_yaml_does_not_have_is_unknown_and_named(driver: OpenStackDriver) -> None:
    answer = made(cloud="nowhere").begin(task("u"))
    assert isinstance(answer, Unknown)
    assert "Cloud nowhere was not found" in answer.why


def test_hosts_are_reached_through_nova(nova: Nova, driver: OpenStackDriver) -> None:
    web = task("u").machine
    assert web is not None
    assert (driver.reach(COMPUTE1), driver.precheck(web, COMPUTE1)) == (None, None)
    nova.set_service("compute1", status="disabled", disabled_reason="olga: memory test")
    assert driver.precheck(web, COMPUTE1) == "nova has its compute service disabled: olga: memory test"
    nova.set_service("compute1", forced_down=True)
    assert driver.reach(COMPUTE1) == "its compute service is down, as nova says"
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
    assert [each.name for each in there.groups] == ["db"]
    (port,) = nova.server(web)["addresses"].values()
    assert found[MachineId(web)].addresses == tuple(each["addr"] for each in port)
    assert found[MachineId(web)].macs == (port[0]["OS-EXT-IPS-MAC:mac_addr"],)
    assert (found[MachineId(web)].host, found[MachineId(web)].mobility) == ("compute1", "live")
    mine = found[MachineId(db)]
    assert (mine.name, mine.group, mine.update_domain, mine.host) == ("db-0", "db", 2, "compute2")
    nova.call("POST", f"/os-aggregates/{aggregate}/action", {"remove_host": {"host": "compute2"}})
