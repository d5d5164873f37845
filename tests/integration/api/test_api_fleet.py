"""Machines, groups, hosts and the whole fleet over the operator API."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarn.wire.answers.fleet_answers import GroupAnswer, ListedHostAnswer, MachineAnswer
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
from tests.helpers.service.served import Api, app_of, check_answer, check_page, sample


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(sample())
    yield service
    service.close()


@pytest.fixture
def api(service: Service) -> Api:
    return Api(app_of(service))


def test_machines_are_listed_page_by_page(api: Api) -> None:
    first = api("GET", "/v1/machines?limit=5").json()
    check_page(MachineAnswer, first)
    second = api("GET", "/v1/machines", params={"after": first["next"]}).json()
    names = [machine["name"] for machine in first["machines"] + second["machines"]]
    assert names == ["db", "spot-0", *(f"web-{n}" for n in range(6))]
    assert second["next"] is None


def test_a_machine_shows_whether_its_group_is_enabled_and_when_it_polled(service: Service, api: Api) -> None:
    before = api("GET", "/v1/machines/web-0").json()["machine"]
    assert (before["enabled"], before["last_seen"]) == (False, None)
    service.poll("web-3")
    after = api("GET", "/v1/machines/WEB-3").json()["machine"]
    assert (after["enabled"], after["last_seen"]) == (True, "2026-01-05T12:00:00Z")


def test_a_standalone_machine_has_no_group(api: Api) -> None:
    assert api("GET", "/v1/machines/db").json()["machine"]["group"] is None
    event = api("POST", "/v1/machines/db/freeze").json()["event"]
    assert event["group"] is None
    assert {record["group"] for record in api("GET", "/v1/history?machine=db").json()["records"]} == {None}


def test_put_creates_an_unknown_machine(api: Api) -> None:
    body = {"host": "host-2", "group": "web", "update_domain": 1, "address": "FD00::0:1"}
    answer = api("PUT", "/v1/machines/web-9", json=body)
    assert answer.status_code == 201
    check_answer(MachineAnswer, answer.json())
    machine = answer.json()["machine"]
    assert (machine["name"], machine["group"], machine["address"]) == ("web-9", "web", "fd00::1")


def test_put_changes_only_the_given_fields(api: Api) -> None:
    answer = api("PUT", "/v1/machines/web-0", json={"host": "host-3", "tags": {"role": "front"}})
    assert answer.status_code == 200
    machine = answer.json()["machine"]
    assert (machine["host"], machine["group"], machine["tags"]) == ("host-3", "web", {"role": "front"})


def test_put_with_another_name_renames_a_machine(api: Api) -> None:
    assert api("PUT", "/v1/machines/db", json={"name": "db-0"}).status_code == 200
    assert api("GET", "/v1/machines/db").status_code == 404
    assert api("GET", "/v1/machines/db-0").json()["machine"]["address"] == "10.0.0.9"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"hosts": "host-1"}, "hosts: there is no such field; did you mean host?"),
        ({"port": 0}, "port: expected a whole number from 1 to 65535, got 0"),
        ({"state": "stopped"}, "state: this field is read-only: leave it out"),
        ({"host": "nowhere"}, "host: expected one of the hosts, got 'nowhere'"),
        ({"host": "host1"}, "host: expected one of the hosts, got 'host1'; did you mean host-1?"),
        ({"group": "webb"}, "group: expected one of the groups, got 'webb'; did you mean web?"),
        ({"project": "other", "group": "web"}, 'project: expected "default"'),
        ({"tags": {"a": 1}}, "tags.a: expected one line"),
    ],
)
def test_an_invalid_machine_is_refused_with_its_field(
    api: Api, body: dict[str, object], message: str
) -> None:
    answer = api("PUT", "/v1/machines/web-0", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "Invalid")
    assert message in answer.json()["error"]["message"]


def test_a_machine_keeps_its_declared_id(api: Api) -> None:
    id_ = "4c4c4544-0051-4b10-8052-c8c04f4d4e32"
    put = api("PUT", "/v1/machines/web-9", json={"host": "host-2", "vm_id": id_.upper()})
    assert (put.status_code, put.json()["machine"]["vm_id"]) == (201, id_)
    assert api("PUT", "/v1/machines/web-9", json={"vm_id": id_}).status_code == 200
    other = api("PUT", "/v1/machines/web-8", json={"host": "host-2", "vm_id": id_})
    assert other.status_code == 409
    assert f'vm-id: "web-9" has {id_}' in other.json()["error"]["message"]
    changed = api("PUT", "/v1/machines/web-0", json={"vm_id": id_})
    assert changed.status_code == 409
    assert f"and cannot become {id_}: leave vm-id out" in changed.json()["error"]["message"]


def test_a_new_machine_needs_a_host_and_a_valid_name(api: Api) -> None:
    assert "host" in api("PUT", "/v1/machines/new", json={}).json()["error"]["message"]
    assert api("PUT", "/v1/machines/n%20w", json={"host": "host-1"}).status_code == 400


@pytest.mark.parametrize("body", [{}, {"host": "host-1"}, {"host": "host-1", "project": "default"}])
def test_a_first_machine_without_a_fleet_is_refused_with_the_next_step(
    tmp_path: Path, body: dict[str, str]
) -> None:
    service = Service(sqlite_url(tmp_path))
    answer = Api(app_of(service))("PUT", "/v1/machines/solo", json=body)
    service.close()
    assert answer.status_code == 400
    assert "the fleet has no hosts yet: declare it first" in answer.json()["error"]["message"]


def test_delete_returns_the_machine(api: Api) -> None:
    answer = api("DELETE", "/v1/machines/web-5")
    assert (answer.status_code, answer.json()["machine"]["name"]) == (200, "web-5")
    assert api("GET", "/v1/machines/web-5").status_code == 404


def test_groups_and_hosts_are_listed_and_shown(api: Api) -> None:
    groups = api("GET", "/v1/groups").json()
    check_page(GroupAnswer, groups)
    assert [group["name"] for group in groups["groups"]] == ["web"]
    check_answer(GroupAnswer, api("GET", "/v1/groups/web").json())
    hosts = api("GET", "/v1/hosts").json()
    check_page(ListedHostAnswer, hosts)
    assert [host["carried"] for host in hosts["hosts"]] == [3, 3, 2]
    assert [host["name"] for host in hosts["hosts"]] == ["host-1", "host-2", "host-3"]
    assert api("GET", "/v1/hosts/host-2").json() == {
        "host": {
            "name": "host-2",
            "state": "ok",
            "driver": "simulated",
            "uri": None,
            "at_once": None,
            "resources": {},
            "labels": {},
            "bare_metal": False,
            "cordoned_for": None,
            "source": "declared",
            "reachable": None,
            "reached_at": None,
            "unreachable_since": None,
            "unreachable_because": None,
            "machines": ["db", "web-1", "web-4"],
            "projects": ["default"],
        }
    }


def test_putting_the_shown_fleet_changes_nothing(api: Api) -> None:
    shown = api("GET", "/v1/fleet").json()
    for body in (shown, shown["fleet"]):
        answer = api("PUT", "/v1/fleet", json=body)
        assert (answer.status_code, answer.json()["changes"]) == (200, [])


def test_a_dry_run_shows_changes_without_making_them(api: Api) -> None:
    wanted = api("GET", "/v1/fleet").json()["fleet"]
    wanted["hosts"]["host-4"] = {}
    wanted["machines"] = [machine for machine in wanted["machines"] if machine["name"] != "db"]
    dry = api("PUT", "/v1/fleet?dry_run=true", json=wanted).json()
    assert dry["changes"] == ["+ host host-4", "- machine db"]
    assert api("GET", "/v1/machines/db").status_code == 200
    assert api("PUT", "/v1/fleet", json=wanted).json()["changes"] == dry["changes"]
    assert api("GET", "/v1/machines/db").status_code == 404


def test_a_bad_fleet_changes_nothing_and_names_the_field(api: Api) -> None:
    before = api("GET", "/v1/fleet").json()
    wanted = api("GET", "/v1/fleet").json()["fleet"]
    wanted["hosts"]["host-4"] = {}
    wanted["machines"][3]["host"] = "host-9"
    answer = api("PUT", "/v1/fleet", json=wanted)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith('machines[3] "web-1": host: expected')
    assert api("GET", "/v1/fleet").json() == before
