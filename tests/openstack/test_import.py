"""A fleet is imported from a real nova, and follows changes outside forewarn."""

from pathlib import Path
from typing import Any

from tests.helpers.programs.process import free_port, run, until
from tests.openstack.cloud_service import CloudService, serving
from tests.openstack.real_nova import Nova


def imported(service: CloudService, **more: Any) -> Any:
    return service.post("/v1/fleet/import", json={"from": "openstack", **more})


def test_servers_and_hosts_are_imported_and_worked_on(nova: Nova, tmp_path: Path) -> None:
    web = nova.create("web", network=True)
    with serving(nova, tmp_path, None) as service:
        shown = imported(service, dry_run=True)
        assert shown["changes"]
        assert imported(service, digest=shown["digest"])["applied"]
        assert not imported(service)["changes"]
        found = service.machine("web")
        (ports,) = nova.server(web)["addresses"].values()
        assert (found["vm_id"].lower(), found["host"], found["address"], found["mac"]) == (
            web,
            "compute1",
            ports[0]["addr"],
            ports[0]["OS-EXT-IPS-MAC:mac_addr"],
        )
        assert {host["name"]: host["driver"] for host in service.all("hosts")} == {
            "compute1": "openstack",
            "compute2": "openstack",
        }
        service.done(service.ordered("web", "redeploy"))
        assert not imported(service)["changes"]
    assert nova.host_of(web) == "compute2"


def test_a_move_outside_forewarn_is_followed_as_unannounced(nova: Nova, tmp_path: Path) -> None:
    web = nova.create("web")
    with serving(nova, tmp_path, None) as service:
        imported(service)
        nova.act(web, {"os-migrateLive": {"host": None, "block_migration": "auto"}})
        until(lambda: nova.migrations(web) == ["completed"], what="the migration")
        until(lambda: nova.server(web)["OS-EXT-STS:task_state"] is None, what="its end")
        imported(service)
        assert service.machine("web")["host"] == "compute2"
        told = [each for each in service.history() if each["kind"] == "unannounced-impact"]
    assert [each["machine"] for each in told] == ["web"]


def test_a_missing_server_is_removed_only_on_request(nova: Nova, tmp_path: Path) -> None:
    web, kept = nova.create("web"), nova.create("kept")
    with serving(nova, tmp_path, None) as service:
        imported(service)
        nova.call("DELETE", f"/servers/{web}")
        until(lambda: not nova.exists(web), what="the server to be gone")
        answer = service.call("POST", "/v1/fleet/import", json={"from": "openstack"})
        assert answer.status_code == 409, answer.text
        imported(service, yes=True)
        assert [each["name"] for each in service.all("machines")] == ["kept"]
    assert nova.exists(kept)


def test_an_unreachable_cloud_is_reported_in_one_line(tmp_path: Path) -> None:
    nobody = Nova(f"http://127.0.0.1:{free_port()}/v2.1", None)
    with serving(nobody, tmp_path, None) as service:
        refused = run(tmp_path, "fleet", "import", "--from", "openstack", "--server", service.operators)
        assert (refused.returncode, refused.stdout) == (1, "")
        said = (
            "forewarn: driver openstack cannot list its hosts and machines; nothing is imported: the cloud "
        )
        assert refused.stderr.startswith(said)
        assert refused.stderr.count("\n") == 1
        assert not service.all("machines")


def test_server_groups_with_equal_names_keep_unique_names(nova: Nova, tmp_path: Path) -> None:
    def group_of(name: str) -> str:
        wanted = {"server_group": {"name": "db", "policy": "anti-affinity"}}
        made = nova.call("POST", "/os-server-groups", wanted)["server_group"]["id"]
        nova.create(name, hints={"group": made})
        return str(made)

    group_of("db-0")
    with serving(nova, tmp_path, None) as service:
        imported(service)
        second = group_of("db-1")
        imported(service)
        assert not imported(service)["changes"]
        assert {each["name"]: each["group"] for each in service.all("machines")} == {
            "db-0": "db",
            "db-1": f"db-{second[:8]}",
        }
