"""Rollouts over the operator API."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forewarn.core.basic_types import Action, HostTask, Work
from forewarn.core.policy import Policy
from forewarn.wire.answers.rollout_answers import RolloutAnswer
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service, fleet, machine
from tests.helpers.service.served import Api, app_of, check_answer, sample


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(sample())
    yield service
    service.close()


@pytest.fixture
def api(service: Service) -> Api:
    return Api(app_of(service))


def begin(api: Api, **more: Any) -> dict[str, Any]:
    answer = api("POST", "/v1/rollouts", json={"hosts": "all", "action": "freeze", **more})
    assert answer.status_code == 202, answer.text
    check_answer(RolloutAnswer, answer.json())
    return dict(answer.json()["rollout"])


def test_a_rollout_is_answered_with_its_waves_and_reasons(api: Api) -> None:
    rollout = begin(api, hosts_at_once=3, gap_seconds=60, reason="new kernel")
    assert (rollout["state"], rollout["action"], rollout["by"]) == ("running", "freeze", "operator")
    assert [(wave["hosts"], wave["state"]) for wave in rollout["waves"]] == [
        (["host-1"], "announced"),
        (["host-2"], "planned"),
        (["host-3"], "planned"),
    ]
    assert rollout["waiting"][0] == {"what": "web", "reason": "update domain 1 waits for domain 0"}
    assert {"what": "host-3", "reason": "wave 3 waits for wave 2"} in rollout["waiting"]
    (order,) = rollout["waves"][0]["orders"]
    placed = api("GET", f"/v1/orders/{order}").json()["order"]
    assert (placed["reason"], placed["rollout"]) == ("new kernel", rollout["id"])


MANY = 25


@pytest.fixture
def many_hosts(service: Service) -> None:
    service.apply(fleet(*(machine(f"vm-{n}", f"host-{n}") for n in range(1, MANY + 1)), hosts=MANY))


@pytest.mark.usefixtures("many_hosts")
def test_a_rollout_over_many_hosts_is_answered_before_its_orders_are_placed(
    service: Service, api: Api
) -> None:
    rollout = begin(api, hosts_at_once=MANY)
    [wave] = rollout["waves"]
    assert (wave["state"], len(wave["hosts"]), wave["orders"]) == ("announced", MANY, [])
    service.tick()
    [wave] = api("GET", f"/v1/rollouts/{rollout['id']}").json()["rollout"]["waves"]
    assert (wave["state"], len(wave["orders"])) == ("announced", MANY)


@pytest.mark.usefixtures("many_hosts")
def test_a_second_rollout_over_many_hosts_is_refused_and_a_repeated_key_gets_the_first_answer(
    api: Api,
) -> None:
    wanted, key = {"hosts": "all", "action": "freeze"}, {"Idempotency-Key": "once"}
    first = api("POST", "/v1/rollouts", json=wanted, headers=key)
    assert first.status_code == 202
    assert api("POST", "/v1/rollouts", json=wanted).status_code == 409
    assert (
        api("POST", "/v1/rollouts", json={**wanted, "hosts": [f"new-{n}" for n in range(30)]}).status_code
        == 404
    )
    again = api("POST", "/v1/rollouts", json=wanted, headers=key)
    assert (again.status_code, again.json()) == (202, first.json())


def test_the_list_can_be_limited_to_open_rollouts(service: Service, api: Api) -> None:
    over, going = begin(api), begin(api, overlap=True)
    api("POST", f"/v1/rollouts/{over['id']}/abort")
    assert [each["id"] for each in api("GET", "/v1/rollouts").json()["rollouts"]] == [going["id"], over["id"]]
    assert [each["id"] for each in api("GET", "/v1/rollouts?open=true").json()["rollouts"]] == [going["id"]]
    assert api("GET", "/v1/rollouts?open=perhaps").status_code == 400


def test_a_dry_run_returns_the_whole_plan_without_effects(api: Api) -> None:
    answer = api("POST", "/v1/rollouts", json={"hosts": ["host-2"], "action": "reboot", "dry_run": True})
    assert answer.status_code == 200
    check_answer(RolloutAnswer, answer.json())
    rollout = answer.json()["rollout"]
    assert (rollout["id"], rollout["state"]) == (None, "planned")
    (wave,) = rollout["waves"]
    assert (wave["announce_at"], wave["start_at"]) == ("2026-01-05T12:00:00Z", "2026-01-05T12:15:00Z")
    assert rollout["ends_at"] == wave["end_at"] == "2026-01-05T12:20:00Z"
    assert rollout["warnings"] == ["never polled: db, web-1, web-4"]
    assert api("GET", "/v1/rollouts").json() == {"rollouts": [], "next": None}
    assert api("GET", "/v1/orders").json()["orders"] == []


def test_rollouts_are_shown_singly_and_in_pages(service: Service, api: Api) -> None:
    first, second = begin(api, hosts=["host-1"]), begin(api, hosts=["host-2"])
    page = api("GET", "/v1/rollouts?limit=1").json()
    assert [each["id"] for each in page["rollouts"]] == [second["id"]]
    rest = api("GET", f"/v1/rollouts?limit=1&after={page['next']}").json()
    assert ([each["id"] for each in rest["rollouts"]], rest["next"]) == ([first["id"]], None)
    service.advance(hours=2)
    shown = api("GET", f"/v1/rollouts/{first['id'].lower()}").json()["rollout"]
    assert (shown["state"], shown["waiting"]) == ("done", [])
    assert shown["ended_at"] == "2026-01-05T12:20:00Z"


def test_a_rollout_is_paused_resumed_and_aborted(api: Api) -> None:
    path = f"/v1/rollouts/{begin(api)['id']}"
    paused = api("POST", f"{path}/pause", json={"reason": "lunch"})
    assert (paused.status_code, paused.json()["rollout"]["state"]) == (200, "paused")
    assert api("GET", "/v1/events").json()["events"] == []
    again = api("POST", f"{path}/pause")
    assert again.status_code == 409
    assert again.json()["error"]["message"].endswith("is paused already: by operator: lunch")
    assert api("POST", f"{path}/resume").json()["rollout"]["state"] == "running"
    assert api("POST", f"{path}/resume").status_code == 409
    assert api("POST", f"{path}/abort").json()["rollout"]["state"] == "aborted"
    for verb in ("pause", "resume", "abort"):
        assert api("POST", f"{path}/{verb}").status_code == 409


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"hosts": []}, 400),
        ({"hosts": "some"}, 400),
        ({"hosts": ["host-9"]}, 404),
        ({"action": "evict"}, 400),
        ({"hosts_at_once": 0}, 400),
        ({"hosts_at_once": 1.5}, 400),
        ({"gap_seconds": -1}, 400),
        ({"deadline": "tomorrow"}, 400),
        ({"canary": 4}, 400),
        ({"action": "service", "mode": "in-place", "returning": True}, 400),
    ],
)
def test_an_invalid_rollout_is_refused(api: Api, wrong: dict[str, Any], status: int) -> None:
    answer = api("POST", "/v1/rollouts", json={"hosts": "all", "action": "freeze", **wrong})
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def test_an_unknown_rollout_is_not_found(api: Api) -> None:
    unknown = "/v1/rollouts/00000000-0000-4000-8000-0000000000FF"
    assert api("GET", unknown).status_code == 404
    assert api("POST", f"{unknown}/pause").status_code == 404
    assert api("GET", "/v1/rollouts/none").status_code == 404


def test_a_host_with_another_order_is_a_reason_and_no_error(service: Service, api: Api) -> None:
    other = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE).order
    rollout = begin(api, hosts=["host-1"])
    assert rollout["waiting"] == [
        {"what": "host-1", "reason": f"has order {other.id} (maintenance), which is announced"}
    ]


def test_a_host_with_a_hook_is_not_simulated(service: Service) -> None:
    service.policy = Policy(hooks=frozenset({HostTask.WORK}))
    service.wire(service.store)
    plan = {"hosts": "all", "action": "service", "dry_run": True}
    rollout = Api(app_of(service))("POST", "/v1/rollouts", json=plan).json()["rollout"]
    assert (rollout["driver"], rollout["simulated_hosts"]) == ("hook", [])


def test_a_rollout_services_the_hosts_themselves(api: Api) -> None:
    rollout = begin(api, action="service", returning=True, host_work="external", heartbeat_seconds=60)
    asked = {key: rollout[key] for key in ("action", "mode", "returning", "host_work")}
    assert asked == {"action": "service", "mode": None, "returning": True, "host_work": "external"}
    order = api("GET", f"/v1/orders/{rollout['waves'][0]['orders'][0]}").json()["order"]
    assert (order["action"], order["mode"]) == ("service", "evacuate")


def test_options_of_host_service_are_refused_for_other_work(api: Api) -> None:
    refused = api("POST", "/v1/rollouts", json={"hosts": "all", "action": "freeze", "mode": "in-place"})
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == 'mode: expected only beside action "service"'
