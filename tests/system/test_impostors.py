"""A guest that takes another guest's address on a real bridge is refused, and the owner is still answered."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest

from tests.helpers.programs.process import Program, until
from tests.system.namespaces import HOST, HOST_SIX, METADATA, Network, network

OWN, THIEF = "52:54:00:00:00:10", "52:54:00:00:00:66"
ADDRESS, SIX = "10.77.0.10", "fd77::10"
FLEET = f"""
[defaults]
driver = "simulated"

[hosts.host-1]

[[machines]]
name = "web-0"
host = "host-1"
address = "{ADDRESS}"
mac = "{OWN}"

[[machines]]
name = "six"
host = "host-1"
address = "{SIX}"
mac = "{OWN}"
"""
# A new neighbour lookup for the host's MAC claims the address. The bridge believes it after a second.
CLAIM = "ip neigh flush dev eth0; "
POLL = "curl -s -o /dev/null -w '%{{http_code}}' -m 2 --interface {source} -H Metadata:true '{url}' || true"
EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
# Prints the MAC that the kernel's tables have for an address, as the endpoint looks it up.
TABLES = """
import sys
from forewarn.guest.http.link_layer import Netlink
kernel = Netlink()
link = kernel.link_to(sys.argv[1])
print(link and (kernel.mac_of(sys.argv[1], link) or b"").hex(":"))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A server on the host, a machine, and a thief that uses the machine's addresses."""

    network: Network
    server: str

    def poll(self, who: str, *, source: str = ADDRESS, url: str = f"http://{METADATA}{EVENTS}") -> str:
        return self.network.shell(who, CLAIM + POLL.format(source=source, url=url))

    def forewarn(self, line: str) -> Any:
        return self.network.forewarn(self.server, line)

    def refused(self) -> float:
        metrics = self.network.shell("host", f"curl -s {self.server}/metrics")
        line = 'forewarn_connections_refused_total{limit="mac",plane="guest"}'
        return float(next(each for each in metrics.splitlines() if each.startswith(line)).split()[-1])

    def tables(self, address: str) -> str:
        return self.network.shell("host", f"{sys.executable} -c '{TABLES}' {address}").strip()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("impostors")
    (folder / "fleet.toml").write_text(FLEET)
    with network(web_0=0x10, thief=0x66) as built:
        for who, mac in (("web-0", OWN), ("thief", THIEF)):
            built.shell(who, f"ip link set eth0 address {mac}; ip addr add {ADDRESS}/24 dev eth0")
        built.shell("thief", f"ip addr add {SIX}/64 dev eth0 nodad")
        program = Program(
            folder,
            *("--fleet", "fleet.toml"),
            listen=[f"{METADATA}:80", f"[{HOST_SIX}]:80"],
            environment={"FOREWARN_GUEST_RATE": "0"},
            before=built.inside("host"),
        )
        with program:
            yield Site(network=built, server=program.operators)


def test_an_address_is_refused_from_another_mac(site: Site) -> None:
    before = site.refused()
    until(lambda: site.poll("thief") == "404", what="the 404 for the thief")
    assert site.refused() > before
    (record,) = until(
        lambda: [each for each in site.forewarn("history")["records"] if each["kind"] == "impostor-refused"],
        what="the record of it",
    )
    assert record["machine"] == "web-0"
    assert record["reason"] == f"address {ADDRESS} was used from MAC {THIEF}; the machine's own is {OWN}"


def test_the_machine_is_answered_while_another_claims_its_address(site: Site) -> None:
    for _ in range(3):
        until(lambda: site.poll("thief") == "404", what="the 404 for the thief")
        until(lambda: site.poll("web-0") == "200", what="the machine is answered")


def test_ipv6_addresses_are_protected_too(site: Site) -> None:
    url = f"http://[{HOST_SIX}]{EVENTS}"
    until(lambda: site.poll("thief", source=SIX, url=url) == "404", what="the thief is refused")
    until(lambda: site.poll("web-0", source=SIX, url=url) == "200", what="the machine is answered")


def test_a_mac_declared_later_applies_to_open_connections(site: Site) -> None:
    """A thief that connected before the MAC was declared is refused at its next request."""
    machine = {"host": "host-1", "address": "10.77.0.102"}
    put = "curl -sf -X PUT -H 'Content-Type: application/json' {url} -d '{body}'"
    url = f"{site.server}/v1/machines/late"
    site.network.shell("host", put.format(url=url, body=json.dumps(machine)))
    held = site.network.inside("thief")
    script = f"""
import http.client, sys
asked = http.client.HTTPConnection("{METADATA}", source_address=("10.77.0.102", 0), timeout=20)
for line in sys.stdin:
    asked.request("GET", "{EVENTS}", headers={{"Metadata": "true"}})
    answer = asked.getresponse(); answer.read()
    print(answer.status, flush=True)
"""
    with Popen([*held, sys.executable, "-c", script], stdin=PIPE, stdout=PIPE, text=True) as thief:
        assert thief.stdin is not None
        assert thief.stdout is not None
        for _ in range(2):
            print("ask", file=thief.stdin, flush=True)
            assert thief.stdout.readline().strip() == "200"
        changed = json.dumps({**machine, "mac": OWN})
        site.network.shell("host", put.format(url=url, body=changed))
        print("ask", file=thief.stdin, flush=True)
        assert thief.stdout.readline().strip() == "404"
        thief.stdin.close()


def test_the_tables_name_only_neighbours_on_the_bridge(site: Site) -> None:
    until(lambda: site.poll("thief") == "404", what="the thief is refused")
    assert site.tables(ADDRESS) in (OWN, THIEF)
    assert site.tables(HOST) == "None"  # the host's own address
    site.network.shell("host", f"ip route add 10.88.0.0/24 via {ADDRESS}")
    assert site.tables("10.88.0.7") == "None"  # behind a router
    assert site.tables("203.0.113.1") == "None"  # without a route
