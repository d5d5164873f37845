"""The overview equals the answers of the single endpoints."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forewarn.api.endpoints import overview_endpoints
from forewarn.core.basic_types import Action
from forewarn.server.threads.operator_server import operator_app
from forewarn.wire.answers.overview_answers import OverviewAnswer
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
from tests.helpers.service.served import Api, app_of, check_answer
from tests.helpers.service.tenants import A_USER, OPERATOR, bearer, let_in, two_projects

LISTS = {
    "machines": "machines?limit=1000",
    "groups": "groups?limit=1000",
    "projects": "projects?limit=1000",
    "events": "events?limit=1000",
    "orders": "orders?limit=1000&open=true",
    "hosts": "hosts?limit=1000",
    "rollouts": "rollouts?limit=1000&open=true",
    "holds": "holds",
    "drivers": "drivers",
}
OF_THE_FLEET = ("hosts", "rollouts", "holds", "drivers")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(two_projects())
    for name in ("a-0", "b-0"):
        service.poll(name)
        service.order(name, Action.RESTART)
    let_in(service)
    yield service
    service.close()


@pytest.fixture
def api(service: Service) -> Api:
    return Api(operator_app(app_of(service), names=()))


def shown(api: Api, path: str, secret: str) -> Any:
    answer = api("GET", f"/v1/{path}", headers=bearer(secret))
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_overview_equals_the_lists_of_the_single_calls(api: Api) -> None:
    overview = shown(api, "overview", OPERATOR)
    check_answer(OverviewAnswer, overview)
    assert overview["clock"] == shown(api, "clock", OPERATOR)
    assert overview["summary"] == shown(api, "summary", OPERATOR)["summary"]
    for name, path in LISTS.items():
        assert overview[name] == shown(api, path, OPERATOR)[name]
    assert len(overview["events"]) == 2


def test_a_tenant_sees_its_own_resources_and_nothing_of_the_fleet(api: Api) -> None:
    overview = shown(api, "overview", A_USER)
    assert {name for name, value in overview.items() if value is None} == set(OF_THE_FLEET)
    assert overview["machines"] == shown(api, LISTS["machines"], A_USER)["machines"]
    assert {each["project"] for each in overview["events"]} == {"a"}


def test_a_list_that_is_too_long_is_null(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview_endpoints, "MAX_LIMIT", 1)
    overview = shown(api, "overview", OPERATOR)
    assert overview["machines"] is None
    assert overview["events"] is None
    assert overview["summary"] == shown(api, "summary", OPERATOR)["summary"]


@pytest.mark.parametrize(("accepted", "sent"), [("gzip", "gzip"), ("identity", None)])
def test_a_long_answer_is_compressed_for_clients_that_can_unpack_it(
    api: Api, accepted: str, sent: str | None
) -> None:
    headers = {**bearer(OPERATOR), "Accept-Encoding": accepted}
    answer = api("GET", "/v1/overview", headers=headers)
    assert answer.headers.get("content-encoding") == sent
    assert len(answer.json()["machines"]) > 2
    assert "content-encoding" not in api("GET", "/v1/clock", headers=headers).headers
