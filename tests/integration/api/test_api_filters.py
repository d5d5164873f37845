"""Filters by project, group, host and machine. An unknown name is an error, not an empty list."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forewarn.core.basic_types import Action, Work
from forewarn.wire.answers.fleet_answers import SummaryAnswer
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import TEST, Service
from tests.helpers.service.served import Api, app_of, check_answer
from tests.helpers.service.tenants import A_USER, OPERATOR, bearer, let_in, two_projects

UNKNOWN_ID = "602D9444-D2CD-49C7-8624-8643E7171297"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(two_projects())
    for name in ("a-0", "b-0"):
        service.poll(name)
    let_in(service)
    yield service
    service.close()


@pytest.fixture
def api(service: Service) -> Api:
    return Api(app_of(service))


def found(api: Api, path: str, key: str, secret: str = OPERATOR) -> list[Any]:
    answer = api("GET", f"/v1/{path}", headers=bearer(secret))
    assert answer.status_code == 200, answer.text
    listed = next(value for name, value in answer.json().items() if name != "next")
    return [each[key] for each in listed]


def test_an_operator_lists_the_resources_of_one_project(service: Service, api: Api) -> None:
    for name in ("a-0", "b-0"):
        service.order(name, Action.RESTART)
    assert found(api, "machines?project=a", "name") == ["a-0", "a-1", "spot"]
    assert found(api, "groups?project=b", "name") == ["b-web"]
    assert found(api, "orders?project=a", "machine") == ["a-0"]
    assert found(api, "orders?project=a&state=done", "machine") == []
    assert found(api, "events?project=b", "group") == ["b-web"]
    assert set(found(api, "history?project=a", "project")) == {"a"}
    assert found(api, "machines?project=default", "name") == []


def test_a_list_of_one_project_has_pages(api: Api) -> None:
    first = api("GET", "/v1/machines?project=a&limit=2", headers=bearer(OPERATOR)).json()
    assert [each["name"] for each in first["machines"]] == ["a-0", "a-1"]
    assert found(api, f"machines?project=a&limit=2&after={first['next']}", "name") == ["spot"]


def test_machines_are_filtered_by_names_and_unknown_names_are_ignored(api: Api) -> None:
    assert found(api, "machines?name=a-1&name=B-0&name=unknown", "name") == ["a-1", "b-0"]
    assert found(api, "machines?name=a-1&name=b-0", "name", A_USER) == ["a-1"]
    assert found(api, "machines?name=unknown", "name") == []
    assert found(api, "machines?name=spot", "project") == ["a", "b"]
    assert found(api, "machines?begins=A-", "name") == ["a-0", "a-1"]
    assert found(api, "machines?begins=b", "name", A_USER) == []
    assert found(api, "machines?contains=A-1", "name") == ["a-1"]
    assert found(api, "machines?contains=-0", "name", A_USER) == ["a-0"]
    many = "&".join(f"name=machine-{number}" for number in range(501))
    answer = api("GET", f"/v1/machines?{many}", headers=bearer(OPERATOR))
    assert answer.status_code == 400
    assert "name: expected at most 500 items, got 501" in answer.text
    assert api("GET", "/v1/machines?begins=%25", headers=bearer(OPERATOR)).status_code == 400


def test_the_fleet_is_counted_as_its_caller_sees_it(service: Service, api: Api) -> None:
    def counted(secret: str, query: str = "") -> Any:
        answer = api("GET", f"/v1/summary{query}", headers=bearer(secret))
        check_answer(SummaryAnswer, answer.json())
        return answer.json()["summary"]

    service.order("a-0", Action.RESTART)
    service.fleet.hosts.hold(TEST, project=None, host=None)
    everything, mine = counted(OPERATOR), counted(A_USER)
    assert (everything["machines"], everything["hosts"]["ok"], everything["holds"]) == (6, 3, 1)
    assert [(each["name"], each["project"]) for each in everything["groups"]] == [
        ("a-web", "a"),
        ("b-web", "b"),
        (None, "a"),
        (None, "b"),
    ]
    assert (mine["machines"], mine["hosts"], mine["rollouts"], mine["holds"]) == (3, None, None, None)
    assert (mine["events"], mine["orders"]["announced"]) == ({"Scheduled": 1, "Started": 0}, 1)
    assert mine["groups"][0]["update_domains"] == [
        {"update_domain": 0, "machines": 1, "states": {"running": 1}, "scheduled": 1, "started": 0},
        {"update_domain": 1, "machines": 1, "states": {"running": 1}, "scheduled": 0, "started": 0},
    ]
    narrowed = counted(OPERATOR, "?project=a")
    assert narrowed == {**mine, "hosts": {"ok": 3, "cordoned": 0, "degraded": 0, "failed": 0, "lost": 0}}


def test_orders_and_events_are_listed_by_machine_and_host(service: Service, api: Api) -> None:
    hosts = service.host_order("host-2", Action.MAINTENANCE, Work.FREEZE)
    mine = service.order("a-0", Action.RESTART)
    theirs = service.order("b-0", Action.RESTART)
    assert found(api, "orders?machine=A-0", "id") == [mine.order.id]
    assert found(api, "orders?machine=a-1&open=true", "id") == [hosts.order.id]
    assert found(api, "orders?host=host-1", "id") == [theirs.order.id, mine.order.id]
    assert found(api, "events?host=host-2", "order") == [hosts.order.id] * 2
    assert found(api, "events?machine=a-1", "group", A_USER) == ["a-web"]
    # Of a host order, a project sees only its event.
    assert found(api, "orders?machine=a-1", "id", A_USER) == []
    for path in ("orders", "events"):
        unknown = api("GET", f"/v1/{path}?machine=unknown", headers=bearer(OPERATOR))
        assert (unknown.status_code, 'machine \\"unknown\\" does not exist' in unknown.text) == (404, True)
        hidden = [
            api("GET", f"/v1/{path}?host={name}", headers=bearer(A_USER)) for name in ("host-1", "nowhere")
        ]
        assert [each.status_code for each in hidden] == [403, 403]
        assert hidden[0].text == hidden[1].text


def test_past_events_are_listed_by_time_with_the_delivered_notice(service: Service, api: Api) -> None:
    over = service.order("a-0", Action.RESTART)
    service.fetch("a-0")
    service.advance(hours=2)
    coming = service.order("a-0", Action.RESTART)
    everything = "events?all=true&notices=true&since=2026-01-05T12:00:00Z"
    assert found(api, everything, "order") == [coming.order.id, over.order.id]
    got = {"least_seconds": 900.0, "late": 0, "never": 0, "so_far": False}
    assert found(api, everything, "notice") == [None, got]
    assert found(api, everything.replace("notices=true", ""), "notice") == [None, None]
    assert found(api, "events?all=true&since=2026-01-05T13:59:00Z", "order") == [coming.order.id]
    assert found(api, "events?all=true&until=2026-01-05T13:00:00Z", "order") == [over.order.id]
    assert found(api, "events?all=true&until=2026-01-05T12:00:00Z", "order") == []
    shown = api("GET", f"/v1/events/{over.events[0].id}", headers=bearer(OPERATOR)).json()["event"]
    assert shown["notice"] == got


def test_machines_are_listed_by_group_and_host(api: Api) -> None:
    assert found(api, "machines?group=a-web", "name") == ["a-0", "a-1"]
    assert found(api, "machines?host=host-1", "name") == ["a-0", "b-0"]
    assert found(api, "machines?host=host-1&project=b", "name") == ["b-0"]
    # Both exist, but not together.
    assert found(api, "machines?group=a-web&host=host-3", "name") == []


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("machines?project=aa", 'project "aa" does not exist; did you mean a?'),
        ("machines?group=a-wep", 'group "a-wep" does not exist; did you mean a-web?'),
        ("machines?host=host1", 'host "host1" does not exist; did you mean host-1?'),
        ("machines?host=zzz", 'host "zzz" does not exist'),
        ("groups?project=z", 'project "z" does not exist'),
        ("orders?project=z", 'project "z" does not exist'),
        ("events?project=z", 'project "z" does not exist'),
        ("webhooks?project=z", 'project "z" does not exist'),
        ("calendar.ics?project=z", 'project "z" does not exist'),
        ("stream?project=z", 'project "z" does not exist'),
        ("stream?machine=spott", 'machine "spott" does not exist; did you mean spot?'),
        ("history?project=z", 'project "z" does not exist'),
        ("history?machine=spott", 'machine "spott" does not exist; did you mean spot?'),
        ("history?project=a&machine=b-00", 'machine "b-00" does not exist'),
        (f"history?event={UNKNOWN_ID}", f"event {UNKNOWN_ID} does not exist"),
        (f"history?order={UNKNOWN_ID}", f"order {UNKNOWN_ID} does not exist"),
    ],
)
def test_an_unknown_name_in_a_filter_is_an_error(api: Api, path: str, message: str) -> None:
    answer = api("GET", f"/v1/{path}", headers=bearer(OPERATOR))
    assert answer.status_code == 404
    said = answer.json()["error"]["message"]
    assert said == message or (not message.endswith("?") and said.startswith(message))


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("GET", "machines/spott", 'machine "spott" does not exist; did you mean spot?'),
        ("GET", "machines/a-00", 'machine "a-00" does not exist; did you mean a-0?'),
        ("GET", "machines/a-0?project=b", 'machine "a-0" does not exist in project b; did you mean b-0?'),
        ("GET", "machines/a-0?project=aa", 'project "aa" does not exist; did you mean a?'),
        ("DELETE", "machines/spott", 'machine "spott" does not exist; did you mean spot?'),
        ("POST", "machines/a-00/restart", 'machine "a-00" does not exist; did you mean a-0?'),
        ("POST", "machines/a-0/restart?project=aa", 'project "aa" does not exist; did you mean a?'),
        ("GET", "groups/a-wep", 'group "a-wep" does not exist; did you mean a-web?'),
        ("GET", "hosts/host1", 'host "host1" does not exist; did you mean host-1?'),
        ("POST", "hosts/host1/cordon", 'host "host1" does not exist; did you mean host-1?'),
        ("GET", "projects/bb", 'project "bb" does not exist; did you mean b?'),
    ],
)
def test_an_unknown_name_in_a_path_gets_a_suggestion(api: Api, method: str, path: str, message: str) -> None:
    answer = api(method, f"/v1/{path}", headers=bearer(OPERATOR))
    assert (answer.status_code, answer.json()["error"]["message"]) == (404, message)


@pytest.mark.parametrize(
    ("reach", "message"),
    [
        ({"host": "host1"}, 'host "host1" does not exist; did you mean host-1?'),
        ({"project": "aa"}, 'project "aa" does not exist; did you mean a?'),
    ],
)
def test_a_hold_on_an_unknown_host_or_project_is_refused(
    api: Api, reach: dict[str, str], message: str
) -> None:
    answer = api("POST", "/v1/holds", headers=bearer(OPERATOR), json={"reason": "x", **reach})
    assert (answer.status_code, answer.json()["error"]["message"]) == (404, message)


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("GET", "machines/b-1", 'machine "b-1" does not exist; did you mean a-1?'),
        ("POST", "machines/b-1/restart", 'machine "b-1" does not exist; did you mean a-1?'),
        ("GET", "machines/b-1?project=b", 'project "b" does not exist'),
        ("GET", "groups/b-web", 'group "b-web" does not exist; did you mean a-web?'),
        ("GET", "groups/b-wep", 'group "b-wep" does not exist'),
        ("GET", "projects/b", 'project "b" does not exist'),
    ],
)
def test_suggestions_never_name_resources_of_other_projects(
    api: Api, method: str, path: str, message: str
) -> None:
    answer = api(method, f"/v1/{path}", headers=bearer(A_USER))
    assert (answer.status_code, answer.json()["error"]["message"]) == (404, message)


def test_suggestions_come_from_the_callers_own_project(api: Api) -> None:
    answer = api("GET", "/v1/history?machine=b-1", headers=bearer(A_USER))
    assert answer.json()["error"]["message"] == 'machine "b-1" does not exist; did you mean a-1?'
    hosts = [api("GET", f"/v1/machines?host={name}", headers=bearer(A_USER)) for name in ("host-9", "zzz")]
    # The answer does not reveal whether the host exists.
    assert [answer.status_code for answer in hosts] == [403, 403]


def test_a_removed_machine_is_found_in_the_history(service: Service, api: Api) -> None:
    service.fleet.declarations.delete_machine("a-0", project=None, by="test")
    kinds = found(api, "history?machine=a-0", "kind")
    assert kinds[0] == "machine-removed"
    # The machine has no such records, but it existed.
    assert found(api, "history?machine=A-0&since=2030-01-01T00:00:00Z", "kind") == []
    assert found(api, "history?machine=spot&since=2030-01-01T00:00:00Z", "kind") == []


def test_a_project_finds_its_own_records_of_a_host_order(service: Service, api: Api) -> None:
    order = service.host_order("host-1", Action.FAIL).order.id
    assert set(found(api, f"history?order={order}", "project", A_USER)) == {"a"}
    assert found(api, f"history?order={order}&since=2030-01-01T00:00:00Z", "kind", A_USER) == []


def test_past_events_are_listed_on_demand_within_their_project_and_by_a_prefix_of_an_id(
    service: Service, api: Api
) -> None:
    for name in ("a-0", "b-0"):
        service.order(name, Action.RESTART)
    service.advance(hours=1)
    service.order("a-1", Action.RESTART)
    assert found(api, "events", "group") == ["a-web"]
    assert found(api, "events?all=true", "resources") == [["a-1"], ["b-0"], ["a-0"]]
    assert found(api, "events?all=true", "project") == ["a", "b", "a"]
    assert found(api, "events?all=true", "project", A_USER) == ["a", "a"]
    (latest, *_) = found(api, "events?all=true", "id")
    assert found(api, f"events?begins={latest.lower()}", "id") == [latest]
    refused = api("GET", "/v1/events?begins=%25", headers=bearer(OPERATOR))
    assert refused.status_code == 400


def test_a_hold_is_listed_once_while_it_is_saved(service: Service, api: Api) -> None:
    unsaved = service.use_cases.unsaved_holds
    held = unsaved.put(TEST, id_=unsaved.new_id(), project=None, host=None)
    service.fleet.hosts.keep(held)  # it is still in memory
    assert found(api, "holds", "id") == [held.id]
