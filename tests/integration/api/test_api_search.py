"""Searches of the history see only the texts that the caller may read."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forewarn.api.endpoints import history_endpoints
from forewarn.control import views
from forewarn.core.basic_types import Action, Work
from forewarn.core.orders.order_requests import OrderRequest
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
from tests.helpers.service.served import Api, app_of
from tests.helpers.service.tenants import A_USER, OPERATOR, bearer, let_in, two_projects


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(two_projects())
    let_in(service)
    for name in ("a-0", "b-0"):
        service.poll(name)
    service.host_order("host-2", Action.MAINTENANCE, Work.FREEZE)
    asked = OrderRequest(by="olga", reason="Swap the Board of host-1, says olga")
    service.orders.order_machine("a-0", Action.RESTART, asked)
    service.orders.order_machine("b-0", Action.RESTART, replace(asked, by="bert", reason="Bert wants it"))
    service.advance(hours=1)
    yield service
    service.close()


@pytest.fixture
def api(service: Service) -> Api:
    return Api(app_of(service))


def search_history(api: Api, secret: str, **wanted: Any) -> list[dict[str, Any]]:
    """Read all pages."""
    found: list[dict[str, Any]] = []
    after = None
    while True:
        page = {} if after is None else {"after": after}
        answer = api("GET", "/v1/history", params={**wanted, **page}, headers=bearer(secret))
        assert answer.status_code == 200, answer.text
        found += answer.json()["records"]
        after = answer.json()["next"]
        if after is None:
            return found


TEXTS = ("kind", "machine", "host", "group", "by", "reason", "event", "order")


def having(records: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    return [
        each for each in records if any(text.casefold() in (each[name] or "").casefold() for name in TEXTS)
    ]


# Hidden names, their replacements, and parts of visible texts.
WORDS = (
    "host-1",
    "HOST-2",
    "host",
    "olga",
    "Bert",
    "operator",
    "a host",
    "test",
    "a-0",
    "b-0",
    "board",
    "started",
)
WORDS = (*WORDS, "a-web", "b-web", "default", "00000000-0000", "standalone", "%", "_", "nothing has this")


@pytest.mark.parametrize("secret", [OPERATOR, A_USER], ids=["operator", "user"])
def test_a_search_finds_records_that_show_the_text(
    api: Api, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "BATCH", 10)
    monkeypatch.setattr(views, "PROJECT_BATCH", 10)
    monkeypatch.setattr(history_endpoints, "MOST_BATCHES", 2)
    everything = search_history(api, secret)
    for text in WORDS:
        assert search_history(api, secret, text=text) == having(everything, text), text
        by = [each for each in everything if (each["by"] or "").casefold() == text.casefold()]
        assert search_history(api, secret, by=text) == by, text
    oldest_first = search_history(api, secret, text="started", above=0, limit=1)
    assert oldest_first == having(everything, "started")[::-1]


def test_a_project_learns_of_no_operator_and_no_host_by_searching(api: Api) -> None:
    assert having(search_history(api, OPERATOR), "olga")
    for hidden in ("olga", "host-1", "host-2", "b-0", "bert", "Bert wants it"):
        assert search_history(api, A_USER, text=hidden) == search_history(api, A_USER, by=hidden) == []
    assert {each["by"] for each in search_history(api, A_USER, by="operator")} == {"operator"}
    refused = [
        api("GET", f"/v1/history?host={name}", headers=bearer(A_USER)) for name in ("host-1", "nowhere")
    ]
    assert [each.status_code for each in refused] == [403, 403]
    assert refused[0].text == refused[1].text
    assert api("GET", "/v1/history?group=b-web", headers=bearer(A_USER)).status_code == 404


def test_records_are_listed_by_host_group_and_time(api: Api) -> None:
    everything = search_history(api, OPERATOR)
    for name, value in (("host", "host-2"), ("group", "a-web")):
        found = search_history(api, OPERATOR, **{name: value})
        assert found == [each for each in everything if each[name] == value]
        assert found
    noon = "2026-01-05T12:00:01Z"
    assert search_history(api, OPERATOR, until=noon) == [each for each in everything if each["at"] < noon]
    assert search_history(api, OPERATOR, until=noon, since="2026-01-05T12:00:01Z") == []
    assert search_history(api, OPERATOR, until="2030-01-01T00:00:00Z") == everything
    for query in ("host=nowhere", "group=nothing"):
        assert api("GET", f"/v1/history?{query}", headers=bearer(OPERATOR)).status_code == 404


def test_a_search_is_limited_and_returns_a_cursor(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "BATCH", 3)
    monkeypatch.setattr(views, "PROJECT_BATCH", 3)
    monkeypatch.setattr(history_endpoints, "MOST_BATCHES", 2)
    numbers = [each["number"] for each in search_history(api, OPERATOR)]
    answer = api("GET", "/v1/history?text=nothing has this", headers=bearer(OPERATOR)).json()
    assert (answer["records"], answer["next"]) == ([], str(numbers[5]))
