"""The audit log: caller, address, request and result of each change."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
from tests.helpers.service.served import Api, app_of
from tests.helpers.service.tenants import A_USER, A_VIEWER, OPERATOR, bearer, let_in, two_projects
from tests.integration.api.test_api_access import BODIES, CALLS, prepared


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


@pytest.fixture(autouse=True)
def audited(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "forewarn.audit")


def fields(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    said = [each for each in caplog.records if each.name == "forewarn.audit"]
    caplog.clear()
    return [each.fields for each in said]  # type: ignore[attr-defined]


def test_a_change_is_logged_with_caller_address_request_and_result(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    api("POST", "/v1/machines/a-0/restart?project=a", headers=bearer(A_USER))
    api("POST", "/v1/machines/a-0/restart", headers=bearer(A_USER))
    api("POST", "/v1/hosts/host-1/cordon", headers=bearer(A_VIEWER))
    api("PUT", "/v1/machines/a-1", content="{", headers=bearer(OPERATOR))
    done, twice, refused, broken = fields(caplog)
    assert done == {
        "who": "anna",
        "from": "127.0.0.1",
        "what": "POST /v1/machines/a-0/restart?project=a",
        "result": "done",
        "role": "user",
        "project": "a",
        "status": 202,
    }
    assert [(each["who"], each["result"], each["status"]) for each in (twice, refused, broken)] == [
        ("anna", "refused", 409),
        ("anna-reads", "refused", 403),
        ("olga", "refused", 400),
    ]


def test_reads_and_requests_of_unknown_callers_are_not_audited(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    api("GET", "/v1/machines", headers=bearer(OPERATOR))
    api("POST", "/v1/hosts/host-1/cordon", headers=bearer("fw_guessed"))
    api("GET", "/healthz")
    assert fields(caplog) == []


def test_every_endpoint_that_may_change_something_is_audited_once(
    service: Service, api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    changing = [call for call in CALLS if call[0] != "GET" and not call[1].endswith("/heartbeat")]
    for method, path, _ in changing:
        wanted = path if "{" in path else prepared(service, path)
        answer = api(method, wanted, json=BODIES.get(path), headers=bearer(A_VIEWER))
        (said,) = fields(caplog)
        assert (said["what"], said["status"]) == (f"{method} {wanted}", answer.status_code)


def test_secrets_are_not_audited(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    made = api("POST", "/v1/tokens", json={"name": "x", "role": "viewer"}, headers=bearer(OPERATOR)).json()
    assert made["secret"] not in str(fields(caplog))


def test_a_dry_run_is_not_audited_and_does_not_use_the_worker(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    written: list[str] = []
    api = Api(app_of(service, jobs=written))
    plan = {"hosts": "all", "action": "freeze", "dry_run": True}
    assert api("POST", "/v1/rollouts", json=plan, headers=bearer(OPERATOR)).status_code == 200
    fleet = api("GET", "/v1/fleet", headers=bearer(OPERATOR)).json()
    assert api("PUT", "/v1/fleet?dry_run=true", json=fleet, headers=bearer(OPERATOR)).status_code == 200
    assert (fields(caplog), written) == ([], [])
    assert api("PUT", "/v1/fleet", json=fleet, headers=bearer(OPERATOR)).status_code == 200
    assert (len(fields(caplog)), len(written)) == (1, 1)


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_a_probe_of_another_method_is_refused_and_logged_nowhere(
    api: Api, caplog: pytest.LogCaptureFixture, method: str, path: str
) -> None:
    assert api(method, path).status_code == 405
    assert caplog.messages == []
