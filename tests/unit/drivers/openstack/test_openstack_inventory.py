"""The inventory of the OpenStack driver from nova's answers."""

from typing import Any

from forewarn.core.basic_types import Mobility
from forewarn.core.model.found_fleet import FoundGroup, FoundHost
from forewarn.drivers.openstack import inventory
from forewarn.drivers.openstack.compute_api import ComputeService

A, B, C = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "abc")


def server(id_: str, name: str = "web", **more: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "name": name,
        "status": "ACTIVE",
        "tenant_id": "p1",
        "OS-EXT-SRV-ATTR:host": "compute1",
        "metadata": {},
        "addresses": {},
    } | more


def found(*servers: dict[str, Any], **more: Any) -> Any:
    return inventory.read(
        servers, **({"groups": (), "aggregates": (), "services": (), "projects": {}} | more)
    )


def test_a_server_has_its_id_host_addresses_and_project() -> None:
    port = {"OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:01", "OS-EXT-IPS:type": "fixed"}
    networks = {
        "blue": [
            {**port, "addr": "10.0.0.4"},
            {**port, "addr": "fd00::4"},
            {**port, "addr": "192.0.2.9", "OS-EXT-IPS:type": "floating"},
        ]
    }
    (web,) = found(server(A.upper(), addresses=networks), projects={"p1": "Shop & Co"}).machines
    assert (web.vm_id, web.name, web.host, web.project) == (A, "web", "compute1", "Shop-Co")
    assert web.macs == ("fa:16:3e:00:00:01",)
    assert web.addresses == ("10.0.0.4", "fd00::4")
    assert (web.running, web.moving) == (True, False)


def test_names_are_valid_and_unique() -> None:
    names = [each.name for each in found(server(A), server(B), server(C, "größe 1")).machines]
    assert names == ["gr-e-1", "web", "web"]


def test_a_server_group_belongs_to_its_project() -> None:
    db = {"id": "g1234567-8", "name": "db", "members": [A], "project_id": "p1"}
    names_it = server(B, "b", tenant_id="p2", metadata={"forewarn:group": "db"})
    of_it = server(C, "c", metadata={"forewarn:group": "db"})
    there = found(server(A, "a"), names_it, of_it, groups=[db], projects={"p1": "shop", "p2": "other"})
    assert [each.group for each in there.machines] == ["db-g1234567", "db", "db-g1234567"]
    assert there.groups == (
        FoundGroup(name="db", project="other"),
        FoundGroup(name="db-g1234567", called="db", project="shop"),
    )


def test_server_groups_with_equal_names_get_unique_names() -> None:
    groups = [
        {"id": f"{id_ * 8}-0000", "name": "d/b", "members": [member], "project_id": project}
        for id_, member, project in (("1", A, "p1"), ("2", B, "p2"))
    ]
    machines = [server(A, "a"), server(B, "b", tenant_id="p2")]
    there = found(*machines, groups=groups)
    assert [each.group for each in there.machines] == ["d-b-11111111", "d-b-22222222"]
    assert [(each.name, each.called, each.project) for each in there.groups] == [
        ("d-b-11111111", "d-b", "p1"),
        ("d-b-22222222", "d-b", "p2"),
    ]


def test_only_addresses_of_the_named_networks_count() -> None:
    port = {"OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:01"}
    web = server(A, addresses={"blue": [{**port, "addr": "10.0.0.4"}], "red": [{"addr": "10.0.0.9"}]})
    (all_,) = found(web).machines
    (red,) = found(web, networks=("red",)).machines
    (ordered,) = found(web, networks=("red", "green", "blue")).machines
    (none,) = found(web, networks=("green",)).machines
    assert (all_.addresses, all_.own_network) == (("10.0.0.4", "10.0.0.9"), "p1.blue")
    assert (red.addresses, red.macs, red.own_network) == (("10.0.0.9",), (), "p1.red")
    assert (ordered.addresses, ordered.own_network) == (("10.0.0.9", "10.0.0.4"), "p1.red")
    assert (none.addresses, none.own_network) == ((), None)


def test_stopped_and_moving_servers_are_found() -> None:
    off, moving = found(server(A, "a", status="SHUTOFF"), server(B, "b", status="VERIFY_RESIZE")).machines
    assert (off.running, off.moving, moving.running, moving.moving) == (False, False, True, True)


def test_groups_come_from_server_groups_or_metadata() -> None:
    one = {"id": "g1", "name": "db", "members": [A], "project_id": "p1"}
    empty = {"id": "g2", "name": "db", "members": [], "project_id": "p1"}
    there = found(
        server(A, "a"),
        server(B, "b", metadata={"forewarn:group": "cache"}),
        server(C, "c"),
        groups=[one, empty],
        projects={"p1": "shop"},
    )
    assert [each.group for each in there.machines] == ["db-g1", "cache", None]
    assert there.groups == (
        FoundGroup(name="cache", project="shop"),
        FoundGroup(name="db-g1", called="db", project="shop"),
    )


def test_update_domains_of_servers_override_those_of_aggregates() -> None:
    rack = {"name": "rack-2", "hosts": ["compute1"], "metadata": {"forewarn:update-domain": "2"}}
    own = {"forewarn:update-domain": "4", "forewarn:mobility": "live"}
    a, b, c = found(
        server(A, "a"),
        server(B, "b", metadata=own),
        server(C, "c", metadata={"forewarn:update-domain": "?", "forewarn:mobility": "fast"}),
        aggregates=[rack],
    ).machines
    assert (a.update_domain, a.mobility) == (2, None)
    assert (b.update_domain, b.mobility) == (4, Mobility.LIVE)
    assert (c.update_domain, c.mobility) == (None, None)


def test_hosts_have_a_compute_service() -> None:
    service = ComputeService(
        id="s", host="compute1", enabled=True, reason="", up=True, forced_down=False, zone="nova"
    )
    assert found(services=[service]).hosts == (
        FoundHost(name="compute1", labels={"availability-zone": "nova"}),
    )


def test_a_server_has_the_resources_of_its_flavor() -> None:
    flavor = {"vcpus": 2, "ram": 1536, "disk": 10}
    sized, bare = found(server(A, "a", flavor=flavor), server(B, "b")).machines
    assert (sized.resources, bare.resources) == ({"memory": 1.5, "vcpus": 2.0}, None)


def test_unknown_metadata_is_reported() -> None:
    written = {"forewarn:update-domain": "two", "forewarn:mobility": "fast", "forewarn:zone": "a", "own": "x"}
    aggregate = {"hosts": ["compute1"], "metadata": {"forewarn:colour": "red"}}
    there = found(server(A, "a", metadata=written), aggregates=[aggregate])
    assert (there.machines[0].update_domain, there.machines[0].mobility) == (None, None)
    assert there.notes == (
        'machine a: its metadata has forewarn:update-domain="two": expected a whole number',
        'machine a: its metadata has forewarn:mobility="fast": expected live, live-only, cold or none',
        "machine a: its metadata has forewarn:colour and forewarn:zone, which forewarn does not know: "
        "expected some of forewarn:group, forewarn:mobility, forewarn:update-domain",
    )
