"""The console and the operator API at one address."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarn.console.console_app import SECURITY_HEADERS
from forewarn.server.threads.operator_server import operator_app
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
from tests.helpers.service.served import Api, app_of, sample


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path_factory.mktemp("console")))
    service.apply(sample())
    yield service
    service.close()


@pytest.fixture(scope="module")
def ask(service: Service) -> Api:
    names = ("ops.example",)
    return Api(operator_app(app_of(service, names=names), names=names))


@pytest.fixture(scope="module")
def script(ask: Api) -> str:
    return script_of(ask)


def script_of(ask: Api) -> str:
    """Name an asset of the page."""
    found = re.search(r'<script type="module" src="([^"]+)"', ask("GET", "/console/").text)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("path", ["/", "/console"])
def test_short_paths_redirect_to_the_console(ask: Api, path: str) -> None:
    answer = ask("GET", f"{path}?theme=dark")
    assert (answer.status_code, answer.headers["location"]) == (307, "/console/?theme=dark")


@pytest.mark.parametrize(
    "path", ["/console/", "/console/fleet", "/console/events/602D9444?zoom=2", "/console/x.js"]
)
def test_every_address_of_a_view_answers_with_the_page(ask: Api, path: str) -> None:
    answer = ask("GET", path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.text == ask("GET", "/console/").text


def test_all_other_paths_belong_to_the_api(ask: Api) -> None:
    assert len(ask("GET", "/v1/machines").json()["machines"]) == 8
    for path in ("/consoles", "/console.html", "//console/", "/assets/app.js", "/favicon.ico"):
        assert "openapi.json" in ask("GET", f"http://127.0.0.1:8170{path}").json()["error"]["message"]


def test_an_asset_is_cached_permanently(ask: Api, script: str) -> None:
    answer = ask("GET", script)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"


def test_the_page_is_revalidated_and_sent_only_when_it_changed(ask: Api) -> None:
    first = ask("GET", "/console/")
    assert first.headers["cache-control"] == "no-cache"
    again = ask("GET", "/console/fleet", headers={"If-None-Match": f'"other", {first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert ask("GET", "/console/", headers={"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.parametrize(
    ("accepted", "sent"),
    [
        ("gzip", "gzip"),
        ("br, GZIP;q=0.5", "gzip"),
        ("*", "gzip"),
        ("gzip;q=0, *", None),
        ("gzip; q=0.000", None),
        ("identity", None),
        ("", None),
    ],
)
def test_compressed_answers_are_sent_to_browsers_that_accept_them(
    ask: Api, script: str, accepted: str, sent: str | None
) -> None:
    for path in ("/console/", script):
        answer = ask("GET", path, headers={"Accept-Encoding": accepted})
        assert answer.headers.get("content-encoding") == sent
        assert answer.headers["vary"] == "Accept-Encoding"
        assert answer.text == ask("GET", path, headers={"Accept-Encoding": ""}).text


def test_head_is_answered_as_get_without_the_body(ask: Api, script: str) -> None:
    for path in ("/", "/console/", script, "/console/assets/old/app.js"):
        head, get = ask("HEAD", path), ask("GET", path)
        assert (head.status_code, head.headers, head.content) == (get.status_code, get.headers, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/console/assets/0123456789abcdef/app.js",
        "/console/assets/",
        "{assets}/",
        "{assets}/index.html",
        "{assets}/nothing.js",
        "{assets}/../../console_app.py",
        "{assets}/%2e%2e/%2e%2e/console_app.py",
        "{assets}/..%2f..%2fconsole_app.py",
        "{assets}//app.js",
        "{assets}/app.js%00",
        "{assets}/types.d.ts",
    ],
)
def test_other_files_are_not_served(ask: Api, script: str, path: str) -> None:
    answer = ask("GET", path.replace("{assets}", script.rpartition("/")[0]))
    assert answer.headers["content-type"] in ("application/json", "text/html; charset=utf-8")
    assert "import" not in answer.text
    if path != "{assets}/../../console_app.py":  # httpx would remove the dots
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NotFound")
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/", "/console", "/console/fleet", "/console/assets/x/app.js"])
def test_the_console_accepts_only_reads(ask: Api, method: str, path: str) -> None:
    answer = ask(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    assert answer.json()["error"] == {
        "code": "MethodNotAllowed",
        "message": f"{path} does not support {method}; use GET, HEAD",
    }


def test_a_foreign_host_header_gets_no_page(ask: Api, script: str) -> None:
    for path in ("/", "/console/", script):
        answer = ask("GET", path, headers={"Host": "evil.example"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "BadHost")
        assert ask("GET", path, headers={"Host": "ops.example"}).status_code < 400


def test_a_page_of_another_origin_gets_no_page(ask: Api, script: str) -> None:
    for path in ("/", "/console/", script):
        foreign = ask("GET", path, headers={"Origin": "http://evil.example"})
        assert (foreign.status_code, foreign.json()["error"]["code"]) == (403, "Forbidden")
        assert ask("GET", path, headers={"Origin": "http://127.0.0.1:8170"}).status_code < 400


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/", {}),
        ("GET", "/console", {}),
        ("GET", "/console/", {}),
        ("GET", "/console/", {"If-None-Match": "*"}),
        ("GET", "/console/", {"Host": "evil.example"}),
        ("GET", "/console/", {"Origin": "null"}),
        ("GET", "/console/assets/x/app.js", {}),
        ("POST", "/console/", {}),
    ],
)
def test_each_answer_has_security_headers(
    ask: Api, script: str, method: str, path: str, headers: dict[str, str]
) -> None:
    for asked in (path, script):
        answer = ask(method, asked, headers=headers)
        assert (
            SECURITY_HEADERS.items() <= {name: answer.headers.get(name) for name in SECURITY_HEADERS}.items()
        )


def test_no_answer_of_the_api_can_be_run_as_a_script(ask: Api) -> None:
    for path in ("/v1/machines", "/v1/calendar.ics", "/v1/nothing"):
        assert ask("GET", path).headers["X-Content-Type-Options"] == "nosniff"


def test_the_policy_allows_nothing_inline_and_nothing_from_elsewhere() -> None:
    policy = SECURITY_HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "data:" not in policy
    assert set(re.findall(r"'([\w-]+)'", policy)) == {"none", "self", "script"}


def test_files_need_no_token_but_data_does(tmp_path: Path) -> None:
    service = Service(sqlite_url(tmp_path))
    ask = Api(operator_app(app_of(service), names=()))
    ask("POST", "/v1/tokens", json={"name": "ann", "role": "operator"}).raise_for_status()
    for path in ("/console/", script_of(ask)):
        assert ask("GET", path).status_code == 200
    assert ask("GET", "/v1/machines").status_code == 401
    service.close()
