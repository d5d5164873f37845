"""Stream, webhooks and calendar for users of a project: only its own records and events."""

from base64 import b64encode
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from forewarn.api.services import ApiSettings
from forewarn.control.webhook_use_cases import MOST_OF_A_PROJECT
from forewarn.core.access import Grant, Role
from forewarn.core.basic_types import DEFAULT_PROJECT
from forewarn.core.webhook_rules import TRIES_BEFORE_REPORTING
from tests.helpers.database.stores import sqlite_url
from tests.helpers.programs.follower import Follower
from tests.helpers.programs.process import operator_client
from tests.helpers.service.harness import Service
from tests.helpers.service.served import Api, app_of, serving
from tests.helpers.service.tenants import (
    A_USER,
    A_VIEWER,
    B_USER,
    OPERATOR,
    VIEWER,
    A,
    bearer,
    fleet_of,
    let_in,
    two_projects,
)

URL = "https://hooks.example/services/T0/x"
INSIDE = "https://siem.inside.corp/"


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


def served(service: Service) -> AbstractContextManager[str]:
    # Heartbeats advance a follower past records of other projects.
    return serving(app_of(service, settings=ApiSettings(heartbeat=0.05)))


def as_(api: Api, secret: str, method: str, path: str, **more: Any) -> Any:
    """Send a request that must succeed."""
    answer = api(method, path, headers=bearer(secret), **more)
    assert answer.is_success, answer.text
    return answer.json() if "json" in answer.headers["content-type"] else answer.text


def history(api: Api, secret: str, query: str = "") -> list[dict[str, Any]]:
    """All records that a caller may see, oldest first."""
    found: list[dict[str, Any]] = as_(api, secret, "GET", f"/v1/history?limit=1000{query}")["records"]
    return found[::-1]


def disturb(url: str) -> None:
    """Cause records of each project, and of none."""
    with operator_client(url) as client:
        client.headers.update(bearer(OPERATOR))
        for path, body in (
            ("hosts/host-1/maintenance", {"action": "freeze"}),
            ("machines/a-1/restart", None),
            ("machines/b-1/restart", None),
            ("hosts/host-3/cordon", None),
            ("clock/advance", {"seconds": 3600}),
        ):
            assert client.post(f"/v1/{path}", json=body).status_code in (200, 202)


# The stream


@pytest.mark.parametrize("secret", [A_VIEWER, A_USER])
def test_the_stream_of_a_project_equals_its_history(service: Service, api: Api, secret: str) -> None:
    with served(service) as url, Follower(url, "?since=0", token=secret) as follower:
        disturb(url)
        follower.wait_for(service.records.newest())
        assert follower.records == history(api, secret)
    assert {record["project"] for record in follower.records} == {"a"}
    assert not any("b-" in str(record) for record in follower.records)


def test_no_record_of_a_project_is_lost_over_reconnects(service: Service, api: Api) -> None:
    with served(service) as url, Follower(url, "?since=0", token=A_VIEWER) as follower:
        for _ in range(5):
            disturb(url)
            follower.disconnect()
            disturb(url)
            follower.resume()
        follower.wait_for(service.records.newest())
        assert follower.records == history(api, A_VIEWER)


def test_an_operator_may_follow_one_project(service: Service, api: Api) -> None:
    with served(service) as url, Follower(url, "?since=0&project=a", token=OPERATOR) as follower:
        disturb(url)
        follower.wait_for(service.records.newest())
        assert follower.numbers == [each["number"] for each in history(api, A_VIEWER)]


def test_a_machine_name_means_the_callers_own_machine(service: Service, api: Api) -> None:
    with served(service) as url, Follower(url, "?since=0&machine=spot", token=A_USER) as follower:
        disturb(url)
        follower.wait_for(service.records.newest())
        assert {record["project"] for record in follower.records} == {"a"}
        assert follower.records == history(api, A_USER, "&machine=spot")


def test_a_stream_ends_with_its_token(service: Service, api: Api) -> None:
    with served(service) as url, Follower(url, token=A_VIEWER) as follower:
        with operator_client(url) as client:
            client.headers.update(bearer(OPERATOR))
            assert client.post("/v1/tokens/anna-reads/revoke").status_code == 200
            client.post("/v1/machines/a-0/restart")
        follower.wait_for_the_end()
        assert follower.whole
        assert follower.records == []


def test_a_stream_ends_when_its_token_expires(service: Service) -> None:
    wanted = {"name": "temp", "role": "viewer", "project": "a", "expires_seconds": 60}
    with served(service) as url, operator_client(url) as client:
        client.headers.update(bearer(OPERATOR))
        secret = client.post("/v1/tokens", json=wanted).json()["secret"]
        with Follower(url, token=secret) as follower:
            client.post("/v1/clock/advance", json={"seconds": 60})
            follower.wait_for_the_end()
            assert follower.whole


# The calendar


def entries(text: str) -> int:
    return text.count("BEGIN:VEVENT")


def test_the_calendar_has_the_events_of_a_project(api: Api) -> None:
    as_(api, OPERATOR, "POST", "/v1/hosts/host-1/maintenance", json={"action": "freeze"})
    mine = as_(api, A_VIEWER, "GET", "/v1/calendar.ics")
    assert entries(mine) == 1
    assert "SUMMARY:Freeze of a-0" in mine
    assert "NAME:forewarn: a" in mine
    assert "b-" not in mine
    assert as_(api, OPERATOR, "GET", "/v1/calendar.ics?project=a") == mine
    assert entries(as_(api, OPERATOR, "GET", "/v1/calendar.ics")) == 2


def test_a_calendar_program_subscribes_with_a_password(api: Api) -> None:
    given = b64encode(f"calendar:{A_VIEWER}".encode()).decode()
    answer = api("GET", "/v1/calendar.ics", headers={"Authorization": f"Basic {given}"})
    assert (answer.status_code, entries(answer.text)) == (200, 0)


# Webhooks


def ids(api: Api, secret: str, query: str = "") -> list[str]:
    return [each["id"] for each in as_(api, secret, "GET", f"/v1/webhooks{query}")["webhooks"]]


def test_users_of_a_project_manage_their_own_webhooks(service: Service, api: Api) -> None:
    mine = as_(api, A_USER, "POST", "/v1/webhooks", json={"url": URL})["webhook"]
    assert (mine["project"], mine["owner"], mine["by"]) == ("a", "a", "anna")
    named = as_(api, A_USER, "POST", "/v1/webhooks", json={"url": URL, "project": "a"})["webhook"]
    theirs = as_(api, B_USER, "POST", "/v1/webhooks", json={"url": URL})["webhook"]
    operators = as_(api, OPERATOR, "POST", "/v1/webhooks", json={"url": URL, "project": "a"})["webhook"]
    assert (operators["project"], operators["owner"]) == ("a", None)
    assert ids(api, A_USER) == [mine["id"], named["id"]]
    assert ids(api, B_USER) == [theirs["id"]]
    assert ids(api, OPERATOR) == [each["id"] for each in (mine, named, theirs, operators)]
    assert ids(api, OPERATOR, "?project=a") == [each["id"] for each in (mine, named, operators)]
    as_(api, OPERATOR, "DELETE", f"/v1/webhooks/{named['id']}")
    assert ids(api, A_USER) == [mine["id"]]


def test_a_webhook_of_another_project_is_unknown(api: Api) -> None:
    there, nowhere = (
        api("POST", "/v1/webhooks", json={"url": URL, "project": name}, headers=bearer(A_USER))
        for name in ("b", "z")
    )
    assert (there.status_code, nowhere.status_code) == (404, 404)
    assert there.text.replace('\\"b\\"', "") == nowhere.text.replace('\\"z\\"', "")
    # Without a name, it does not list all webhooks either.
    assert as_(api, A_USER, "POST", "/v1/webhooks", json={"url": URL})["webhook"]["project"] == "a"


def test_records_about_webhooks_of_operators_are_hidden_from_the_project(service: Service, api: Api) -> None:
    theirs = as_(api, OPERATOR, "POST", "/v1/webhooks", json={"url": INSIDE, "project": "a"})["webhook"]
    for _ in range(TRIES_BEFORE_REPORTING):
        service.deliveries.failed(theirs["id"], "no answer", number=theirs["delivered"], wait=60)
    service.deliveries.delivered(theirs["id"], theirs["delivered"] + 1)
    as_(api, OPERATOR, "DELETE", f"/v1/webhooks/{theirs['id']}")
    mine = as_(api, A_USER, "POST", "/v1/webhooks", json={"url": URL})["webhook"]
    told = [each for each in history(api, A_USER) if each["kind"].startswith("webhook-")]
    assert [(each["kind"], each["reason"]) for each in told] == [
        ("webhook-added", f"webhook {mine['id']} to hooks.example")
    ]
    kinds = [each["kind"] for each in history(api, OPERATOR) if theirs["id"] in (each["reason"] or "")]
    assert kinds == ["webhook-added", "webhook-failing", "webhook-recovered", "webhook-removed"]


def test_the_backlog_of_a_webhook_counts_only_records_of_its_project(api: Api) -> None:
    mine = as_(api, A_USER, "POST", "/v1/webhooks", json={"url": URL})["webhook"]
    as_(api, OPERATOR, "POST", "/v1/machines/b-0/restart")
    as_(api, OPERATOR, "POST", "/v1/hosts/host-3/cordon")
    assert as_(api, A_USER, "GET", f"/v1/webhooks/{mine['id']}")["webhook"]["behind"] == 0
    as_(api, OPERATOR, "POST", "/v1/machines/a-0/restart")
    since = [record for record in history(api, A_USER) if record["number"] > mine["delivered"]]
    assert as_(api, A_USER, "GET", f"/v1/webhooks/{mine['id']}")["webhook"]["behind"] == len(since) > 0


def test_the_number_of_webhooks_of_one_project_is_limited(api: Api) -> None:
    for _ in range(MOST_OF_A_PROJECT):
        as_(api, A_USER, "POST", "/v1/webhooks", json={"url": URL})
    refused = api("POST", "/v1/webhooks", json={"url": URL}, headers=bearer(A_USER))
    assert refused.status_code == 409
    assert "remove one first" in refused.text
    as_(api, B_USER, "POST", "/v1/webhooks", json={"url": URL})


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8170/", "http://localhost/", "http://[::1]/", "http://169.254.169.254/"]
)
def test_an_internal_address_is_refused_at_once(api: Api, url: str) -> None:
    refused = api("POST", "/v1/webhooks", json={"url": url}, headers=bearer(A_USER))
    assert refused.status_code == 400
    assert "expected a public address" in refused.json()["error"]["message"]
    as_(api, OPERATOR, "POST", "/v1/webhooks", json={"url": url, "project": "a"})


# Revoked tokens and removed projects


def test_revoking_a_token_warns_about_its_webhooks(service: Service, api: Api) -> None:
    mine = as_(api, A_USER, "POST", "/v1/webhooks", json={"url": URL})["webhook"]
    revoked = as_(api, OPERATOR, "POST", "/v1/tokens/anna/revoke")
    (warning,) = revoked["warnings"]
    assert warning.startswith(f"webhook {mine['id']} to hooks.example was added with it and stays active")
    assert ids(api, OPERATOR) == [mine["id"]]
    assert as_(api, OPERATOR, "POST", "/v1/tokens/bert/revoke")["warnings"] == []


def test_revoking_the_last_operator_token_warns(service: Service, api: Api) -> None:
    life = Grant(name="otto", role=Role.OPERATOR)
    service.tokens.create(life, by="test")
    assert as_(api, OPERATOR, "POST", "/v1/tokens/otto/revoke")["warnings"] == []
    (warning,) = as_(api, OPERATOR, "POST", "/v1/tokens/olga/revoke")["warnings"]
    assert "no operator token is left" in warning
    assert "--database" in warning


def test_tokens_and_webhooks_are_removed_with_their_project(service: Service, api: Api) -> None:
    as_(api, A_USER, "POST", "/v1/webhooks", json={"url": URL})
    theirs = as_(api, B_USER, "POST", "/v1/webhooks", json={"url": URL})["webhook"]
    kept = as_(api, OPERATOR, "POST", "/v1/webhooks", json={"url": URL, "project": "b"})["webhook"]
    rung: list[bool] = []
    with service.webhooks_changed.listening(lambda: rung.append(True)):
        planned = service.fleet.declarations.changes(fleet_of(A), by="test")
        assert planned[-2:] == ("- token bert (user of b)", f"- webhook {theirs['id']} to hooks.example")
        assert rung == []
        assert service.apply(fleet_of(A)) == planned
    assert rung == [True]
    assert kept["id"] in ids(api, OPERATOR)
    assert theirs["id"] not in ids(api, OPERATOR)
    # Another team gets the name. Tokens of the former project are refused.
    service.apply(two_projects())
    assert Api(app_of(service))("GET", "/v1/machines", headers=bearer(B_USER)).status_code == 401
    reasons = [record.reason for record in service.history() if record.kind.startswith("token-revoked")]
    assert reasons == ["bert (user of b): its project is removed"]


def test_the_default_project_cannot_be_removed(service: Service) -> None:
    service.apply(fleet_of(A, DEFAULT_PROJECT))
    service.tokens.create(Grant(name="dora", role=Role.USER, project=DEFAULT_PROJECT), by="test")
    service.within(DEFAULT_PROJECT).webhooks.add(URL, project=None, kinds=(), secret=None, by="dora")
    changes = service.apply(fleet_of(A))
    assert "- project default" in changes
    assert not any("token" in line or "webhook" in line for line in changes)


@pytest.mark.parametrize("secret", [VIEWER, A_VIEWER])
def test_a_viewer_cannot_list_webhooks(api: Api, secret: str) -> None:
    as_(api, A_USER, "POST", "/v1/webhooks", json={"url": URL})
    answer = api("GET", "/v1/webhooks", headers=bearer(secret))
    assert answer.status_code == 403
    assert "hooks.example" not in answer.text
