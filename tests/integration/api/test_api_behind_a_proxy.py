"""The server behind a proxy that ends TLS: origins are configured, and forwarded headers are ignored."""

from collections.abc import Iterator

import pytest
from starlette.types import ASGIApp

from forewarn.api.services import ApiSettings
from forewarn.server.threads.operator_server import operator_app
from tests.helpers.service.harness import Service
from tests.helpers.service.served import Api, app_of
from tests.helpers.service.tenants import OPERATOR, bearer
from tests.integration.api.test_api_access import opened

NAMES = ("ops.example",)
ORIGINS = ("https://forewarn.example", "https://other.example:8443", "https://[2001:db8::1]")


# One service for all tests, because additional sessions do not matter here.
@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = opened(tmp_path_factory.mktemp("proxy"), tokens=True)
    yield service
    service.close()


@pytest.fixture(scope="module")
def app(service: Service) -> ASGIApp:
    settings = ApiSettings(names=NAMES, origins=ORIGINS)
    return operator_app(app_of(service, settings=settings), names=NAMES, origins=ORIGINS)


@pytest.fixture(scope="module")
def ask(app: ASGIApp) -> Api:
    return Api(app)


@pytest.fixture(params=["/healthz", "/console/"])
def path(request: pytest.FixtureRequest) -> str:
    """Return a path of the API and a path of the console."""
    path: str = request.param
    return path


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("forewarn.example", "https://forewarn.example"),
        ("Forewarn.Example:443", "https://forewarn.example"),
        ("other.example:8443", "https://other.example:8443"),
        ("[2001:db8::1]", "https://[2001:db8::1]"),
        # Requests that do not pass the proxy work as before.
        ("127.0.0.1:8170", "http://127.0.0.1:8170"),
        ("forewarn.example:8170", "http://forewarn.example:8170"),
    ],
)
def test_a_page_through_the_proxy_has_the_servers_origin(ask: Api, path: str, host: str, origin: str) -> None:
    assert ask("GET", path, headers={"Host": host, "Origin": origin}).status_code == 200


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("forewarn.example", "https://evil.example"),
        ("forewarn.example", "https://forewarn.example.evil.example"),
        ("forewarn.example", "https://forewarn.example:8443"),
        # A page that an attacker serves in place of the proxy's redirect to https.
        ("forewarn.example", "http://forewarn.example"),
        # Two addresses of the service are two origins.
        ("forewarn.example", "https://other.example:8443"),
        ("127.0.0.1:8170", "https://forewarn.example"),
        ("other.example", "https://other.example"),
        ("ops.example", "https://ops.example"),
        ("forewarn.example", "null"),
        ("forewarn.example", ""),
    ],
)
@pytest.mark.parametrize("said", [{}, {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "forewarn.example"}])
def test_other_origins_are_refused_whatever_headers_the_request_has(
    ask: Api, path: str, host: str, origin: str, said: dict[str, str]
) -> None:
    answer = ask("GET", path, headers={"Host": host, "Origin": origin, **said})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "Forbidden")


def test_the_error_names_the_missing_setting(ask: Api) -> None:
    told = ask("GET", "/healthz", headers={"Host": "ops.example", "Origin": "https://ops.example"})
    assert "set its URL in [operator] origins" in told.json()["error"]["message"]
    told = ask("GET", "/healthz", headers={"Host": "ops.example", "Origin": "http://evil.example"})
    assert "proxy" not in told.json()["error"]["message"]


@pytest.mark.parametrize("host", ["forewarn.example", "forewarn.example:8170", "other.example"])
def test_the_name_of_an_origin_is_accepted(ask: Api, path: str, host: str) -> None:
    assert ask("GET", path, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "www.forewarn.example", "example", "forewarn.example."])
def test_other_names_are_refused(ask: Api, path: str, host: str) -> None:
    answer = ask("GET", path, headers={"Host": host, "X-Forwarded-Host": "forewarn.example"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "BadHost")


def cookie_of(ask: Api, host: str, **headers: str) -> tuple[str, bool]:
    """Sign in, and return the cookie's name and whether it is only for TLS."""
    answer = ask("POST", "/v1/session", headers={**bearer(OPERATOR), "Host": host, **headers})
    assert answer.status_code == 201, answer.text
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    return cookie.partition("=")[0], "Secure" in attributes


def test_the_cookie_through_the_proxy_is_for_tls_only(ask: Api) -> None:
    assert cookie_of(ask, "forewarn.example") == ("__Host-forewarn-session-443", True)
    assert cookie_of(ask, "other.example:8443") == ("__Host-forewarn-session-8443", True)
    assert cookie_of(ask, "127.0.0.1:8170") == ("forewarn-session-8170", False)
    said = {"X-Forwarded-Proto": "https", "Forwarded": "proto=https"}
    assert cookie_of(ask, "ops.example", **said) == ("forewarn-session-80", False)
