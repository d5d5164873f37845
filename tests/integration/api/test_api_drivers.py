"""Drivers over the operator API: declare, show and choose them, and wait for external work."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forewarn.core.model.declaration import FleetDefaults
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
from tests.helpers.service.served import Api, app_of
from tests.helpers.service.tenants import A_USER, bearer, let_in, two_projects


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(replace(two_projects(), defaults=FleetDefaults()))
    yield service
    service.close()


@pytest.fixture
def api(service: Service) -> Api:
    return Api(app_of(service))


def declare(api: Api, *, default: str | None = None, **own: str) -> list[str]:
    fleet = api("GET", "/v1/fleet").json()["fleet"]
    fleet["defaults"] = {"driver": default} if default else {}
    fleet["hosts"] = {
        name: {"driver": own[name.replace("-", "_")]} if name.replace("-", "_") in own else {}
        for name in fleet["hosts"]
    }
    answer = api("PUT", "/v1/fleet", json=fleet)
    assert answer.status_code == 200, answer.text
    now = answer.json()["fleet"]
    assert now["defaults"] == fleet["defaults"]
    assert {name: host.get("driver") for name, host in now["hosts"].items()} == {
        name: host.get("driver") for name, host in fleet["hosts"].items()
    }
    return [line for line in answer.json()["changes"] if "driver" in line]


def maintain(api: Api, host: str, **more: Any) -> dict[str, Any]:
    answer = api("POST", f"/v1/hosts/{host}/maintenance", json={"action": "reboot", **more})
    assert answer.status_code == 202, answer.text
    return dict(answer.json()["order"])


def test_a_fleet_declares_drivers_and_shows_the_driver_of_each_host(api: Api) -> None:
    assert declare(api, default="simulated", host_2="external") == [
        "~ defaults: driver none to simulated",
        "~ host host-2: driver none to external",
    ]
    hosts = api("GET", "/v1/hosts").json()["hosts"]
    assert [host["driver"] for host in hosts] == ["simulated", "external", "simulated"]
    assert api("GET", "/v1/hosts/host-2").json()["host"]["driver"] == "external"
    metrics = api("GET", "/metrics").text
    assert 'forewarn_hosts_by_driver{driver="simulated"} 2.0' in metrics
    assert 'forewarn_hosts_by_driver{driver="external"} 1.0' in metrics


def test_a_fleet_without_a_driver_gets_a_note_that_work_waits(api: Api) -> None:
    declare(api, default="simulated")
    assert declare(api) == [
        "~ defaults: driver simulated to none: "
        "hosts without a driver now use `external`: their work waits for a report"
    ]
    declare(api, default="external")
    assert declare(api) == ["~ defaults: driver external to none"]  # it still waits


@pytest.mark.parametrize(
    ("fleet", "message"),
    [
        (
            {"hosts": {"h": {"driver": "simulatd"}}},
            'hosts.h: driver: expected external or simulated, got "simulatd"; did you mean simulated?',
        ),
        (
            {"defaults": {"driver": "libvirt"}},
            'defaults.driver: expected external or simulated, got "libvirt"; '
            "install the package that brings it, or set [drivers.libvirt], and start the server again",
        ),
    ],
)
def test_an_unknown_driver_is_refused_with_its_field(api: Api, fleet: Any, message: str) -> None:
    answer = api("PUT", "/v1/fleet", json=fleet)
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, message)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/hosts/host-1/maintenance", {"action": "reboot"}),
        ("/v1/machines/a-1/restart", {}),
        ("/v1/rollouts", {"hosts": "all", "action": "reboot"}),
    ],
)
def test_an_order_for_an_unknown_driver_is_refused(api: Api, path: str, body: Any) -> None:
    answer = api("POST", path, json={**body, "driver": "libvirt"})
    assert answer.status_code == 400
    refusal = 'driver: expected external or simulated, got "libvirt"; '
    assert answer.json()["error"]["message"].startswith(refusal)


def test_drivers_are_listed_with_the_hosts_they_work_on(api: Api) -> None:
    declare(api, default="simulated", host_2="external")
    assert api("GET", "/v1/drivers").json()["drivers"] == [
        {"name": "external", "kind": "external", "hosts": 1, "installed": True, "why": None},
        {"name": "simulated", "kind": "simulated", "hosts": 2, "installed": True, "why": None},
    ]


def test_without_a_driver_an_order_waits_for_a_report_and_names_the_command(
    service: Service, api: Api
) -> None:
    order = maintain(api, "host-1")
    assert order["driver"] == "external"
    service.advance(minutes=16)
    service.advance(days=3)
    shown = api("GET", f"/v1/orders/{order['id']}").json()["order"]
    assert shown["state"] == "started"
    (waiting,) = shown["waiting"]
    assert waiting["what"] == "host host-1"
    assert f"forewarn order complete {order['id']}" in waiting["reason"]
    assert api("POST", f"/v1/orders/{order['id']}/complete").status_code == 200
    service.advance(minutes=2)
    assert api("GET", f"/v1/orders/{order['id']}").json()["order"]["state"] == "done"


def test_a_tenants_order_uses_the_driver_of_its_host(service: Service, api: Api) -> None:
    declare(api, host_1="simulated")
    let_in(service)
    for driver in ("external", "simulated"):
        refused = api("POST", "/v1/machines/a-0/redeploy", headers=bearer(A_USER), json={"driver": driver})
        assert refused.status_code == 403
        assert "driver: only an operator may choose the driver" in refused.json()["error"]["message"]
    for machine, driver in (
        ("a-0", "simulated"),
        ("a-1", "platform"),
    ):  # the names of other drivers are hidden
        placed = api("POST", f"/v1/machines/{machine}/redeploy", headers=bearer(A_USER)).json()
        assert placed["order"]["driver"] == driver
        assert "forewarn order complete" not in str(placed)


@pytest.mark.parametrize(
    ("own", "driver", "state"),
    [
        ({"host_3": "simulated"}, "simulated", "done"),
        ({"host_1": "simulated", "host_2": "simulated"}, "external", "started"),
    ],
)
def test_a_start_uses_the_driver_of_the_target_host(
    service: Service, api: Api, own: dict[str, str], driver: str, state: str
) -> None:
    declare(api, default="simulated")
    assert api("POST", "/v1/machines/spot/evict", params={"project": "a"}).status_code == 202
    service.advance(minutes=5)
    declare(api, **own)
    placed = api("POST", "/v1/machines/spot/start", params={"project": "a"})  # host-3 has the fewest machines
    order = placed.json()["order"]
    assert order["driver"] == driver
    service.advance(minutes=5)
    assert api("GET", f"/v1/orders/{order['id']}").json()["order"]["state"] == state


def test_tenants_see_which_events_are_simulated(service: Service, api: Api) -> None:
    declare(api, host_1="simulated")
    for host in ("host-1", "host-3"):
        maintain(api, host)
    let_in(service)
    events = api("GET", "/v1/events", headers=bearer(A_USER)).json()["events"]
    assert {event["resources"][0]: event["simulated"] for event in events} == {"a-0": True, "spot": False}
    for event in events:
        shown = api("GET", f"/v1/events/{event['id']}", headers=bearer(A_USER)).json()["event"]
        assert shown["simulated"] is event["simulated"]


def test_users_of_projects_cannot_set_the_heartbeat(service: Service, api: Api) -> None:
    let_in(service)
    hasty = {"heartbeat_seconds": 60}
    refused = api("POST", "/v1/machines/a-0/redeploy", headers=bearer(A_USER), json=hasty)
    assert (refused.status_code, "heartbeat_seconds" in refused.text) == (403, True)


def test_work_that_waits_for_a_report_is_not_shown_as_done(api: Api) -> None:
    placed = api("POST", "/v1/machines/a-0/restart", params={"project": "a"}).json()
    assert (placed["event"], placed["order"]["state"]) == (None, "started")
    assert placed["reason"].endswith("no machine of it polls: started immediately")


def test_a_rollout_uses_the_driver_of_each_host_unless_it_names_one(service: Service, api: Api) -> None:
    declare(api, default="simulated", host_2="external")
    body = {"hosts": ["host-1", "host-2"], "action": "freeze", "hosts_at_once": 2}
    plan = api("POST", "/v1/rollouts", json={**body, "dry_run": True}).json()["rollout"]
    assert (plan["driver"], plan["simulated_hosts"]) == (None, ["host-1"])
    said = api("POST", "/v1/rollouts", json={**body, "dry_run": True, "driver": "external"}).json()["rollout"]
    assert (said["driver"], said["simulated_hosts"]) == ("external", [])
    begun = api("POST", "/v1/rollouts", json=body).json()["rollout"]
    orders = api("GET", "/v1/orders").json()["orders"]
    drivers = {order["host"]: order["driver"] for order in orders}
    assert drivers["host-1"] == "simulated"
    # Begun work keeps its driver after a new declaration.
    declare(api)
    shown = api("GET", f"/v1/rollouts/{begun['id']}").json()["rollout"]
    assert "host-1" in shown["simulated_hosts"]
    assert "host-2" not in shown["simulated_hosts"]
