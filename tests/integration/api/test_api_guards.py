"""Invalid requests and foreign web pages are refused with errors in one form."""

import json
import re
from collections.abc import Iterator

import httpx
import pytest
from starlette.types import ASGIApp

from forewarn.api.services import ApiSettings
from forewarn.core.errors import Unavailable
from forewarn.version import RELEASE
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
from tests.helpers.service.served import Api, Health, app_of, sample, serving


# One service for all tests, because refused requests leave no trace.
@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path_factory.mktemp("guards")))
    service.apply(sample())
    yield service
    service.close()


@pytest.fixture(scope="module")
def app(service: Service) -> ASGIApp:
    return app_of(service, names=("ops.example",))


@pytest.fixture(scope="module")
def api(app: ASGIApp) -> Api:
    return Api(app)


def error_of(answer: httpx.Response) -> tuple[int, str]:
    assert answer.json().keys() == {"error"}
    assert answer.json()["error"].keys() == {"code", "message"}
    return answer.status_code, answer.json()["error"]["code"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/v2/machines"),
        ("GET", "/v1/machines/"),
        ("GET", "/docs"),
        ("GET", "/v1/machines/unknown"),
        ("GET", "/v1/machines/%00"),
        ("GET", "/v1/hosts/unknown"),
        ("GET", "/v1/groups/unknown"),
        ("GET", "/v1/orders/7"),
        ("GET", "/v1/orders/602D9444-D2CD-49C7-8624-8643E7171297"),
        ("POST", "/v1/orders/602D9444-D2CD-49C7-8624-8643E7171297/cancel"),
        ("GET", "/v1/events/x"),
        ("POST", "/v1/events/602D9444-D2CD-49C7-8624-8643E7171297/approve"),
        ("POST", "/v1/machines/unknown/restart"),
        ("POST", "/v1/hosts/unknown/fail"),
        ("DELETE", "/v1/machines/unknown"),
    ],
)
def test_an_unknown_resource_is_not_found(api: Api, method: str, path: str) -> None:
    assert error_of(api(method, path)) == (404, "NotFound")


def test_a_wrong_method_gets_the_allowed_methods(api: Api) -> None:
    answer = api("PATCH", "/v1/machines/web-0")
    assert error_of(answer) == (405, "MethodNotAllowed")
    assert answer.headers["Allow"] == "DELETE, GET, PUT"


HOOK = '"url": "https://example.com/"'
OUTSIDE = '{"action": "freeze", "driver": "external", "heartbeat_seconds": 86401}'


@pytest.mark.parametrize(
    ("method", "path", "body", "message"),
    [
        ("GET", "/v1/machines?limit=0", "", 'limit: expected at least 1, got "0"'),
        ("GET", "/v1/machines?limit=1001", "", "limit: expected at most 1000"),
        ("GET", "/v1/machines?limit=x", "", "limit: expected a whole number"),
        ("GET", "/v1/machines?after=%21", "", "cursor"),
        ("GET", "/v1/machines?after=%00", "", "after: expected one line"),
        ("GET", "/v1/orders?state=lost", "", "state: expected queued, announced"),
        ("PUT", "/v1/fleet?dry-run=true", "{}", "dry-run: there is no such query parameter"),
        ("POST", "/v1/machines/web-0/freeze", "{", "the body is not JSON: error at character 1"),
        ("POST", "/v1/machines/web-0/freeze", b"\xff", "body"),
        ("POST", "/v1/machines/web-0/freeze", "[" * 100_000, "body"),
        ("POST", "/v1/machines/web-0/freeze", "[]", "body"),
        ("POST", "/v1/machines/web-0/freeze", '{"reasn": ""}', "reasn: there is no such key in the body"),
        ("POST", "/v1/machines/web-0/freeze", '{"reason": "\\ud800"}', "reason: expected one line"),
        ("POST", "/v1/machines/web-0/freeze", '{"reason": 7}', "reason: expected a string, got 7"),
        ("POST", "/v1/hosts/host-1/maintenance", "", "the body: this is missing"),
        ("POST", "/v1/hosts/host-1/maintenance", "{}", "action: this is missing"),
        ("POST", "/v1/clock/advance", '{"seconds": NaN}', "seconds: expected a finite number"),
        ("POST", "/v1/clock/advance", '{"seconds": "1"}', "seconds: expected a number, got"),
        (
            "POST",
            "/v1/clock/advance",
            '{"seconds": 1e9}',
            "seconds: expected at most 400 d, got 11574 d",
        ),
        ("POST", "/v1/holds", '{"reason": ""}', "reason: expected at least one character, got an"),
        ("POST", "/v1/holds", f'{{"reason": "{"x" * 1001}"}}', "at most 1000 characters, got 1001"),
        ("POST", "/v1/webhooks", f'{{{HOOK}, "kinds": ["event-schedule"]}}', "did you mean event-scheduled?"),
        (
            "POST",
            "/v1/webhooks",
            f'{{{HOOK}, "kinds": ["?"]}}',
            "kinds[0]: expected order-placed, order-done",
        ),
        (
            "POST",
            "/v1/hosts/host-1/maintenance",
            OUTSIDE,
            "heartbeat_seconds: expected at most 1 d, got 1 d 1 s",
        ),
        ("PUT", "/v1/fleet", "[]", "body"),
        ("PUT", "/v1/fleet", '{"hosts": {"a": {"b": 1}}}', "hosts.a: b: there is no such field"),
    ],
)
def test_an_invalid_request_is_refused_with_the_reason(
    api: Api, method: str, path: str, body: str, message: str
) -> None:
    answer = api(method, path, content=body)
    assert error_of(answer) == (400, "Invalid")
    assert message in answer.json()["error"]["message"]


def test_a_body_is_read_as_json_whatever_its_content_type(api: Api) -> None:
    labelled = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = api("POST", "/v1/clock/advance", content='{"seconds": 1}', headers=labelled)
    assert answer.status_code == 200


def test_a_body_that_is_too_large_is_not_read(api: Api) -> None:
    assert error_of(api("PUT", "/v1/fleet", content=b" " * (ApiSettings().bodies.fleet + 1))) == (
        413,
        "TooLarge",
    )


def test_a_body_that_grows_too_large_is_not_read_to_its_end(app: ASGIApp) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(80):
            yield b" " * (1024 * 1024)

    with serving(app) as url, httpx.Client(trust_env=False, verify=False) as client:
        assert error_of(client.put(f"{url}/v1/fleet", content=endless())) == (413, "TooLarge")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "10.1.2.3:8170", "[::1]:8170", "localhost", "LOCALHOST:1", "ops.example:8170"]
)
def test_addresses_localhost_and_configured_names_are_accepted(api: Api, host: str) -> None:
    assert api("GET", "/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "a@localhost", "[::1"]
)
def test_another_name_is_refused(api: Api, host: str) -> None:
    assert error_of(api("GET", "/healthz", headers={"Host": host})) == (400, "BadHost")


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1:8170", "http://127.0.0.1:8170"),
        ("localhost", "http://localhost:80"),
        ("ops.example", "https://ops.example"),
        ("[::1]:8170", "http://[::1]:8170"),
    ],
)
def test_a_page_of_the_same_origin_is_accepted(api: Api, host: str, origin: str) -> None:
    url = f"{origin.partition(':')[0]}://{host}/healthz"
    assert api("GET", url, headers={"Host": host, "Origin": origin}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["null", "", "http://evil.example", "http://127.0.0.1", "http://127.0.0.1:8171", "file://127.0.0.1:8170",
     "https://127.0.0.1:8170"],
)  # fmt: skip
def test_a_page_of_another_origin_is_refused(api: Api, origin: str) -> None:
    headers = {"Host": "127.0.0.1:8170", "Origin": origin}
    assert error_of(api("POST", "/v1/machines/web-0/freeze", headers=headers)) == (403, "Forbidden")
    assert api("GET", "/v1/events").json()["events"] == []


def test_a_full_store_has_an_error_code_of_its_own(service: Service) -> None:
    api = Api(app_of(service, fault=Unavailable("the disk is full")))
    answer = api("POST", "/v1/machines/web-0/restart")
    assert error_of(answer) == (503, "Unavailable")
    assert answer.headers["Retry-After"] == "5"
    assert answer.json()["error"]["message"] == "the disk is full"


def test_metrics_are_answered_without_a_store(service: Service) -> None:
    api = Api(app_of(service, fault=Unavailable("the disk is full")))
    assert "forewarn_store_readable 0.0" in api("GET", "/metrics").text


def test_an_unexpected_error_is_answered_in_the_same_form_and_logged(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    api = Api(app_of(service, fault=KeyError("nothing")))
    assert error_of(api("GET", "/v1/machines")) == (500, "Internal")
    assert "GET /v1/machines failed" in caplog.text


def test_probes_show_the_health_of_the_server(service: Service) -> None:
    health = Health()
    api = Api(app_of(service, health=health))
    assert api("GET", "/healthz").json() == {"status": "ok"}
    assert api("GET", "/readyz").json() == {"status": "ready"}
    health.unwell = "guest listener 127.0.0.1:8169 does not answer"
    for path in ("/healthz", "/readyz"):
        assert error_of(api("GET", path)) == (503, "Unavailable")


def test_the_result_of_a_probe_is_logged_when_it_changes(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "forewarn")
    health = Health()
    api = Api(app_of(service, health=health))
    for unwell in (None, "the disk is full", "stopping", None):
        health.unwell = unwell
        for _ in range(3):
            assert api("GET", "/readyz").status_code == (503 if unwell else 200)
            api("HEAD", "/readyz")
    assert [
        (record.levelname, record.getMessage()) for record in caplog.records if record.name != "httpx"
    ] == [
        ("WARNING", "GET /readyz is answered with 503: the disk is full"),
        ("WARNING", "GET /readyz is answered with 503: stopping"),
        ("INFO", "GET /readyz is answered with 200 again"),
    ]


def test_probes_answer_head_without_a_body(service: Service) -> None:
    health = Health()
    with (
        serving(app_of(service, health=health)) as url,
        httpx.Client(trust_env=False, verify=False) as client,
    ):
        for path in ("/healthz", "/readyz"):
            for unwell, status in ((None, 200), ("a listener does not answer", 503)):
                health.unwell = unwell
                asked, got = client.head(url + path), client.get(url + path)
                assert (asked.status_code, asked.content) == (got.status_code, b"") == (status, b"")
                assert asked.headers["content-length"] == got.headers["content-length"]


def test_metrics_count_the_present_resources(api: Api) -> None:
    text = api("GET", "/metrics").text
    assert 'forewarn_machines{state="running"} 8.0' in text
    assert 'forewarn_hosts{state="ok"} 3.0' in text
    assert "forewarn_guest_polls_total 7.0" in text
    assert "process_resident_memory_bytes" in text


def test_the_openapi_document_has_every_path_and_no_422(api: Api) -> None:
    document = api("GET", "/openapi.json").json()
    assert "422" not in json.dumps(document)
    assert "HTTPValidationError" not in json.dumps(document)
    for path in document["paths"].values():
        for operation in path.values():
            assert operation["summary"]
            assert "400" in operation["responses"]
    assert len({op["operationId"] for path in document["paths"].values() for op in path.values()}) > 30


def test_operation_ids_are_a_verb_and_a_noun(api: Api) -> None:
    paths = api("GET", "/openapi.json").json()["paths"]
    named = {(path, op["operationId"]) for path, operations in paths.items() for op in operations.values()}
    assert len({name for _, name in named}) == len(named)
    probes = {"/healthz": "health", "/readyz": "readiness"}
    for path, name in named:
        parts = [
            part for part in path.removeprefix("/v1/").removesuffix(".ics").split("/") if "{" not in part
        ]
        nouns = {probes.get(path, part.strip("/")) for part in parts}
        assert re.fullmatch(r"[a-z]+(_[a-z]+)+", name)
        assert any(name.endswith((f"_{noun}", f"_{noun.removesuffix('s')}")) for noun in nouns), (path, name)
    assert ("/v1/events/{id}/approve", "approve_event") in named


def test_the_document_has_the_version_and_the_security_schemes(api: Api) -> None:
    document = api("GET", "/openapi.json").json()
    assert document["info"]["version"] == RELEASE
    schemes = document["components"]["securitySchemes"]
    assert {each.get("scheme", each.get("in")) for each in schemes.values()} == {"bearer", "basic", "cookie"}
    assert document["paths"]["/v1/machines"]["get"]["security"] == [{name: []} for name in schemes]
    assert document["paths"]["/readyz"]["get"]["security"] == []
