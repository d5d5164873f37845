"""Third-party clients, unmodified: monitoring libraries read instance metadata."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.programs.process import Program, until
from tests.system.namespaces import METADATA, Network, network

FLEET = """
[groups.web]
kind = "scale-set"
[hosts.host-1]
[[machines]]
name = "web_0"
group = "web"
host = "host-1"
address = "10.77.0.20"
mac = "00-0D-3A-F8-06-EC"
location = "attic"
os = "Linux"
[[machines]]
name = "bare"
host = "host-1"
address = "10.77.0.21"
"""
CLIENTS = str(Path(__file__).with_name("metadata_clients.py"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """Serve two machines at the address that all of these clients use."""
    folder = tmp_path_factory.mktemp("metadata")
    (folder / "fleet.toml").write_text(FLEET)
    with network(web_0=20, bare=21) as built:
        built.shell("web-0", "ip link set eth0 address 00:0d:3a:f8:06:ec")  # the declared MAC
        flags = ("--fleet", "fleet.toml")
        listen = [f"{METADATA}:80"]
        with Program(folder, *flags, clock="system", listen=listen, before=built.inside("host")):
            yield built


def learnt(site: Network, client: str, *, by: str = "web-0") -> Any:
    """Run a client, and repeat it: some time out after 50 ms, which a busy computer may exceed."""
    command = f"{sys.executable} {CLIENTS} {client}"
    return until(lambda: json.loads(site.shell(by, command)), what=f"{client} to be told")


def test_new_relic_knows_the_machine(site: Network) -> None:
    told = learnt(site, "newrelic")
    assert (told["name"], told["location"], told["vmSize"]) == ("web_0", "attic", "standard")


def test_new_relic_knows_a_machine_that_declares_nothing(site: Network) -> None:
    told = learnt(site, "newrelic", by="bare")
    assert (told["name"], told["location"], told["vmSize"]) == ("bare", "local", "standard")


def test_elastic_knows_the_machine(site: Network) -> None:
    told = learnt(site, "elastic-apm")
    assert (told["instance"]["name"], told["region"], told["provider"]) == ("web_0", "attic", "azure")


def test_opentelemetrys_detector_knows_the_machine(site: Network) -> None:
    told = learnt(site, "opentelemetry-resource-detector-azure")
    assert (told["host.name"], told["cloud.region"], told["azure.vm.scaleset.name"]) == (
        "web_0",
        "attic",
        "web",
    )
    assert told["cloud.resource_id"].endswith("/virtualMachineScaleSets/web/virtualMachines/0")


def test_azure_monitors_exporter_knows_the_machine(site: Network) -> None:
    told = learnt(site, "azure-monitor-opentelemetry-exporter")
    assert (told["name"], told["location"], told["rp"]) == ("web_0", "attic", "vm")


def test_cloud_detect_knows_where_it_is(site: Network) -> None:
    assert learnt(site, "cloud-detect") is True


def test_cloud_init_can_read_the_network_interface(site: Network) -> None:
    url = f"http://{METADATA}/metadata/instance/network?api-version=2021-08-01"
    told = json.loads(site.shell("web-0", f"curl -fsS -H Metadata:true '{url}'"))
    (interface,) = told["interface"]
    assert interface["macAddress"] == "000D3AF806EC"
    assert interface["ipv4"]["ipAddress"] == [{"privateIpAddress": "10.77.0.20", "publicIpAddress": ""}]
