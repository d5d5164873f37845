"""Orders, events, history and the clock over the operator API."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forewarn.core.basic_types import HostName, Mobility
from forewarn.core.policy import Policy
from forewarn.wire.answers.event_answers import EventAnswer
from forewarn.wire.answers.order_answers import (
    OrderAnswer,
    OrderDetailWithEventsAnswer,
    OrderOnMachineAnswer,
    OrderWithEventsAnswer,
)
from forewarn.wire.answers.record_answers import RecordsAnswer
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
from tests.helpers.service.served import Api, app_of, check_answer, check_page, sample


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path), policy=Policy(user_orders=2))
    service.apply(sample())
    yield service
    service.close()


@pytest.fixture
def api(service: Service) -> Api:
    return Api(app_of(service))


def test_a_restart_returns_its_order_and_its_event(service: Service, api: Api) -> None:
    service.poll("web-0")
    answer = api("POST", "/v1/machines/web-0/restart", json={"reason": "new kernel"})
    assert answer.status_code == 202
    check_answer(OrderOnMachineAnswer, answer.json())
    order, event = answer.json()["order"], answer.json()["event"]
    assert (order["action"], order["state"], order["by"]) == ("restart", "announced", "operator")
    assert order["reason"] == "new kernel"
    assert (event["type"], event["status"], event["source"]) == ("Reboot", "Scheduled", "User")
    assert event["resources"] == ["web-0"]
    assert event["not_before"] == "2026-01-05T12:15:00Z"
    assert (event["approved"], event["approvals"]) == (False, [])
    assert answer.json()["reason"] is None


def test_without_an_enabled_group_the_answer_has_the_reason_for_no_event(api: Api) -> None:
    answer = api("POST", "/v1/machines/web-0/restart").json()
    assert answer["event"] is None
    assert "not enabled" in answer["reason"]
    assert answer["order"]["state"] == "started"


def test_a_start_explains_that_it_has_no_event(service: Service, api: Api) -> None:
    api("POST", "/v1/machines/spot-0/evict")
    service.advance(minutes=10)
    answer = api("POST", "/v1/machines/spot-0/start")
    assert answer.status_code == 202
    assert (answer.json()["event"], answer.json()["reason"]) == (None, "a start makes no event")


def test_a_machine_moves_live_to_a_named_host(service: Service, api: Api) -> None:
    answer = api(
        "POST", "/v1/machines/web-0/move", json={"to": "host-2", "live": True, "reason": "noisy neighbour"}
    )
    assert answer.status_code == 202
    check_answer(OrderOnMachineAnswer, answer.json())
    order, event = answer.json()["order"], answer.json()["event"]
    assert (order["action"], order["work"], order["to"]) == ("move", "freeze", "host-2")
    assert (event["type"], event["source"], event["duration_seconds"]) == ("Freeze", "Platform", 5)
    assert event["not_before"] == "2026-01-05T12:15:00Z"
    service.advance(minutes=25)
    machine = api("GET", "/v1/machines/web-0").json()["machine"]
    assert (machine["host"], machine["state"]) == ("host-2", "running")
    assert api("GET", f"/v1/orders/{order['id']}").json()["order"]["state"] == "done"


def test_a_move_is_cold_and_has_no_fixed_target_by_default(service: Service, api: Api) -> None:
    answer = api("POST", "/v1/machines/web-0/move").json()
    assert (answer["order"]["work"], answer["order"]["to"]) == ("redeploy", None)
    assert answer["event"]["type"] == "Redeploy"
    service.advance(minutes=25)
    assert api("GET", "/v1/machines/web-0").json()["machine"]["host"] != "host-1"


@pytest.mark.parametrize(
    ("to", "status", "said"),
    [
        ("host-9", 404, 'host "host-9" does not exist'),
        ("host-1", 409, 'machine "web-0" is on host host-1 already'),
        ("host-2", 409, 'machine "web-0" cannot move: host host-2 is cordoned; name another host, or none'),
        ("host 2", 400, "to: "),
    ],
)
def test_a_move_to_an_unsuitable_host_is_refused(api: Api, to: str, status: int, said: str) -> None:
    api("POST", "/v1/hosts/host-2/cordon")
    answer = api("POST", "/v1/machines/web-0/move?project=default", json={"to": to})
    assert answer.status_code == status
    assert answer.json()["error"]["message"].startswith(said)


def test_a_machine_name_is_resolved_within_the_given_project(api: Api) -> None:
    assert api("POST", "/v1/machines/web-0/freeze?project=default").status_code == 202
    assert api("POST", "/v1/machines/web-0/freeze?project=other").status_code == 404


def test_a_regular_machine_cannot_be_evicted(api: Api) -> None:
    answer = api("POST", "/v1/machines/web-0/evict")
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "Conflict"
    assert "only spot machines" in answer.json()["error"]["message"]


def test_a_reached_limit_has_a_retry_after(api: Api) -> None:
    for name in ("web-0", "web-1"):
        assert api("POST", f"/v1/machines/{name}/terminate").status_code == 202
    answer = api("POST", "/v1/machines/web-2/terminate")
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "LimitReached")
    assert int(answer.headers["Retry-After"]) > 0


@pytest.mark.parametrize("action", ["freeze", "reboot", "redeploy"])
def test_host_maintenance_returns_its_order_and_events(api: Api, action: str) -> None:
    answer = api("POST", "/v1/hosts/host-1/maintenance", json={"action": action})
    assert answer.status_code == 202
    check_answer(OrderWithEventsAnswer, answer.json())
    assert answer.json()["order"]["work"] == action
    assert {name for event in answer.json()["events"] for name in event["resources"]} == {
        "web-0",
        "web-3",
        "spot-0",
    }


@pytest.mark.parametrize("action", ["degrade", "fail", "restore", "cordon", "uncordon"])
def test_every_host_order_is_accepted(api: Api, action: str) -> None:
    answer = api("POST", f"/v1/hosts/host-1/{action}")
    assert answer.status_code == 202
    check_answer(OrderWithEventsAnswer, answer.json())


def test_whole_is_refused_for_a_host_with_two_update_domains_of_a_group(service: Service, api: Api) -> None:
    service.put("web-1", host=HostName("host-1"))
    answer = api("POST", "/v1/hosts/host-1/maintenance", json={"action": "reboot", "whole": True})
    assert answer.status_code == 409
    message = answer.json()["error"]["message"]
    assert message.startswith("host-1 carries update domains 0 and 1 of group web: ")
    assert '"together"' in message
    assert api("GET", "/v1/orders").json()["orders"] == []
    rollout = {"hosts": "all", "action": "reboot", "whole": True}
    assert api("POST", "/v1/rollouts", json=rollout).json()["error"]["message"] == message


def test_together_needs_one_stage_with_full_notice_and_records_the_broken_promise(
    service: Service, api: Api
) -> None:
    service.put("web-1", host=HostName("host-1"))
    body = {"action": "reboot", "together": "its board is swapped"}
    answer = api("POST", "/v1/hosts/host-1/maintenance", json=body).json()
    assert answer["order"]["together"] == "its board is swapped"
    assert [len(stage["steps"]) for stage in answer["order"]["stages"]] == [4]
    assert {event["not_before"] for event in answer["events"]} == {"2026-01-05T12:15:00Z"}
    records = api("GET", "/v1/history?kind=promise-broken").json()["records"]
    assert [(record["group"], record["reason"]) for record in records] == [
        ("web", "its board is swapped: update domains 0 and 1 of web are disturbed together")
    ] * 2


def test_a_rollout_may_disturb_update_domains_together_for_a_reason(service: Service, api: Api) -> None:
    service.put("web-1", host=HostName("host-1"))
    body = {"hosts": ["host-1"], "action": "reboot", "together": "boards are swapped"}
    rollout = api("POST", "/v1/rollouts", json=body).json()["rollout"]
    assert rollout["together"] == "boards are swapped"
    (order,) = api("GET", "/v1/orders").json()["orders"]
    assert (order["together"], len(order["stages"])) == ("boards are swapped", 1)


def test_host_service_shows_the_kinds_of_its_stages_and_its_own_steps(service: Service, api: Api) -> None:
    service.put("web-0", mobility=Mobility.LIVE)
    body = {"mode": "evacuate", "returning": True, "host_work": "external", "heartbeat_seconds": 60}
    answer = api("POST", "/v1/hosts/host-1/service", json=body)
    check_answer(OrderWithEventsAnswer, answer.json())
    order = answer.json()["order"]
    assert (order["work"], order["mode"], order["returning"]) == ("host", "evacuate", True)
    assert [stage["kind"] for stage in order["stages"]] == ["evacuate", "host"]
    moves = {step["machine"]: (step["work"], step["moves"]) for step in order["stages"][0]["steps"]}
    assert moves["web-0"] == ("freeze", True)
    assert [(step["task"], step["driver"]) for step in order["host_steps"]] == [("work", "external")]
    assert service.everything().hosts[HostName("host-1")].state == "cordoned"


def test_host_service_needs_no_body(api: Api) -> None:
    order = api("POST", "/v1/hosts/host-3/service").json()["order"]
    assert (order["mode"], order["host_steps"][0]["driver"]) == ("evacuate", "simulated")


def test_update_domains_that_would_restart_together_are_named(service: Service, api: Api) -> None:
    service.put("web-1", host=HostName("host-1"))
    answer = api("POST", "/v1/hosts/host-1/service", json={"mode": "in-place"})
    assert answer.status_code == 409
    assert "web-1 of domain 1" in answer.json()["error"]["message"]
    assert api("GET", "/v1/orders").json()["orders"] == []


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"mode": "fly"}, "mode: expected evacuate or in-place"),
        ({"mode": "in-place", "returning": True}, "returning: not with mode in-place"),
        ({"host_work": "nobody"}, "host_work: expected"),
        ({"heartbeat_seconds": 9, "driver": "simulated"}, "heartbeat_seconds: expected only"),
        ({"notice_seconds": 9}, "notice_seconds: expected only with emergency"),
    ],
)
def test_contradictory_host_work_is_refused(api: Api, body: dict[str, Any], why: str) -> None:
    answer = api("POST", "/v1/hosts/host-1/service", json=body)
    assert (answer.status_code, answer.json()["error"]["message"][: len(why)]) == (400, why)


def test_an_unknown_maintenance_action_is_named(api: Api) -> None:
    answer = api("POST", "/v1/hosts/host-1/maintenance", json={"action": "paint"})
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert message.startswith("action: expected freeze, reboot or redeploy")
    assert "paint" in message


def test_waiting_work_has_a_reason(service: Service, api: Api) -> None:
    api("POST", "/v1/hosts/host-1/maintenance", json={"action": "freeze"})
    answer = api("POST", "/v1/hosts/host-2/maintenance", json={"action": "freeze"}).json()
    assert answer["order"]["state"] == "queued"
    assert answer["order"]["waiting"] == [{"what": "web", "reason": "update domain 1 waits for domain 0"}]
    assert answer["events"] == []


def test_an_order_shows_its_stages_its_steps_and_its_events(service: Service, api: Api) -> None:
    placed = api("POST", "/v1/hosts/host-1/maintenance", json={"action": "freeze"}).json()["order"]
    service.advance(minutes=15)
    answer = api("GET", f"/v1/orders/{placed['id'].lower()}").json()
    check_answer(OrderDetailWithEventsAnswer, answer)
    assert answer["order"]["state"] == "started"
    assert [step["state"] for step in answer["order"]["steps"]] == ["running"] * 3
    assert answer["order"]["stages"][0]["steps"] == answer["order"]["steps"]
    assert {event["status"] for event in answer["events"]} == {"Started"}


def test_a_started_event_keeps_its_not_before(service: Service, api: Api) -> None:
    event = api("POST", "/v1/machines/web-0/freeze").json()["event"]
    service.advance(minutes=16)
    shown = api("GET", f"/v1/events/{event['id']}").json()["event"]
    assert (shown["status"], shown["not_before"]) == ("Started", event["not_before"])
    assert shown["started_at"] == event["not_before"]


def test_approving_an_event_starts_it_and_records_the_approver(api: Api) -> None:
    event = api("POST", "/v1/machines/web-0/freeze").json()["event"]
    answer = api("POST", f"/v1/events/{event['id'].lower()}/approve")
    assert answer.status_code == 200
    check_answer(EventAnswer, answer.json())
    approved = answer.json()["event"]
    assert (approved["status"], approved["approved"]) == ("Started", True)
    assert approved["approvals"] == [
        {"by": "operator", "kind": "person", "at": "2026-01-05T12:00:00Z", "address": None}
    ]


def test_a_cancelled_event_disappears_from_the_list(api: Api) -> None:
    event = api("POST", "/v1/machines/web-0/freeze").json()["event"]
    assert [each["id"] for each in api("GET", "/v1/events").json()["events"]] == [event["id"]]
    assert api("POST", f"/v1/events/{event['id']}/cancel").status_code == 200
    assert api("GET", "/v1/events").json() == {"events": [], "next": None}


def test_a_started_event_is_too_late_to_cancel(service: Service, api: Api) -> None:
    event = api("POST", "/v1/machines/web-0/freeze").json()["event"]
    service.advance(minutes=15)
    answer = api("POST", f"/v1/events/{event['id']}/cancel")
    assert answer.status_code == 409
    assert "too late to cancel" in answer.json()["error"]["message"]


def test_an_order_can_be_cancelled(api: Api) -> None:
    order = api("POST", "/v1/machines/web-0/freeze").json()["order"]
    answer = api("POST", f"/v1/orders/{order['id']}/cancel")
    assert answer.status_code == 200
    assert answer.json()["order"]["state"] == "cancelled"


def test_a_failed_order_can_be_retried_and_abandoned(service: Service, api: Api) -> None:
    service.driver.failing.add("web-0")
    order = api("POST", "/v1/machines/web-0/restart").json()["order"]
    failed = api("GET", f"/v1/orders/{order['id']}").json()["order"]
    assert (failed["state"], failed["waiting"]) == (
        "failed",
        [{"what": "web-0", "reason": "failed: told to fail"}],
    )
    assert api("POST", f"/v1/orders/{order['id']}/retry").status_code == 202
    assert api("GET", f"/v1/orders/{order['id']}").json()["order"]["steps"][0]["attempt"] == 2
    assert api("POST", f"/v1/orders/{order['id']}/abandon").status_code == 202
    assert api("POST", f"/v1/orders/{order['id']}/retry").status_code == 409


def test_orders_are_listed_newest_first_by_state_and_page(api: Api) -> None:
    for name in ("web-0", "web-1", "web-2"):
        api("POST", f"/v1/machines/{name}/freeze")
    api("POST", "/v1/hosts/host-3/cordon")
    first = api("GET", "/v1/orders?state=announced&limit=2").json()
    check_page(OrderAnswer, first)
    assert [order["machine"] for order in first["orders"]] == ["web-2", "web-1"]
    second = api("GET", "/v1/orders", params={"state": "announced", "after": first["next"]}).json()
    assert ([order["machine"] for order in second["orders"]], second["next"]) == (["web-0"], None)


def test_history_is_newest_first_and_filtered(service: Service, api: Api) -> None:
    event = api("POST", "/v1/machines/web-0/freeze").json()["event"]
    service.advance(hours=1)
    api("POST", "/v1/machines/web-1/freeze")
    whole = api("GET", "/v1/history").json()
    check_answer(RecordsAnswer, whole)
    numbers = [record["number"] for record in whole["records"]]
    assert numbers == sorted(numbers, reverse=True)
    of_event = api("GET", "/v1/history", params={"event": event["id"].lower()}).json()["records"]
    assert of_event[-1]["kind"] == "event-scheduled"
    assert {record["event"] for record in of_event} == {event["id"]}
    late = api("GET", "/v1/history", params={"since": "2026-01-05T13:00:00Z"}).json()["records"]
    assert {record["machine"] for record in late} == {"web-1"}


def test_history_continues_where_a_page_ended(api: Api) -> None:
    whole = api("GET", "/v1/history?limit=1000").json()["records"]
    first = api("GET", "/v1/history?limit=3").json()
    second = api("GET", f"/v1/history?limit=1000&after={first['next']}").json()
    assert first["records"] + second["records"] == whole
    assert second["next"] is None


def test_empty_history_filters_have_no_effect(api: Api) -> None:
    everything = api("GET", "/v1/history").json()
    assert api("GET", "/v1/history?machine=&event=&order=&since=&limit=").json() == everything


@pytest.mark.parametrize("query", ["since=yesterday", "since=2026-01-05T12:00:00", "order=7", "after=x"])
def test_an_invalid_history_filter_is_refused_by_name(api: Api, query: str) -> None:
    answer = api("GET", f"/v1/history?{query}")
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(query.partition("=")[0])


def test_an_advance_of_the_clock_does_all_due_work(api: Api) -> None:
    api("POST", "/v1/machines/web-0/freeze")
    answer = api("POST", "/v1/clock/advance", json={"seconds": 86400})
    assert answer.json() == {"kind": "manual", "now": "2026-01-06T12:00:00Z", "speed": 0.0}
    assert api("GET", "/v1/clock").json() == answer.json()
    assert api("GET", "/v1/orders").json()["orders"][0]["state"] == "done"


@pytest.mark.parametrize("seconds", [-1, "900", None, True, 1e12])
def test_an_invalid_advance_is_refused(api: Api, seconds: object) -> None:
    answer = api("POST", "/v1/clock/advance", json={"seconds": seconds})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith("seconds: expected")


# Recommendations.


REBALANCE = "/v1/machines/spot-0/recommend-rebalance"


def test_a_recommendation_is_refused_unless_a_preview_version_is_offered(api: Api) -> None:
    answer = api("POST", REBALANCE)
    assert answer.status_code == 409
    assert "`[guest] preview = true`" in answer.json()["error"]["message"]


def test_a_recommendation_is_an_event_without_approvals(tmp_path: Path) -> None:
    service = Service(sqlite_url(tmp_path), preview=True)
    service.apply(sample())
    api = Api(app_of(service))
    answer = api("POST", REBALANCE)
    assert answer.status_code == 202
    check_answer(OrderOnMachineAnswer, answer.json())
    event, order = answer.json()["event"], answer.json()["order"]
    assert (event["type"], event["status"], order["steps"]) == (
        "SpotRebalanceRecommendation",
        "Scheduled",
        [],
    )
    shown = api("GET", f"/v1/events/{event['id']}").json()["event"]
    assert (shown["awaits"], shown["approvals"]) == (None, [])
    assert api("POST", f"/v1/events/{event['id']}/approve").json()["event"]["approvals"] == []
    service.approve("spot-0", event["id"])
    assert "SpotRebalance" not in api("GET", "/v1/calendar.ics").text
    service.advance(minutes=29)
    assert [each["id"] for each in api("GET", "/v1/events").json()["events"]] == [event["id"]]
    service.advance(minutes=1)
    assert api("GET", "/v1/events").json()["events"] == []
    assert api("GET", f"/v1/orders/{order['id']}").json()["order"]["state"] == "done"
    service.close()
