"""Webhooks and the calendar over the operator API."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarn.wire.answers.record_answers import NewWebhookAnswer, WebhookAnswer
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
from tests.helpers.service.served import Api, app_of, check_answer, check_page, sample

URL = "https://ops.example/hook?token=x"
ID = "602D9444-D2CD-49C7-8624-8643E7171297"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(sample())
    yield service
    service.close()


@pytest.fixture
def api(service: Service) -> Api:
    return Api(app_of(service))


def test_a_webhook_is_added_with_a_secret_that_is_shown_once(service: Service, api: Api) -> None:
    answer = api("POST", "/v1/webhooks", json={"url": URL, "kinds": ["event-scheduled"]})
    assert answer.status_code == 201
    check_answer(NewWebhookAnswer, answer.json())
    webhook = answer.json()["webhook"]
    assert (webhook["url"], webhook["project"], webhook["kinds"]) == (URL, None, ["event-scheduled"])
    assert answer.json()["secret"].startswith("whsec_")
    listed = api("GET", "/v1/webhooks")
    check_page(WebhookAnswer, listed.json())
    assert listed.json() == {"webhooks": [webhook], "next": None}
    assert api("GET", f"/v1/webhooks/{webhook['id'].lower()}").json() == {"webhook": webhook}
    # The history shows the host of the URL, not the token in its path.
    assert service.history()[-1].reason == f"webhook {webhook['id']} to ops.example"


def test_a_secret_may_be_given(api: Api) -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    assert api("POST", "/v1/webhooks", json={"url": URL, "secret": secret}).json()["secret"] == secret


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "url: this is missing"),
        ({"url": "ftp://ops.example/"}, "url: expected http://"),
        ({"url": "https://"}, "url: expected http://"),
        ({"url": "http://[::1/"}, "url: expected http://"),
        ({"url": "http://a:99999/"}, "url: expected http://"),
        ({"url": "http://a b/"}, "url: expected http://"),
        ({"url": "http://me:secret@ops.example/"}, "url: expected no user"),
        ({"url": URL + "#part"}, "url: expected no user and no fragment"),
        ({"url": "http://a/" + "a" * 2000}, "url: "),
        ({"url": URL, "secret": "hunter2"}, "secret: expected whsec_"),
        ({"url": URL, "secret": "whsec_AAAA"}, "secret: expected whsec_"),
        ({"url": URL, "kinds": ["lost"]}, "kinds[0]: expected order-placed"),
        ({"url": URL, "kinds": ["webhook-failing"]}, "kinds: webhook-failing is never pushed"),
        ({"url": URL, "kind": []}, "kind: there is no such key"),
        ({"url": URL, "project": "a b"}, "project: expected a name"),
    ],
)
def test_an_invalid_webhook_is_refused(api: Api, body: dict[str, object], message: str) -> None:
    answer = api("POST", "/v1/webhooks", json=body)
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]
    assert "hunter2" not in answer.text
    assert api("GET", "/v1/webhooks").json()["webhooks"] == []


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", f"/v1/webhooks/{ID}", None),
        ("GET", "/v1/webhooks/x", None),
        ("DELETE", f"/v1/webhooks/{ID}", None),
        ("POST", f"/v1/webhooks/{ID}/test", None),
        ("POST", "/v1/webhooks", {"url": URL, "project": "nobody"}),
        ("GET", "/v1/calendar.ics?project=unknown", None),
    ],
)
def test_an_unknown_webhook_or_project_is_not_found(api: Api, method: str, path: str, body: object) -> None:
    assert api(method, path, json=body).status_code == 404


def test_webhooks_are_listed_by_project_and_removed(service: Service, api: Api) -> None:
    mine = api("POST", "/v1/webhooks", json={"url": URL, "project": "default"}).json()["webhook"]
    all_ = api("POST", "/v1/webhooks", json={"url": URL}).json()["webhook"]
    assert [each["id"] for each in api("GET", "/v1/webhooks?project=default").json()["webhooks"]] == [
        mine["id"]
    ]
    assert api("DELETE", f"/v1/webhooks/{mine['id']}").status_code == 200
    assert [each["id"] for each in api("GET", "/v1/webhooks").json()["webhooks"]] == [all_["id"]]
    record = service.history()[-1]
    # The project does not learn of an operator's webhook that received its records.
    assert (record.kind, record.by, record.project) == ("webhook-removed", "operator", None)


def test_the_calendar_has_the_events_that_guests_see(service: Service, api: Api) -> None:
    event = api("POST", "/v1/machines/web-0/freeze").json()["event"]
    answer = api("GET", "/v1/calendar.ics?project=default")
    assert answer.headers["content-type"] == "text/calendar; charset=utf-8"
    lines = answer.text.split("\r\n")
    assert f"UID:{event['id']}" in lines
    assert "SUMMARY:Freeze of web-0" in lines
    assert "DTSTART:20260105T121500Z" in lines
    assert api("GET", "/v1/calendar.ics").text.count("BEGIN:VEVENT") == 1
    service.advance(days=1)
    assert "BEGIN:VEVENT" not in api("GET", "/v1/calendar.ics").text
