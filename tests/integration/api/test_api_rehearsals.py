"""Projects, and rehearsals in projects that allow them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarn.control.rehearsals import open_rehearsals
from forewarn.core.basic_types import HostName, ProjectName
from forewarn.core.errors import Unavailable
from forewarn.core.redaction import unmarked
from forewarn.store.opening import database
from forewarn.store.store import open_store
from forewarn.wire.fleet import read_fleet
from tests.helpers.database.stores import sqlite_url
from tests.helpers.database.transactions import holding
from tests.helpers.service.harness import Service
from tests.helpers.service.served import Api, app_of

FLEET = {
    "projects": {
        "lab": {"rehearsal": True},
        "shop": {
            "time_zone": "Europe/Berlin",
            "windows": [{"days": ["sat"], "start": "22:00", "length": "4h"}],
            "blackout": ["2026-12-24/2026-12-25"],
        },
    },
    "defaults": {"driver": "simulated"},
    "hosts": {"own": {}, "shared": {}, "empty": {}},
    "machines": [
        {"name": "lab-0", "project": "lab", "host": "own"},
        {"name": "lab-1", "project": "lab", "host": "shared"},
        {"name": "shop-0", "project": "shop", "host": "shared"},
    ],
}
REHEARSAL = {"rehearsal": "mine"}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(read_fleet(FLEET))
    yield service
    service.close()


@pytest.fixture
def api(service: Service) -> Api:
    return Api(app_of(service))


def test_projects_are_listed_page_by_page_with_cursors_as_documented(service: Service, api: Api) -> None:
    service.apply(read_fleet({"projects": {"a.b": {}, "a.c": {}, "z": {}}}))
    described = api("GET", "/openapi.json").json()["paths"]["/v1/projects"]["get"]["parameters"]
    (after,) = (each["schema"]["anyOf"][0] for each in described if each["name"] == "after")
    first = api("GET", "/v1/projects?limit=1").json()
    assert re.fullmatch(after["pattern"], first["next"])
    second = api("GET", "/v1/projects", params={"limit": 5, "after": first["next"]}).json()
    assert [each["name"] for each in first["projects"] + second["projects"]] == ["a.b", "a.c", "default", "z"]
    assert second["next"] is None
    assert api("GET", "/v1/projects?after=a.b").status_code == 400


def test_a_project_shows_declared_values_and_defaults(api: Api) -> None:
    assert api("GET", "/v1/projects/shop").json()["project"] == {
        "name": "shop",
        "time_zone": "Europe/Berlin",
        "windows": [{"days": ["sat"], "start": "22:00", "length": 14400.0}],
        "blackout": ["2026-12-24", "2026-12-25"],
        "rehearsal": False,
        "sees_hosts": False,
        "source": "declared",
    }
    assert api("GET", "/v1/projects/lab").json()["project"] == {
        "name": "lab",
        "time_zone": "UTC",
        "windows": [],
        "blackout": [],
        "rehearsal": True,
        "sees_hosts": False,
        "source": "declared",
    }
    assert api("GET", "/v1/projects/none").status_code == 404


def test_projects_are_listed_page_by_page(api: Api) -> None:
    first = api("GET", "/v1/projects?limit=2").json()
    assert [each["name"] for each in first["projects"]] == ["default", "lab"]
    rest = api("GET", f"/v1/projects?limit=2&after={first['next']}").json()
    assert ([each["name"] for each in rest["projects"]], rest["next"]) == (["shop"], None)


def test_a_host_lists_the_projects_of_its_machines(api: Api) -> None:
    assert api("GET", "/v1/hosts/shared").json()["host"]["projects"] == ["lab", "shop"]


def test_an_order_of_a_rehearsal_names_its_scenario(service: Service, api: Api) -> None:
    placed = api("POST", "/v1/machines/lab-0/freeze", json={**REHEARSAL, "reason": "exercise"}).json()
    assert placed["order"]["rehearsal"] == "mine"
    assert api("GET", f"/v1/orders/{placed['order']['id']}").json()["order"]["rehearsal"] == "mine"
    record = next(each for each in service.history() if each.kind == "order-placed")
    assert unmarked(record.reason) == "freeze (rehearsal of mine): exercise"
    host = api("POST", "/v1/hosts/own/maintenance", json={**REHEARSAL, "action": "reboot"}).json()
    assert host["order"]["rehearsal"] == "mine"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (
            "machines/shop-0/freeze",
            'machine "shop-0" is of project shop, which is not for rehearsals: declare `rehearsal = true` '
            "in [projects.shop] of the fleet file, and apply it",
        ),
        (
            "hosts/shared/fail",
            'host "shared" carries machines of projects that are not for rehearsals: shop-0 (shop)',
        ),
        ("hosts/shared/cordon", "shop-0 (shop)"),
        ("hosts/empty/cordon", 'host "empty" carries no machine of a project for rehearsals'),
    ],
)
def test_a_rehearsal_outside_its_project_is_refused_and_changes_nothing(
    service: Service, api: Api, path: str, why: str
) -> None:
    before = service.history()
    answer = api("POST", f"/v1/{path}", json=REHEARSAL)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "Conflict")
    assert why in answer.json()["error"]["message"]
    assert service.history() == before


# Guests and faults of a rehearsal


PATH = "/v1/projects/lab/rehearsal"
PLAYED = {
    "id": "602D9444-D2CD-49C7-8624-8643E7171297",
    "scenario": "mine",
    "machines": ["lab-0", "lab-1"],
    "faults": [{"number": 1, "kind": "429", "machines": ["lab-0"], "since": "2026-01-05T12:00:00Z"}],
}


def ends(service: Service) -> list[tuple[str, str]]:
    return [(each.by, each.reason) for each in service.history() if each.kind == "rehearsal-ended"]


def test_a_rehearsal_is_shown_with_its_faults_and_guests(api: Api) -> None:
    shown = api("PUT", PATH, json=PLAYED).json()["rehearsal"]
    assert api("GET", PATH).json()["rehearsal"] == shown
    assert shown["begun_at"] == "2026-01-05T12:00:00Z"
    assert shown["faults"] == [
        {
            "number": 1,
            "kind": "429",
            "machines": ["lab-0"],
            "since": "2026-01-05T12:00:00Z",
            "until": None,
            "calls": None,
            "delay_seconds": 120.0,
            "notice_seconds": 30.0,
            "on": True,
        }
    ]
    assert [each["machine"] for each in shown["guests"]] == ["lab-0", "lab-1"]
    assert api("DELETE", PATH).json() == {"rehearsal": shown, "called_off": []}
    assert api("DELETE", PATH).status_code == 404


@pytest.mark.parametrize(
    ("path", "changed", "status", "why"),
    [
        ("projects/shop", {}, 409, "project shop is not for rehearsals: declare `rehearsal = true`"),
        ("projects/none", {}, 404, 'project "none" does not exist'),
        ("projects/lab", {"machines": ["shop-0"], "faults": []}, 404, "shop-0"),
        ("projects/lab", {"machines": []}, 400, "machines"),
        ("projects/lab", {"id": "a b"}, 400, "id"),
        ("projects/lab", {"faults": [{"number": 1, "kind": "410"}]}, 400, "kind"),
        ("projects/lab", {"faults": [{"number": 1, "kind": "429"}] * 2}, 400, "a unique number for each"),
        (
            "projects/lab",
            {"faults": [{"number": 1, "kind": "429", "machines": ["shop-0"]}]},
            400,
            "faults[0].machines: shop-0 is not among the machines that play",
        ),
        (
            "projects/lab",
            {"faults": [{"number": 1, "kind": "429", "until": "soon"}]},
            400,
            "faults[0].until: expected a time",
        ),
    ],
)
def test_an_invalid_rehearsal_is_refused_and_changes_nothing(
    service: Service, api: Api, path: str, changed: dict[str, object], status: int, why: str
) -> None:
    before = service.history()
    answer = api("PUT", f"/v1/{path}/rehearsal", json={**PLAYED, **changed})
    assert answer.status_code == status, answer.text
    assert why in answer.json()["error"]["message"]
    assert service.history() == before
    assert api("GET", PATH).status_code == 404


def test_a_rehearsal_without_further_requests_ends_automatically(service: Service, api: Api) -> None:
    api("PUT", PATH, json=PLAYED)
    service.real += 29
    assert api("PUT", PATH, json=PLAYED).status_code == 200
    service.real += 29
    service.tick()
    assert api("GET", PATH).status_code == 200
    service.real += 2
    service.tick()
    assert api("GET", PATH).status_code == 404
    assert ends(service) == [("forewarn", "mine: operator has not renewed it for 30 s")]


def test_a_rehearsal_ended_by_a_person_does_not_begin_again(service: Service, api: Api) -> None:
    api("PUT", PATH, json=PLAYED)
    assert api("DELETE", f"{PATH}?id=other").status_code == 404
    assert api("DELETE", f"{PATH}?id={PLAYED['id']}").status_code == 200
    answer = api("PUT", PATH, json=PLAYED)
    assert answer.status_code == 409
    said = answer.json()["error"]["message"]
    assert said == "operator has ended the rehearsal of mine in project lab"


def restarted(service: Service) -> Api:
    """Restart the server with the same store."""
    service.restart()
    return Api(app_of(service))


def test_a_restart_continues_a_rehearsal_without_faults_until_they_are_set_again(
    service: Service, api: Api
) -> None:
    shown = api("PUT", PATH, json=PLAYED).json()["rehearsal"]
    service.real += 3600
    api = restarted(service)
    taken_up = api("GET", PATH).json()["rehearsal"]
    assert taken_up == {**shown, "faults": []}
    assert api("PUT", PATH, json={**PLAYED, "id": PLAYED["id"][::-1]}).status_code == 409
    assert api("PUT", PATH, json=PLAYED).json()["rehearsal"] == shown
    kinds = [record.kind for record in service.history() if record.kind.startswith("rehearsal")]
    assert kinds == ["rehearsal-begun", "rehearsal-faults", "rehearsal-faults"]


def test_a_rehearsal_without_requests_after_a_restart_ends_and_cancels_its_orders(
    service: Service, api: Api
) -> None:
    service.poll("lab-0")
    api("PUT", PATH, json=PLAYED)
    order = api("POST", "/v1/machines/lab-0/restart", json=REHEARSAL).json()["order"]["id"]
    api = restarted(service)
    service.real += 30
    service.tick()
    assert ends(service) == []
    service.real += 1
    service.tick()
    assert ends(service) == [("forewarn", "mine: operator has not renewed it for 30 s")]
    assert api("GET", f"/v1/orders/{order}").json()["order"]["state"] == "cancelled"
    assert restarted(service)("GET", PATH).status_code == 404


def test_an_ended_rehearsal_is_remembered_for_a_day_across_restarts(service: Service, api: Api) -> None:
    other = {**PLAYED, "id": PLAYED["id"][::-1]}
    api("PUT", PATH, json=PLAYED)
    api("DELETE", PATH)
    api = restarted(service)
    assert api("GET", PATH).status_code == 404
    assert api("PUT", PATH, json=PLAYED).status_code == 409
    service.real += 86_401
    assert api("PUT", PATH, json=other).status_code == 200
    api("DELETE", PATH)
    assert restarted(service)("PUT", PATH, json=PLAYED).status_code == 200


def test_a_rehearsal_can_be_ended_as_soon_as_a_server_has_started(service: Service, api: Api) -> None:
    api("PUT", PATH, json=PLAYED)
    service.close()
    service.open()
    assert Api(app_of(service))("DELETE", PATH).status_code == 200
    assert ends(service) == [("operator", "mine")]


def test_the_machines_of_a_rehearsal_stay_the_same(api: Api) -> None:
    api("PUT", PATH, json=PLAYED)
    assert api("PUT", PATH, json={**PLAYED, "machines": ["lab-0"]}).status_code == 409


def test_changes_of_faults_are_recorded_in_short_form(service: Service, api: Api) -> None:
    many = [{"number": number, "kind": "503"} for number in range(100)]
    for faults in (many, many, many[:99], [{**many[0], "delay_seconds": 3600}], []):
        assert api("PUT", PATH, json={**PLAYED, "faults": faults}).status_code == 200
    told = [each.reason for each in service.history() if each.kind == "rehearsal-faults"]
    assert told == [
        "mine: 503, 503, 503, 503, 503 and 95 more",
        "mine: 503, 503, 503, 503, 503 and 94 more",
        "mine: 503",
        "mine: no faults",
    ]


def test_faults_end_in_time_during_an_outage_of_the_store_and_the_end_is_recorded_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOCK_SECONDS", 0)
    service = Service(sqlite_url(tmp_path))
    service.apply(read_fleet(FLEET))
    api = Api(app_of(service))
    api("PUT", PATH, json=PLAYED)
    service.real += 31
    other = open_store(service.url, new_id=service.ids)
    with holding(other), pytest.raises(Unavailable):
        service.engine.tick(service.clock.now())
    other.close()
    assert api("GET", PATH).status_code == 404
    service.tick()
    assert [by for by, _ in ends(service)] == ["forewarn"]
    service.close()


def test_the_end_of_a_rehearsal_cancels_its_orders(service: Service, api: Api) -> None:
    service.poll("lab-0")
    before = api("POST", "/v1/machines/lab-1/freeze", json=REHEARSAL).json()["order"]["id"]
    service.advance(minutes=1)
    api("PUT", PATH, json=PLAYED)
    mine = api("POST", "/v1/machines/lab-0/restart", json=REHEARSAL).json()["order"]["id"]
    other = api("POST", "/v1/machines/shop-0/freeze").json()["order"]["id"]
    service.real += 31
    service.tick()
    states = [api("GET", f"/v1/orders/{id_}").json()["order"]["state"] for id_ in (before, mine, other)]
    assert states[1] == "cancelled"
    assert "cancelled" not in (states[0], states[2])


def test_any_user_of_the_project_can_end_a_rehearsal_and_its_host_orders(service: Service, api: Api) -> None:
    service.poll("lab-0")
    api("PUT", PATH, json=PLAYED)
    order = api("POST", "/v1/hosts/own/maintenance", json={**REHEARSAL, "action": "freeze"}).json()["order"]
    ended = service.within(ProjectName("lab")).rehearsals.end(ProjectName("lab"), by="lea")
    assert ended.cancelled == [order["id"]]
    assert api("GET", f"/v1/orders/{order['id']}").json()["order"]["state"] == "cancelled"


BOTH = {
    **FLEET,
    "projects": {"lab": {"rehearsal": True}, "shop": {"rehearsal": True}},
    "defaults": {"driver": "simulated"},
    "hosts": {"own": {}, "shared": {}, "empty": {}, "shops": {}},
    "machines": [
        *FLEET["machines"],  # type: ignore[misc]
        {"name": "shop-1", "project": "shop", "host": "shops"},
    ],
}
FREEZE = {**REHEARSAL, "action": "freeze"}
LAB, SHOP = ProjectName("lab"), ProjectName("shop")


def test_ending_a_rehearsal_leaves_the_orders_of_another_project_alone(service: Service, api: Api) -> None:
    """The operator runs the same scenario in both."""
    service.apply(read_fleet(BOTH))
    api("PUT", PATH, json=PLAYED)
    api("PUT", PATH.replace("lab", "shop"), json={**PLAYED, "machines": ["shop-0", "shop-1"], "faults": []})
    mine = api("POST", "/v1/hosts/own/maintenance", json=FREEZE).json()["order"]["id"]
    theirs = [
        api("POST", f"/v1/{path}", json=body).json()["order"]["id"]
        for path, body in [
            ("machines/shop-0/freeze", REHEARSAL),
            ("hosts/shops/maintenance", FREEZE),
            ("hosts/shared/maintenance", FREEZE),
        ]
    ]
    assert service.within(LAB).rehearsals.end(LAB, by="lea").cancelled == [mine]
    states = {id_: api("GET", f"/v1/orders/{id_}").json()["order"]["state"] for id_ in theirs}
    assert "cancelled" not in states.values()
    assert set(service.rehearsals.end(SHOP, by="operator").cancelled) == set(theirs)


def test_a_removed_machine_does_not_prevent_the_end_of_a_rehearsal(service: Service, api: Api) -> None:
    api("PUT", PATH, json=PLAYED)
    service.put("lab-1", host=HostName("own"))
    order = api("POST", "/v1/hosts/own/maintenance", json=FREEZE).json()["order"]["id"]
    service.delete("lab-1")
    service.real += 31
    service.tick()
    assert api("GET", PATH).status_code == 404
    assert api("GET", f"/v1/orders/{order}").json()["order"]["state"] == "cancelled"


def test_every_order_of_a_rehearsal_is_found_among_many_later_ones(
    service: Service, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_rehearsals, "PAGE", 1)
    service.apply(read_fleet(BOTH))
    api("PUT", PATH, json=PLAYED)
    mine = api("POST", "/v1/hosts/own/maintenance", json=FREEZE).json()["order"]["id"]
    for name in ("shop-0", "shop-1"):
        api("POST", f"/v1/machines/{name}/freeze")
    assert service.rehearsals.end(LAB, by="operator").cancelled == [mine]


def test_the_id_of_a_rehearsal_of_another_project_is_unknown(service: Service, api: Api) -> None:
    service.apply(read_fleet(BOTH))
    api("PUT", PATH, json=PLAYED)
    service.within(LAB).rehearsals.end(LAB, by="lea")
    answer = api("PUT", PATH.replace("lab", "shop"), json={**PLAYED, "machines": ["shop-0"], "faults": []})
    assert answer.status_code == 200


def test_a_rehearsal_ends_when_its_project_stops_allowing_rehearsals(service: Service, api: Api) -> None:
    api("PUT", PATH, json=PLAYED)
    unmarked = {**FLEET, "projects": {**FLEET["projects"], "lab": {}}}  # type: ignore[dict-item]
    service.apply(read_fleet(unmarked))
    service.tick()
    assert api("GET", PATH).status_code == 404
    assert ends(service) == [("forewarn", "mine: the project is no longer for rehearsals")]


def test_a_project_has_one_rehearsal_at_a_time(api: Api) -> None:
    api("PUT", PATH, json=PLAYED)
    other = {**PLAYED, "id": "702D9444-D2CD-49C7-8624-8643E7171297"}
    answer = api("PUT", PATH, json=other)
    assert answer.status_code == 409
    assert "or end it with `forewarn project rehearsal lab --end`" in answer.json()["error"]["message"]
    api("DELETE", PATH)
    assert api("PUT", PATH, json=other).status_code == 200
