"""The server is killed at each stage of each work, nova stops answering, and orders are abandoned."""

import signal
from pathlib import Path

import pytest

from tests.helpers.programs.process import until
from tests.openstack.cloud_service import CloudService, serving
from tests.openstack.real_nova import Nova

# nova's requests of each work; the mark comes first.
MARK = ("PUT", "forewarn:step")
ASKED = {
    "freeze": [MARK, ("POST", '"pause"'), ("POST", '"unpause"')],
    "restart": [MARK, ("POST", '"reboot"')],
    "redeploy": [MARK, ("POST", '"migrate"'), ("POST", '"confirmResize"')],
    "evict": [MARK, ("POST", '"os-stop"')],
    "terminate": [MARK, ("POST", '"os-stop"')],
    "service": [("PUT", "disabled"), MARK, ("POST", '"os-migrateLive"'), ("PUT", "enabled")],
    "fail": [("PUT", "forced_down"), MARK, ("POST", '"evacuate"')],
}
DONE = {
    "freeze": ["pause", "unpause"],
    "restart": ["reboot"],
    "redeploy": ["migrate", "confirmResize"],
    "evict": ["stop"],
    "terminate": ["stop"],
    "service": ["live-migration"],
    "fail": ["evacuate"],
}
STAGES = [
    pytest.param(work, *request, performs, id=f"{work}-{request[1]}-{'heard' if performs else 'lost'}")
    for work, requests in ASKED.items()
    for request in requests
    for performs in (False, True)
]


def ordered(service: CloudService, work: str) -> str:
    if work == "service":
        return service.on_host("compute1", "service", mode="evacuate")
    return service.on_host("compute1", "fail") if work == "fail" else service.ordered("web", work)


@pytest.mark.parametrize(("work", "method", "text", "performs"), STAGES)
def test_a_server_that_is_killed_at_any_stage_completes_the_work_once(
    nova: Nova, tmp_path: Path, work: str, method: str, text: str, performs: bool
) -> None:
    """`performs`: nova gets the request, and its answer is lost."""
    web = nova.create("web")
    nova.behave(hold={"method": method, "text": text}, performs=performs)
    with serving(nova, tmp_path, {"web": web}) as service:
        order = ordered(service, work)
        if text == "enabled":
            service.emptied(order)
        until(lambda: nova.behaviour["held"], what=f"the request for {text}")
        service.kill()
        nova.behave(released=True)
        service.start()
        if work == "service" and text != "enabled":
            service.emptied(order)
        service.done(order)
    assert nova.actions(web) == DONE[work]
    assert nova.service("compute1")["status"] == "enabled"


@pytest.mark.parametrize("work", ["live_migration", "migration", "reboot", "stop"])
def test_a_server_that_is_killed_during_a_request_completes_the_work_once(
    nova: Nova, tmp_path: Path, work: str
) -> None:
    web = nova.create("web")
    order_of = {"live_migration": "service", "migration": "redeploy", "reboot": "restart", "stop": "evict"}
    nova.behave(**{work: 5})
    with serving(nova, tmp_path, {"web": web}) as service:
        order = ordered(service, order_of[work])
        until(lambda: nova.server(web)["OS-EXT-STS:task_state"], what="nova to be at work")
        service.restart()
        if work == "live_migration":
            service.emptied(order)
        service.done(order)
        assert service.kinds(order).count("step-begun") == {"service": 4}.get(order_of[work], 1)
    assert nova.actions(web) == DONE[order_of[work]]


def test_a_cloud_that_does_not_answer_is_no_failure(nova: Nova, tmp_path: Path) -> None:
    web = nova.create("web")
    nova.behave(migration=2)
    with serving(nova, tmp_path, {"web": web}) as service:
        order = service.ordered("web", "redeploy")
        until(lambda: nova.actions(web) == ["migrate"], what="the migration")
        nova.process.send_signal(signal.SIGSTOP)
        try:
            until(lambda: "step-unknown" in service.kinds(order), what="the silence to be noticed")
            assert service.order(order)["state"] == "started"
        finally:
            nova.process.send_signal(signal.SIGCONT)
        service.done(order)
    assert nova.actions(web) == ["migrate", "confirmResize"]


def test_work_is_done_when_the_cloud_answers_again(nova: Nova, tmp_path: Path) -> None:
    web = nova.create("web")
    with serving(nova, tmp_path, {"web": web}) as service:
        nova.process.send_signal(signal.SIGSTOP)
        try:
            order = service.ordered("web", "restart")
            until(lambda: "step-unknown" in service.kinds(order), what="the silence to be noticed")
        finally:
            nova.process.send_signal(signal.SIGCONT)
        service.done(order)
    assert nova.actions(web) == ["reboot"]


def test_an_abandoned_live_migration_is_aborted(nova: Nova, tmp_path: Path) -> None:
    web = nova.create("web")
    nova.behave(live_migration=60)
    with serving(nova, tmp_path, {"web": web}) as service:
        order = service.on_host("compute1", "service", mode="evacuate")
        until(lambda: nova.migrations(web) == ["running"], what="the migration")
        service.post(f"/v1/orders/{order}/abandon")
        assert service.ended(order)["state"] == "failed"
        assert (service.machine("web")["host"], service.machine("web")["state"]) == ("compute1", "running")
    assert (nova.migrations(web), nova.host_of(web)) == (["cancelled"], "compute1")
    assert nova.service("compute1")["status"] == "enabled"


def test_an_abandoned_cold_migration_goes_on(nova: Nova, tmp_path: Path) -> None:
    web = nova.create("web")
    nova.behave(migration=4)
    with serving(nova, tmp_path, {"web": web}) as service:
        order = service.ordered("web", "redeploy")
        until(lambda: nova.actions(web) == ["migrate"], what="the migration")
        service.post(f"/v1/orders/{order}/abandon")
        service.ended(order)
        assert service.machine("web")["host"] == "compute2"
    assert nova.migrations(web) == ["confirmed"]


def test_a_tenant_who_deletes_the_mark_changes_nothing(nova: Nova, tmp_path: Path) -> None:
    web = nova.create("web")
    nova.behave(migration=4)
    with serving(nova, tmp_path, {"web": web}) as service:
        order = service.ordered("web", "redeploy")
        until(lambda: nova.actions(web) == ["migrate"], what="the migration")
        nova.call("DELETE", f"/servers/{web}/metadata/forewarn:step")
        service.restart()
        service.done(order)
    assert nova.actions(web) == ["migrate", "confirmResize"]
