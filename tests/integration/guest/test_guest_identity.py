"""Identification of callers, instance metadata, listeners, and cached requests."""

import json
import socket

import pytest

from forewarn.core.basic_types import EventType, GroupKind, GroupName, MachineId, Priority
from forewarn.core.errors import Conflict
from forewarn.guest.guest_requests import Poll
from forewarn.guest.http.listeners import Listen
from forewarn.guest.http.open_connections import OVERHEAD, RequestCache
from forewarn.guest.settings import EndpointSettings
from forewarn.wire.texts import canonical
from tests.integration.guest.guest_face import EVENTS, Face, event, group, machine, serving

NAME = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
COMPUTE = "/metadata/instance/compute?api-version=2021-02-01"
IDENTITY = "/metadata/identity/oauth2/token?api-version=2018-02-01"


def answered_name(face: Face, source: str | None = None, *, place: int = 0, port: int | None = None) -> str:
    with face.connect(source, place=place, port=port) as client:
        return client.get(NAME).body.decode()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


# Callers


def test_a_caller_is_identified_by_its_address() -> None:
    machines = [machine(f"web-{n}", address=f"127.0.0.{n}") for n in (11, 12)]
    with serving(*machines) as face:
        assert answered_name(face, "127.0.0.11") == "web-11"
        assert answered_name(face, "127.0.0.12") == "web-12"


def test_a_caller_is_identified_by_any_form_of_its_address() -> None:
    with serving(machine("six", address="0:0:0:0:0:0:0:1"), hosts=("::1",)) as face:
        assert answered_name(face) == "six"


@pytest.mark.parametrize(
    ("address", "spelt"),
    [("::ffff:10.0.0.1", "10.0.0.1"), ("fe80::1%eth0", "fe80::1"), ("FE80::0:1", "fe80::1"), ("x", "x")],
)
def test_an_address_has_one_canonical_form(address: str, spelt: str) -> None:
    assert canonical(address) == spelt


def test_the_same_address_is_another_machine_in_another_network() -> None:
    machines = (machine("red"), machine("blue", address="127.0.0.1", network="blue"))
    with serving(*machines, hosts=("127.0.0.1",)) as face:
        face.run(face.server.start([Listen(host="127.0.0.1", port=0, network="blue")]))
        assert (answered_name(face), answered_name(face, place=1)) == ("red", "blue")


def test_a_caller_is_identified_by_the_port_that_it_calls() -> None:
    ports = {"web-0": free_port(), "web-1": free_port()}
    with serving(*(machine(name, port=port) for name, port in ports.items())) as face:
        for name, port in ports.items():
            assert answered_name(face, port=port) == name
        assert face.get().status == 404


def test_ports_open_and_close_with_their_machines() -> None:
    first, second = free_port(), free_port()
    with serving(machine("web-0", port=first)) as face, face.connect(port=first) as client:
        assert client.get().status == 200
        face.apply(machines=(machine("web-0", port=second),))
        assert answered_name(face, port=second) == "web-0"
        assert client.get().status == 404
        with pytest.raises(ConnectionRefusedError):
            face.connect(port=first)
        face.apply(removed_machines=("id-of-web-0",))
        with pytest.raises(ConnectionRefusedError):
            face.connect(port=second)


def test_a_port_may_change_its_machine() -> None:
    port = free_port()
    with serving(machine("web-0", port=port)) as face, face.connect(port=port) as client:
        assert client.get(NAME).body == b"web-0"
        face.apply(machines=(machine("web-1", port=port),), removed_machines=("id-of-web-0",))
        assert client.get(NAME).body == b"web-1"
        assert answered_name(face, port=port) == "web-1"


def test_a_machine_that_a_whole_delta_lacks_is_removed() -> None:
    machines = [machine(f"web-{n}", address=f"127.0.0.{n}") for n in (1, 2)]
    with serving(*machines, groups=(group("web"), group("db"))) as face:
        face.apply(groups=(group("web"),), machines=(machines[1],), whole=True)
        assert [face.get(source=f"127.0.0.{n}").status for n in (1, 2)] == [404, 200]
        assert face.board.groups.get(GroupName("db")) is None


def test_machines_may_swap_addresses() -> None:
    machines = [machine(f"web-{n}", address=f"127.0.0.{n}") for n in (1, 2)]
    with serving(*machines) as face:
        face.apply(machines=(machine("web-1", address="127.0.0.2"), machine("web-2", address="127.0.0.1")))
        assert (answered_name(face, "127.0.0.1"), answered_name(face, "127.0.0.2")) == ("web-2", "web-1")


def test_a_port_in_use_at_the_start_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Conflict, match=f"guest address 127.0.0.1:{port} is in use"), serving() as face:
            face.run(face.server.start([Listen(host="127.0.0.1", port=port)]))


def test_a_machines_port_in_use_at_the_start_is_named(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Conflict, match=f'machine "web-0": port {port} is in use'):  # noqa: SIM117
            with serving(machine(port=port)):
                pass


def test_a_machines_port_in_use_later_is_logged_once_and_retried(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving() as face, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        face.apply(machines=(machine("web-1", port=port),))
        face.apply()
        (said,) = caplog.messages
        assert said.startswith(
            f'machine "web-1": port {port} is in use: give the machine another in the fleet'
        )
        taken.close()
        face.apply()
        assert answered_name(face, port=port) == "web-1"


# Cached requests


def test_a_cached_request_from_another_machine_is_answered_for_that_machine() -> None:
    machines = (machine("web-0", address="127.0.0.1"), machine("db-0", group="db", address="127.0.0.2"))
    with serving(*machines, groups=(group("web"), group("db"))) as face:
        face.show(event(EventType.FREEZE), name="db")
        for _ in range(2):
            assert b"Freeze" not in face.get(source="127.0.0.1").body
            assert b"Freeze" in face.get(source="127.0.0.2").body
            assert face.get(source="127.0.0.3").status == 404


def test_a_cached_request_of_a_removed_machine_is_not_found() -> None:
    with serving() as face, face.connect() as client:
        assert [client.get().status for _ in range(2)] == [200, 200]
        face.apply(removed_machines=("id-of-web-0",))
        assert client.get().status == 404
        face.apply(machines=(machine(),))
        assert client.get().status == 200


def test_a_cached_request_of_a_regrouped_machine_is_answered_for_its_new_group() -> None:
    with serving(groups=(group("web"), group("db", incarnation=5))) as face, face.connect() as client:
        assert [client.get().status for _ in range(2)] == [200, 200]
        face.apply(machines=(machine("web-0", group="db"),))
        assert json.loads(client.get().body)["DocumentIncarnation"] == 5


def test_a_cached_request_and_the_same_in_pieces_have_the_same_answer() -> None:
    with serving() as face, face.connect() as client:
        client.get()
        known = client.get()
        data = f"GET {EVENTS} HTTP/1.1\r\nHost: 127.0.0.1\r\nMetadata: true\r\n\r\n".encode()
        client.send(data[:30])
        client.send(data[30:])
        assert client.read() == known


PLAIN = Poll(version=0)
ONE, TWO = MachineId("one"), MachineId("two")


def known_of(cache: RequestCache, *requests: bytes) -> list[bytes]:
    return [data for data in requests if cache.get(data) is not None]


def test_the_request_cache_has_a_limit_in_bytes() -> None:
    cache = RequestCache(capacity=2 * (OVERHEAD + 1), longest=10, share=100)
    for data in (b"a", b"b", b"c", b"x" * 11):
        cache.add(data, PLAIN, by=ONE)
    assert known_of(cache, b"a", b"b", b"c", b"x" * 11) == [b"b", b"c"]
    cache.add(b"as much", PLAIN, by=TWO)
    assert known_of(cache, b"b", b"c", b"as much") == [b"as much"]
    assert cache.size <= 2 * (OVERHEAD + 1)


def test_a_machine_has_a_share_of_the_request_cache_and_replaces_its_own_entries() -> None:
    cache = RequestCache(capacity=1 << 20, longest=10, share=2)
    cache.add(b"honest", PLAIN, by=ONE)
    for data in (b"a", b"b", b"honest", b"c"):
        cache.add(data, PLAIN, by=TWO)
    assert known_of(cache, b"honest", b"a", b"b", b"c") == [b"honest", b"b", b"c"]


@pytest.mark.parametrize(
    "poll", [Poll(version=0, wait=60), Poll(version=0, match=frozenset((b"1", b"2", b"3")))]
)
def test_only_plain_requests_are_cached(poll: Poll) -> None:
    cache = RequestCache(capacity=1 << 20, longest=10, share=2)
    cache.add(b"a", poll, by=ONE)
    assert len(cache) == 0


def test_only_admitted_requests_of_machines_are_cached() -> None:
    with serving(settings=EndpointSettings(rate=0.001)) as face:
        known = face.server.connections.known
        for _ in range(2):
            assert face.get(source="127.0.0.99").status in (404, 429)
        assert len(known) == 0
        assert face.get().status == 200
        assert face.get(f"{EVENTS}&other=1").status == 429
        assert len(known) == 1


# Instance metadata


VM = machine(
    "web_3",
    address="127.0.0.1",
    update_domain=2,
    priority=Priority.SPOT,
    tags={"a": "1"},
    zone="2",
    os="Linux",
)


def test_instance_metadata_describes_the_calling_machine() -> None:
    with serving(VM, groups=(group(kind=GroupKind.SCALE_SET),)) as face:
        compute = json.loads(face.get(COMPUTE).body)
        whole = json.loads(face.get("/metadata/instance?api-version=2017-03-01&format=json").body)
        network = json.loads(face.get("/metadata/instance/network?api-version=2021-02-01").body)
    assert whole == {"compute": compute, "network": network}
    assert network["interface"][0]["ipv4"]["ipAddress"][0]["privateIpAddress"] == "127.0.0.1"
    assert compute["name"] == "web_3"
    assert compute["vmScaleSetName"] == "web"
    assert compute["platformUpdateDomain"] == "2"
    assert all(isinstance(value, str) for name, value in compute.items() if name != "tagsList")


def test_a_leaf_is_plain_text() -> None:
    with serving(VM) as face:
        answer = face.get("/metadata/instance/compute/VMID/?api-version=2099-01-01&format=TEXT")
    assert answer.body == b"id-of-web_3"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_a_leaf_of_the_network_is_plain_text() -> None:
    with serving(machine(mac="00:0d:3a:f8:06:ec")) as face:
        path = "/metadata/instance/network/interface/0/macAddress?api-version=2021-02-01"
        assert face.get(f"{path}&format=text").body == b"000D3AF806EC"
        assert face.get(path).status == 400
        assert face.get(f"{path}&format=text".replace("/0/", "/1/")).status == 404


@pytest.mark.parametrize(
    "query", ["", "?api-version=latest", "?api-version=2021-02-01&api-version=2021-02-01"]
)
def test_the_newest_versions_in_an_error_are_those_of_the_category(query: str) -> None:
    with serving(VM) as face:
        instance = json.loads(face.get(f"/metadata/instance{query}").body)
        events = json.loads(face.get(f"/metadata/scheduledevents{query}").body)
    assert instance["newest-versions"] == ["2023-11-15", "2023-07-01", "2021-12-13"]
    assert events["newest-versions"] == ["2020-07-01", "2019-08-01", "2019-04-01"]


def test_the_list_of_tags_is_json() -> None:
    with serving(VM) as face:
        answer = face.get("/metadata/instance/compute/tagsList?api-version=2021-02-01")
    assert json.loads(answer.body) == [{"name": "a", "value": "1"}]


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/metadata/instance", 400),
        ("/metadata/instance?api-version=latest", 400),
        ("/metadata/instance?api-version=2017-02-28", 404),
        ("/metadata/instance?api-version=2021-02-01&format=text", 400),
        ("/metadata/instance/compute/name?api-version=2021-02-01", 400),
        ("/metadata/instance/compute/name?api-version=2021-02-01&format=json", 400),
        ("/metadata/instance/compute/customData?api-version=2021-02-01&format=text", 404),
        ("/metadata/instance/compute/name/x?api-version=2021-02-01&format=text", 404),
        ("/metadata/instance/network?api-version=2021-02-01&format=text", 400),
        ("/metadata/instance/network/other?api-version=2021-02-01", 404),
        ("/metadata/instancex?api-version=2021-02-01", 404),
        (IDENTITY, 400),
        ("/metadata/identity/info", 400),
        ("/metadata/attested/document?api-version=2018-10-01", 400),
    ],
)
def test_unknown_instance_metadata_is_refused(target: str, status: int) -> None:
    with serving(VM) as face:
        assert face.get(target).status == status


def test_instance_metadata_needs_the_header_and_a_get() -> None:
    with serving(VM) as face, face.connect() as client:
        assert client.request("GET", COMPUTE).status == 400
        answer = client.request("POST", COMPUTE, "Metadata: true")
        assert (answer.status, answer.headers["allow"]) == (405, "GET")


def test_instance_metadata_can_be_only_the_name() -> None:
    with serving(VM, settings=EndpointSettings(rate=0, instance="name")) as face:
        assert face.get(COMPUTE).body == b'{"name":"web_3"}'
        assert face.get(NAME).body == b"web_3"
        assert face.get(NAME.replace("name", "vmId")).status == 404
        assert json.loads(face.get("/metadata/instance?api-version=2021-02-01").body) == {
            "compute": {"name": "web_3"}
        }
        assert face.get("/metadata/instance/network?api-version=2021-02-01").status == 404


def test_instance_metadata_can_be_off() -> None:
    with serving(VM, settings=EndpointSettings(rate=0, instance="off")) as face:
        assert face.get(COMPUTE).status == 404
        assert face.get(NAME).status == 404
        assert face.get(IDENTITY).status == 400


def test_a_group_that_is_removed_with_its_machine_leaves_nothing_behind() -> None:
    with serving() as face:
        assert face.get().status == 200
        face.apply(removed_machines=("id-of-web-0",), removed_groups=("web",))
        assert face.take() == ({}, {})
        assert len(face.board) == 0
        assert face.get().status == 404
