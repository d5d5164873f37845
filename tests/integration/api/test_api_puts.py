"""PUT and DELETE of single hosts, groups and projects."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forewarn.wire.answers.fleet_answers import GroupAnswer, HostWithMachinesAnswer, ProjectAnswer
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
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


def put(api: Api, path: str, **body: Any) -> tuple[int, dict[str, Any]]:
    answer = api("PUT", f"/v1/{path}", json=body)
    return answer.status_code, answer.json()


def refusal(api: Api, method: str, path: str, **body: Any) -> tuple[int, str]:
    answer = api(method, f"/v1/{path}", json=body if method == "PUT" else None)
    return answer.status_code, answer.json()["error"]["message"]


def records(api: Api, kind: str) -> int:
    return len(api("GET", f"/v1/history?kind={kind}").json()["records"])


def test_a_host_is_put_and_put_again(api: Api) -> None:
    body = {"driver": "external", "uri": "qemu+ssh://kvm/system", "resources": {"vcpus": 8}, "at-once": 3}
    status, answer = put(api, "hosts/kvm", **body)
    check_answer(HostWithMachinesAnswer, answer)
    assert (status, answer["host"]["source"], answer["host"]["at_once"]) == (201, "put", 3)
    assert put(api, "hosts/kvm", **body) == (200, answer)
    status, changed = put(api, "hosts/kvm", at_once=5)
    assert (status, changed["host"]["at_once"], changed["host"]["uri"]) == (200, 5, "qemu+ssh://kvm/system")
    assert records(api, "host-changed") == 1


def test_bare_metal_is_put_with_its_machine(api: Api) -> None:
    assert put(api, "hosts/gpu01", bare_metal=True)[0] == 201
    machine = api("GET", "/v1/machines/gpu01").json()["machine"]
    assert (machine["host"], machine["mobility"], machine["source"]) == ("gpu01", "none", "put")


def test_a_group_is_put_and_put_again(api: Api) -> None:
    status, answer = put(api, "groups/db", kind="scale-set", policy={"notice": "1h", "gang": True})
    check_answer(GroupAnswer, answer)
    assert (status, answer["group"]["kind"], answer["group"]["source"]) == (201, "scale-set", "put")
    status, answer = put(api, "groups/db", **{"update-domains": 3, "policy": {"auto-approve": True}})
    policy = answer["group"]["policy"]
    assert (status, answer["group"]["update_domains"]) == (200, 3)
    assert (policy["notice"], policy["gang"], policy["auto_approve"]) == (3600.0, True, True)


def test_a_group_moves_to_another_project_with_its_machines(api: Api) -> None:
    assert put(api, "projects/shop", rehearsal=True)[0] == 201
    assert put(api, "groups/web", project="shop")[0] == 200
    machine = api("GET", "/v1/machines/web-0").json()["machine"]
    assert (machine["project"], machine["source"]) == ("shop", "declared")


def test_a_project_is_put_and_put_again(api: Api) -> None:
    windows = [{"days": ["sat"], "start": "22:00", "length": "4h"}]
    status, answer = put(api, "projects/shop", **{"time-zone": "Europe/Berlin", "windows": windows})
    check_answer(ProjectAnswer, answer)
    assert (status, answer["project"]["source"]) == (201, "put")
    status, answer = put(api, "projects/shop", sees_hosts=True)
    assert (status, answer["project"]["time_zone"], answer["project"]["sees_hosts"]) == (
        200,
        "Europe/Berlin",
        True,
    )


def test_a_put_survives_applying_the_same_file(service: Service, api: Api) -> None:
    put(api, "hosts/kvm")
    put(api, "projects/shop")
    put(api, "groups/db", kind="scale-set", project="shop")
    api("PUT", "/v1/machines/db-0", json={"host": "kvm", "group": "db"})
    assert service.apply(sample()) == ()
    assert api("GET", "/v1/machines/db-0").json()["machine"]["source"] == "put"


def test_a_resource_in_a_file_becomes_declared(api: Api) -> None:
    put(api, "hosts/kvm")
    whole = api("GET", "/v1/fleet").json()
    changes = api("PUT", "/v1/fleet", json=whole).json()["changes"]
    assert changes == ["~ host kvm: source put to declared"]
    del whole["fleet"]["hosts"]["kvm"]
    assert api("PUT", "/v1/fleet", json=whole).json()["changes"] == ["- host kvm"]


def test_a_put_resource_can_be_deleted(api: Api) -> None:
    for path, body in (("hosts/kvm", {}), ("groups/db", {"kind": "scale-set"}), ("projects/shop", {})):
        put(api, path, **body)
        assert api("DELETE", f"/v1/{path}").status_code == 200
        assert api("GET", f"/v1/{path}").status_code == 404
        assert api("DELETE", f"/v1/{path}").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("PUT", "hosts/kvm", {"driver": "libvrt"}, 400, 'host "kvm": driver: expected external or simulated'),
        ("PUT", "hosts/kvm", {"state": "ok"}, 400, "state: there is no such field"),
        ("PUT", "hosts/host-1", {"bare_metal": True}, 409, "hosts.host-1: bare-metal: it still carries"),
        ("PUT", "groups/db", {}, 400, "kind: expected cloud-service, availability-set or scale-set"),
        ("PUT", "groups/db", {"kind": "scale-set", "project": "x"}, 400, 'group "db": project: expected one'),
        ("PUT", "groups/web", {"update_domains": 1}, 409, 'group "web": update-domains: expected at least 3'),
        ("PUT", "groups/web", {"policy": {"budget": 6}}, 409, 'group "web": policy.budget: expected fewer'),
        ("PUT", "projects/shop", {"time_zone": "Mars"}, 400, "time_zone: expected an IANA"),
        ("DELETE", "hosts/host-1", {}, 409, 'hosts: "host-1" still carries'),
        ("DELETE", "groups/web", {}, 409, 'groups: "web" still has "web-'),
        ("DELETE", "projects/default", {}, 409, 'project "default" cannot be removed'),
    ],
)
def test_an_invalid_put_is_refused(
    api: Api, method: str, path: str, body: dict[str, Any], status: int, said: str
) -> None:
    found, message = refusal(api, method, path, **body)
    assert (found, message[: len(said)]) == (status, said)


def test_a_project_with_a_group_is_not_removed(api: Api) -> None:
    put(api, "projects/shop")
    put(api, "groups/db", kind="scale-set", project="shop")
    assert refusal(api, "DELETE", "projects/shop") == (
        409,
        'project "shop" still has group "db": remove it, or keep the project',
    )


NEW = {"If-None-Match": "*"}
# An existing resource, the body of a form that creates one, and the name in the error.
EXISTING = (
    ("hosts/host-1", {"uri": "qemu+ssh://other/system"}, 'host "host-1" exists already'),
    (
        "groups/web",
        {"kind": "scale-set", "project": "lab"},
        'group "web" exists already (in project default)',
    ),
    ("projects/lab", {"sees_hosts": True}, 'project "lab" exists already'),
    (
        "machines/WEB-0",
        {"host": "host-3"},
        'machine "web-0" exists already (in project default, group web, on host-1)',
    ),
)


@pytest.mark.parametrize(("path", "body", "named"), EXISTING)
def test_if_none_match_does_not_change_an_existing_resource(
    api: Api, path: str, body: dict[str, Any], named: str
) -> None:
    put(api, "projects/lab")
    before = api("GET", f"/v1/{path}").json()
    refused = api("PUT", f"/v1/{path}", json=body, headers=NEW)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "AlreadyExists")
    assert refused.json()["error"]["message"].startswith(named)
    assert "choose another name, or change the existing one" in refused.json()["error"]["message"]
    assert api("GET", f"/v1/{path}").json() == before


def test_if_none_match_creates_a_new_resource(api: Api) -> None:
    for path, body in (
        ("hosts/kvm", {}),
        ("projects/lab", {}),
        ("groups/db", {"kind": "scale-set", "project": "lab"}),
        ("machines/web-0", {"group": "db", "host": "kvm"}),  # project default has the same name
    ):
        assert api("PUT", f"/v1/{path}", json=body, headers=NEW).status_code == 201
    assert api("GET", "/v1/machines/web-0?project=lab").json()["machine"]["group"] == "db"
    assert api("GET", "/v1/machines/web-0?project=default").json()["machine"]["group"] == "web"


@pytest.mark.parametrize(
    ("path", "mine", "theirs"),
    [
        ("hosts/host-1", {"at_once": 2}, {"uri": "qemu+ssh://other/system"}),
        ("groups/web", {"policy": {"notice": "1h"}}, {"policy": {"budget": 1}}),
        ("projects/default", {"time_zone": "Europe/Berlin"}, {"blackout": ["2026-12-24"]}),
        ("machines/web-0", {"size": "large"}, {"host": "host-3"}),
    ],
)
def test_a_change_based_on_an_old_version_is_refused(
    api: Api, path: str, mine: dict[str, Any], theirs: dict[str, Any]
) -> None:
    tag = api("GET", f"/v1/{path}").headers["ETag"]
    assert put(api, path, **theirs)[0] == 200
    refused = api("PUT", f"/v1/{path}", json=mine, headers={"If-Match": tag})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "Changed")
    assert "read it again" in refused.json()["error"]["message"]
    now = api("GET", f"/v1/{path}").headers["ETag"]
    # A proxy that compresses answers makes a tag weak.
    saved = api("PUT", f"/v1/{path}", json=mine, headers={"If-Match": f"W/{now}"})
    assert saved.status_code == 200
    assert saved.headers["ETag"] == api("GET", f"/v1/{path}").headers["ETag"] != now


def test_an_entity_tag_depends_only_on_the_declaration(api: Api) -> None:
    tags = [api("GET", f"/v1/{path}").headers["ETag"] for path in ("machines/web-0", "groups/web")]
    api("POST", "/v1/machines/web-0/restart")
    assert [api("GET", f"/v1/{path}").headers["ETag"] for path in ("machines/web-0", "groups/web")] == tags


def test_if_match_does_not_create_a_removed_resource(api: Api) -> None:
    put(api, "groups/db", kind="scale-set")
    tag = api("GET", "/v1/groups/db").headers["ETag"]
    api("DELETE", "/v1/groups/db")
    for condition in (tag, "*"):
        refused = api("PUT", "/v1/groups/db", json={"kind": "scale-set"}, headers={"If-Match": condition})
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "Changed")
    assert api("GET", "/v1/groups/db").status_code == 404


@pytest.mark.parametrize(
    "headers",
    [{"If-None-Match": '"a"'}, {"If-Match": "a"}, {"If-Match": '"a"', "If-None-Match": "*"}],
    ids=str,
)
def test_a_malformed_condition_is_refused(api: Api, headers: dict[str, str]) -> None:
    refused = api("PUT", "/v1/groups/web", json={}, headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "Invalid")
    assert "If-" in refused.json()["error"]["message"]
