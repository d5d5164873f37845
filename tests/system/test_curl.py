"""The commands of Azure's documentation work unchanged in machines identified by their addresses."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.programs.process import Program
from tests.system.namespaces import HOST_SIX, METADATA, Network, network

VERSIONS = (
    "2017-03-01",
    "2017-08-01",
    "2017-11-01",
    "2019-01-01",
    "2019-04-01",
    "2019-08-01",
    "2020-07-01",
)

# Copied from learn.microsoft.com/azure/virtual-machines/linux/scheduled-events.
DOCUMENTED_ID = "f020ba2e-3bc0-4c40-a10b-86575a9eabd5"
POLL = "curl -H Metadata:true http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01"
APPROVE = (
    "curl -H Metadata:true -X POST "
    """-d '{"StartRequests": [{"EventId": "f020ba2e-3bc0-4c40-a10b-86575a9eabd5"}]}' """
    "http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01"
)
STATUS = " -s -o /dev/null -w '%{http_code}'"

FLEET = """
[groups.web]
kind = "availability-set"
update-domains = 2

[defaults]
driver = "simulated"

[hosts.host-1]

[[machines]]
name = "web-0"
group = "web"
host = "host-1"
update-domain = 0
address = "10.77.0.10"

[[machines]]
name = "web-1"
group = "web"
host = "host-1"
update-domain = 1
address = "10.77.0.11"

[[machines]]
name = "db"
host = "host-1"
address = "10.77.0.12"

[[machines]]
name = "six"
host = "host-1"
address = "fd77::12"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A server on the host, and guests on its network."""

    network: Network
    server: str

    def order(self, line: str) -> Any:
        return self.network.forewarn(self.server, line)

    def advance(self, seconds: int) -> None:
        self.order(f"clock advance {seconds}")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("curl")
    (folder / "fleet.toml").write_text(FLEET)
    with network(web_0=10, web_1=11, db=12, six=0x12, stranger=99) as built:
        program = Program(
            folder,
            *("--fleet", "fleet.toml"),
            listen=[f"{METADATA}:80", f"[{HOST_SIX}]:80"],
            environment={"FOREWARN_GUEST_RATE": "0"},
            before=built.inside("host"),
        )
        with program:
            yield Site(network=built, server=program.operators)


def version_of(command: str, version: str) -> str:
    return command.replace("2020-07-01", version)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_documented_commands_poll_and_approve(site: Site, version: str) -> None:
    poll, approve = version_of(POLL, version), version_of(APPROVE, version)
    before = json.loads(site.network.shell("web-0", poll))
    assert before["Events"] == []
    event = site.order("machine restart web-0")["event"]

    (seen,) = json.loads(site.network.shell("web-1", poll))["Events"]
    assert seen["EventId"] == event["id"]
    assert seen["EventStatus"] == "Scheduled"
    assert seen["Resources"] == ["_web-0" if version == "2017-03-01" else "web-0"]

    answer = site.network.shell("web-1", approve.replace(DOCUMENTED_ID, event["id"].lower()))
    assert answer == ""
    (seen,) = json.loads(site.network.shell("web-0", poll))["Events"]
    assert (seen["EventStatus"], seen["NotBefore"]) == ("Started", "")

    site.advance(90)
    after = json.loads(site.network.shell("web-0", poll))
    assert after == {"DocumentIncarnation": before["DocumentIncarnation"] + 3, "Events": []}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_event_id_of_the_documentation_is_unknown(site: Site, version: str) -> None:
    assert site.network.shell("web-0", version_of(APPROVE, version) + STATUS) == "400"


def test_a_guest_neither_sees_nor_approves_the_events_of_another_group(site: Site) -> None:
    for guest in ("web-0", "db"):
        site.network.shell(guest, POLL)
    event = site.order("machine restart web-0")["event"]
    assert json.loads(site.network.shell("db", POLL))["Events"] == []
    approve = APPROVE.replace(DOCUMENTED_ID, event["id"])
    assert site.network.shell("db", approve + STATUS) == "400"
    (seen,) = json.loads(site.network.shell("web-0", POLL))["Events"]
    assert seen["EventStatus"] == "Scheduled"
    site.order(f"event cancel {event['id']}")


def test_an_unknown_address_gets_404(site: Site) -> None:
    assert site.network.shell("stranger", POLL + STATUS) == "404"


def test_a_guest_is_identified_by_its_ipv6_address(site: Site) -> None:
    poll = POLL.replace(METADATA, f"[{HOST_SIX}]")
    name = poll.replace("scheduledevents", "instance/compute/name") + "\\&format=text"
    assert site.network.shell("six", name) == "six"
    assert json.loads(site.network.shell("six", poll))["Events"] == []
    # Its other address does not belong to the fleet.
    assert site.network.shell("six", POLL + STATUS) == "404"
    assert site.network.shell("db", poll + STATUS) == "404"


def test_without_the_header_only_the_first_version_answers(site: Site) -> None:
    for version in VERSIONS:
        bare = version_of(POLL, version).replace(" -H Metadata:true", "")
        expected = "200" if version == "2017-03-01" else "400"
        assert site.network.shell("web-0", bare + STATUS) == expected
