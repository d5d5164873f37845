"""Each kind of work with a real nova."""

from pathlib import Path

from tests.helpers.programs.process import until
from tests.openstack.cloud_service import serving
from tests.openstack.real_nova import Nova


def test_a_freeze_in_place_pauses_the_server_and_measures_the_time(nova: Nova, tmp_path: Path) -> None:
    web = nova.create("web")
    with serving(nova, tmp_path, {"web": web}) as service:
        found = service.done(service.ordered("web", "freeze"))
    assert 1 <= found["steps"][0]["impact_seconds"] < 30
    assert (nova.actions(web), nova.server(web)["status"]) == (["pause", "unpause"], "ACTIVE")


def test_a_reboot_is_a_soft_one(nova: Nova, tmp_path: Path) -> None:
    web = nova.create("web")
    with serving(nova, tmp_path, {"web": web}) as service:
        service.done(service.ordered("web", "restart"))
    assert nova.behaviour["reboots"] == [[web, "SOFT"]]


def test_a_guest_that_ignores_the_reboot_is_reset(nova: Nova, tmp_path: Path) -> None:
    web = nova.create("web")
    nova.behave(reboot=12)
    with serving(nova, tmp_path, {"web": web}) as service:
        service.done(service.ordered("web", "restart"))
    assert nova.actions(web) == ["reboot", "reboot"]


def test_a_redeploy_is_a_confirmed_cold_migration(nova: Nova, tmp_path: Path) -> None:
    web = nova.create("web")
    with serving(nova, tmp_path, {"web": web}) as service:
        service.done(service.ordered("web", "redeploy"))
        assert service.machine("web")["host"] == "compute2"
    assert (nova.host_of(web), nova.server(web)["status"]) == ("compute2", "ACTIVE")
    assert (nova.actions(web), nova.migrations(web)) == (["migrate", "confirmResize"], ["confirmed"])


def test_an_evicted_server_is_stopped_and_starts_on_its_host(nova: Nova, tmp_path: Path) -> None:
    web = nova.create("web")
    with serving(nova, tmp_path, {"web": web}) as service:
        service.done(service.ordered("web", "evict"))
        assert (nova.server(web)["status"], service.machine("web")["state"]) == ("SHUTOFF", "stopped")
        service.done(service.ordered("web", "start"))
        assert (service.machine("web")["host"], service.machine("web")["state"]) == ("compute1", "running")
    assert nova.server(web)["status"] == "ACTIVE"


def test_terminate_stops_the_server_and_deletes_it_only_with_destroy(nova: Nova, tmp_path: Path) -> None:
    kept, gone = nova.create("kept"), nova.create("gone")
    for name, id_, driver in (("kept", kept, "openstack"), ("gone", gone, "destroying")):
        folder = tmp_path / name
        folder.mkdir()
        with serving(nova, folder, {name: id_}, driver=driver) as service:
            service.done(service.ordered(name, "terminate"))
    assert nova.server(kept)["status"] == "SHUTOFF"
    assert not nova.exists(gone)


def test_a_host_in_service_is_cordoned_emptied_and_uncordoned(nova: Nova, tmp_path: Path) -> None:
    web, off = nova.create("web"), nova.create("off")
    nova.act(off, {"os-stop": None})
    until(lambda: nova.server(off)["status"] == "SHUTOFF", what="the server to be off")
    with serving(nova, tmp_path, {"web": web, "off": off}) as service:
        order = service.on_host("compute1", "service", mode="evacuate")
        service.emptied(order)
        assert nova.service("compute1")["disabled_reason"] == f"forewarn: order {order}"
        service.done(order)
        assert {service.machine(name)["host"] for name in ("web", "off")} == {"compute2"}
    assert nova.actions(web) == ["live-migration"]
    assert nova.actions(off) == ["stop", "migrate", "confirmResize"]
    assert nova.server(off)["status"] == "SHUTOFF"
    assert nova.service("compute1")["status"] == "enabled"


def test_machines_return_to_the_host_that_they_left(nova: Nova, tmp_path: Path) -> None:
    web = nova.create("web")
    with serving(nova, tmp_path, {"web": web}) as service:
        order = service.on_host("compute1", "service", mode="evacuate", returning=True)
        service.emptied(order)
        service.done(order)
        assert service.machine("web")["host"] == "compute1"
    assert nova.migrations(web) == ["completed", "completed"]


def test_a_compute_service_that_a_person_has_disabled_stays_disabled(nova: Nova, tmp_path: Path) -> None:
    nova.set_service("compute1", status="disabled", disabled_reason="olga: memory test")
    with serving(nova, tmp_path, {}) as service:
        order = service.on_host("compute1", "service", mode="in-place")
        service.emptied(order)
        service.done(order)
    found = nova.service("compute1")
    assert (found["status"], found["disabled_reason"]) == ("disabled", "olga: memory test")


def test_a_compute_service_that_a_person_disables_meanwhile_stays_disabled(
    nova: Nova, tmp_path: Path
) -> None:
    with serving(nova, tmp_path, {}) as service:
        order = service.on_host("compute1", "service", mode="in-place")
        until(lambda: nova.service("compute1")["status"] == "disabled", what="the cordon")
        nova.set_service("compute1", status="disabled", disabled_reason="olga: bad memory")
        service.emptied(order)
        service.done(order)
    assert nova.service("compute1")["disabled_reason"] == "olga: bad memory"


def test_a_cancelled_order_enables_the_compute_service(nova: Nova, tmp_path: Path) -> None:
    web = nova.create("web")
    with serving(nova, tmp_path, {"web": web}) as service:
        service.guest("127.0.0.11").poll()  # from now on it gets notice
        order = service.on_host("compute1", "service", mode="evacuate")
        until(lambda: nova.service("compute1")["status"] == "disabled", what="the cordon")
        service.post(f"/v1/orders/{order}/cancel")
        until(lambda: service.order(order)["ended_at"], what="the end of the order")
        assert service.order(order)["state"] == "cancelled"
    assert nova.service("compute1")["status"] == "enabled"


def test_the_machines_of_a_failed_host_are_evacuated_after_the_fence(nova: Nova, tmp_path: Path) -> None:
    web = nova.create("web")
    with serving(nova, tmp_path, {"web": web}) as service:
        order = service.on_host("compute1", "fail")
        service.done(order)
        assert service.host_step(order, "fence")["state"] == "done"
        assert (service.machine("web")["host"], service.machine("web")["state"]) == ("compute2", "running")
    assert nova.service("compute1")["forced_down"]
    assert (nova.host_of(web), nova.server(web)["status"]) == ("compute2", "ACTIVE")


# Obstacles


def test_a_step_waits_for_a_busy_server(nova: Nova, tmp_path: Path) -> None:
    web = nova.create("web")
    nova.behave(reboot=3)
    with serving(nova, tmp_path, {"web": web}) as service:
        nova.act(web, {"reboot": {"type": "SOFT"}})
        service.done(service.ordered("web", "evict"))
    assert nova.actions(web) == ["reboot", "stop"]


def test_a_machine_that_nova_does_not_have_fails_with_the_next_step(nova: Nova, tmp_path: Path) -> None:
    nobody = "00000000-0000-4000-8000-000000000000"
    with serving(nova, tmp_path, {"web": nobody}) as service:
        found = service.ended(service.ordered("web", "restart"))
    assert found["state"] == "failed"
    assert f"nova has no server {nobody}: a machine's vm-id has to be" in found["steps"][0]["why"]


def test_a_machine_that_nova_does_not_have_is_not_terminated(nova: Nova, tmp_path: Path) -> None:
    nobody = "00000000-0000-4000-8000-000000000000"
    with serving(nova, tmp_path, {"web": nobody}, driver="destroying") as service:
        order = service.ordered("web", "terminate")
        found = service.ended(order)
        assert found["state"] == "failed"
        assert "if it was deleted, abandon the order and remove web" in found["steps"][0]["why"]
        assert service.machine("web")["name"] == "web"
        service.post(f"/v1/orders/{order}/abandon")
        assert service.call("DELETE", "/v1/machines/web").status_code < 300


def test_a_failed_cold_migration_has_novas_reason(nova: Nova, tmp_path: Path) -> None:
    web = nova.create("web")
    nova.behave(migration_fails=True)
    with serving(nova, tmp_path, {"web": web}) as service:
        order = service.ordered("web", "redeploy")
        assert "its migration failed" in service.ended(order)["steps"][0]["why"]
        nova.behave(migration_fails=False)
        service.post(f"/v1/orders/{order}/retry")
        service.done(order)
    assert nova.host_of(web) == "compute2"


def test_a_failed_live_migration_is_retried(nova: Nova, tmp_path: Path) -> None:
    web = nova.create("web")
    nova.behave(live_migration=1, live_migration_fails=True)
    with serving(nova, tmp_path, {"web": web}) as service:
        order = service.on_host("compute1", "service", mode="evacuate")
        until(lambda: "failed" in nova.migrations(web), what="the failure")
        nova.behave(live_migration_fails=False)
        service.emptied(order)
        service.done(order)
    assert nova.migrations(web)[-1] == "completed"
    assert nova.host_of(web) == "compute2"
