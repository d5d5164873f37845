"""Every endpoint with every role, and the authentication of callers."""

import asyncio
import re
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from forewarn.api import authentication
from forewarn.api.app import ENDPOINTS
from forewarn.api.authentication import Authenticator
from forewarn.api.routing import ApiRouter
from forewarn.core.access import Grant, Right, Role
from forewarn.core.basic_types import Action, OrderId, ProjectName, Work
from forewarn.core.errors import Unavailable
from forewarn.core.session_cookies import Credentials
from forewarn.core.webhook_rules import Webhook
from forewarn.wire.answers.service_answers import StatusAnswer
from forewarn.wire.fleet import write_fleet
from tests.helpers.database.stores import prepared_sqlite
from tests.helpers.service.harness import TEST, Ids, Secrets, Service
from tests.helpers.service.served import Api, app_of
from tests.helpers.service.tenants import (
    A_USER,
    A_VIEWER,
    B_USER,
    GRANTS,
    OPERATOR,
    ROLES,
    VIEWER,
    A,
    B,
    bearer,
    fleet_of,
    let_in,
    two_projects,
)


def prepare(url: str, *, tokens: bool) -> None:
    service = Service(url)
    service.apply(two_projects())
    for name in ("a-0", "b-0"):
        service.poll(name)
    if tokens:
        let_in(service)
    service.close()


def opened(folder: Path, *, tokens: bool) -> Service:
    url = prepared_sqlite(folder, f"two projects {tokens=}", partial(prepare, tokens=tokens))
    return Service(url, ids=Ids(after=1000), secrets=Secrets(after=len(GRANTS) if tokens else 0))


@pytest.fixture
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    service = opened(tmp_path, tokens="tokens" in request.fixturenames)
    yield service
    service.close()


@pytest.fixture
def tokens() -> None:
    """Return an API with the tokens of `tests/helpers/service/tenants.py`."""


@pytest.fixture
def app(service: Service) -> ASGIApp:
    return app_of(service)


@pytest.fixture
def api(app: ASGIApp) -> Api:
    return Api(app)


def error_of(answer: httpx.Response) -> tuple[int, str]:
    assert answer.json().keys() == {"error"}
    assert answer.json()["error"].keys() == {"code", "message"}
    return answer.status_code, answer.json()["error"]["code"]


# Every endpoint, every role. Each row calls a resource of project a. The user of b must not learn of it.

ALL_MAY_READ = (200, 200, 200, 200, 404)
ONLY_OF_THE_FLEET = (200, 200, 403, 403, 403)
LISTED = (200, 200, 200, 200, 200)
USED = (202, 403, 403, 202, 404)
SETTLED = (200, 403, 403, 200, 404)
PLATFORM = (200, 403, 403, 403, 404)
RUN = (202, 403, 403, 403, 403)
RUN_200 = (200, 403, 403, 403, 403)
KEPT = (200, 403, 403, 200, 200)
NOT_NOW = (409, 403, 403, 403, 403)
CODES = {400: "Invalid", 403: "Forbidden", 404: "NotFound", 409: "Conflict"}
UNKNOWN_ID = "602D9444-D2CD-49C7-8624-8643E7171297"

CALLS: list[tuple[str, str, tuple[int, ...]]] = [
    ("GET", "/v1/machines", LISTED),
    ("GET", "/v1/machines?project=a", ALL_MAY_READ),
    ("GET", "/v1/machines?group=a-web", ALL_MAY_READ),
    ("GET", "/v1/machines?host=host-1", ONLY_OF_THE_FLEET),
    ("GET", "/v1/machines?name=a-0&name=b-0&begins=a", LISTED),
    ("GET", "/v1/machines/a-0", ALL_MAY_READ),
    ("PUT", "/v1/machines/a-0", RUN_200),
    ("DELETE", "/v1/machines/a-0", RUN_200),
    ("POST", "/v1/machines/a-0/restart", USED),
    ("POST", "/v1/machines/a-0/redeploy", USED),
    ("POST", "/v1/machines/a-0/move", RUN),
    ("POST", "/v1/machines/a-0/terminate", USED),
    ("POST", "/v1/machines/{stopped}/start", USED),
    ("POST", "/v1/machines/a-0/freeze", RUN),
    ("POST", "/v1/machines/spot/evict?project=a", RUN),
    # Previews are not offered.
    ("POST", "/v1/machines/spot/recommend-rebalance?project=a", (409, 403, 403, 403, 403)),
    ("GET", "/v1/groups", LISTED),
    ("GET", "/v1/groups?project=a", ALL_MAY_READ),
    ("GET", "/v1/groups/a-web", ALL_MAY_READ),
    ("GET", "/v1/projects", LISTED),
    ("GET", "/v1/projects/a", ALL_MAY_READ),
    # No rehearsal runs, and project a does not allow one.
    ("GET", "/v1/projects/a/rehearsal", (404, 404, 404, 404, 404)),
    ("PUT", "/v1/projects/a/rehearsal", (409, 403, 403, 409, 404)),
    ("DELETE", "/v1/projects/a/rehearsal", (404, 403, 403, 404, 404)),
    ("GET", "/v1/hosts", ONLY_OF_THE_FLEET),
    ("GET", "/v1/hosts/host-1", ONLY_OF_THE_FLEET),
    ("GET", "/v1/drivers", ONLY_OF_THE_FLEET),
    ("POST", "/v1/hosts/host-3/maintenance", RUN),
    ("POST", "/v1/hosts/host-3/degrade", RUN),
    ("POST", "/v1/hosts/host-3/fail", RUN),
    ("POST", "/v1/hosts/host-3/service", RUN),
    ("POST", "/v1/hosts/{lost}/wait", RUN),
    ("POST", "/v1/hosts/host-3/restore", RUN),
    ("POST", "/v1/hosts/host-3/cordon", RUN),
    ("POST", "/v1/hosts/host-3/uncordon", RUN),
    ("GET", "/v1/orders", LISTED),
    ("GET", "/v1/orders?project=a", ALL_MAY_READ),
    ("GET", "/v1/orders?machine=a-0", ALL_MAY_READ),
    ("GET", "/v1/orders?host=host-1", ONLY_OF_THE_FLEET),
    ("GET", "/v1/orders/{order}", ALL_MAY_READ),
    # It affects machines of both projects.
    ("GET", "/v1/orders/{host_order}", LISTED),
    ("POST", "/v1/orders/{order}/cancel", SETTLED),
    ("POST", "/v1/orders/{host_order}/cancel", RUN_200),
    ("POST", "/v1/orders/{eviction}/cancel", PLATFORM),
    ("POST", "/v1/orders/{failed}/retry", USED),
    ("POST", "/v1/orders/{failed}/abandon", USED),
    ("POST", "/v1/orders/{order}/complete", NOT_NOW),
    ("POST", "/v1/orders/{order}/fail", NOT_NOW),
    ("POST", "/v1/orders/{order}/heartbeat", NOT_NOW),
    ("GET", "/v1/holds", ONLY_OF_THE_FLEET),
    ("POST", "/v1/holds", (201, 403, 403, 403, 403)),
    ("POST", "/v1/holds/{hold}/release", RUN_200),
    ("GET", "/v1/rollouts", ONLY_OF_THE_FLEET),
    ("POST", "/v1/rollouts", RUN),
    ("GET", f"/v1/rollouts/{UNKNOWN_ID}", (404, 404, 403, 403, 403)),
    ("POST", f"/v1/rollouts/{UNKNOWN_ID}/pause", (404, 403, 403, 403, 403)),
    ("POST", f"/v1/rollouts/{UNKNOWN_ID}/resume", (404, 403, 403, 403, 403)),
    ("POST", f"/v1/rollouts/{UNKNOWN_ID}/abort", (404, 403, 403, 403, 403)),
    ("GET", "/v1/calendar.ics", LISTED),
    ("GET", "/v1/calendar.ics?project=a", ALL_MAY_READ),
    # A future number, because an open stream would not end.
    ("GET", "/v1/stream?since=99999999", (409, 409, 409, 409, 409)),
    ("GET", "/v1/stream?since=99999999&project=a", (409, 409, 409, 409, 404)),
    ("GET", "/v1/stream?since=99999999&machine=a-0", (409, 409, 409, 409, 404)),
    ("GET", "/v1/webhooks", KEPT),
    ("GET", "/v1/webhooks?project=a", SETTLED),
    ("POST", "/v1/webhooks", (201, 403, 403, 201, 201)),
    ("GET", "/v1/webhooks/{webhook}", SETTLED),
    ("DELETE", "/v1/webhooks/{webhook}", SETTLED),
    ("POST", "/v1/webhooks/{webhook}/test", SETTLED),
    # Added by an operator. Users of the project must not see its URL.
    ("GET", "/v1/webhooks/{operators}", (200, 403, 403, 404, 404)),
    ("DELETE", "/v1/webhooks/{operators}", (200, 403, 403, 404, 404)),
    ("POST", "/v1/webhooks/{operators}/test", (200, 403, 403, 404, 404)),
    ("GET", "/v1/events", LISTED),
    ("GET", "/v1/events?project=a", ALL_MAY_READ),
    ("GET", "/v1/events?machine=a-0", ALL_MAY_READ),
    ("GET", "/v1/events?host=host-1", ONLY_OF_THE_FLEET),
    ("GET", "/v1/events?all=true&notices=true&since=2026-01-05T00:00:00Z", LISTED),
    ("GET", "/v1/events/{event}", ALL_MAY_READ),
    ("POST", "/v1/events/{event}/approve", SETTLED),
    ("POST", "/v1/events/{event}/cancel", SETTLED),
    ("GET", "/v1/events/{host_event}", ALL_MAY_READ),
    ("POST", "/v1/events/{host_event}/approve", SETTLED),
    ("POST", "/v1/events/{host_event}/cancel", PLATFORM),
    ("GET", "/v1/history", LISTED),
    ("GET", "/v1/history?project=a", ALL_MAY_READ),
    ("GET", "/v1/history?machine=a-0", ALL_MAY_READ),
    ("GET", "/v1/history?group=a-web", ALL_MAY_READ),
    ("GET", "/v1/history?host=host-1", ONLY_OF_THE_FLEET),
    ("GET", "/v1/history?text=host&by=olga&until=2030-01-01T00:00:00Z", LISTED),
    ("GET", "/v1/history?event={event}", ALL_MAY_READ),
    ("GET", "/v1/history?order={order}", ALL_MAY_READ),
    ("GET", "/v1/promises", LISTED),
    ("GET", "/v1/promises?project=a&month=2026-01", ALL_MAY_READ),
    ("GET", "/v1/overview", LISTED),
    ("GET", "/v1/summary", LISTED),
    ("GET", "/v1/summary?project=a", ALL_MAY_READ),
    ("GET", "/v1/fleet", ONLY_OF_THE_FLEET),
    ("PUT", "/v1/fleet", RUN_200),
    ("POST", "/v1/fleet/domains", RUN_200),
    ("PUT", "/v1/hosts/host-3", RUN_200),
    ("DELETE", "/v1/hosts/host-3", NOT_NOW),
    ("PUT", "/v1/groups/a-web", RUN_200),
    ("DELETE", "/v1/groups/a-web", NOT_NOW),
    ("PUT", "/v1/projects/a", RUN_200),
    ("DELETE", "/v1/projects/a", NOT_NOW),
    # No driver of this fleet can list machines.
    ("POST", "/v1/fleet/import", (400, 403, 403, 403, 403)),
    ("GET", "/v1/clock", LISTED),
    ("GET", "/v1/clock/offset", LISTED),
    ("POST", "/v1/clock/advance", RUN_200),
    ("GET", "/v1/tokens", RUN_200),
    ("GET", "/v1/caller", LISTED),
    ("POST", "/v1/tokens", (201, 403, 403, 403, 403)),
    ("POST", "/v1/tokens/bert/revoke", RUN_200),
    # Every caller may read its own.
    ("GET", "/v1/session", LISTED),
    ("POST", "/v1/session", (201, 201, 201, 201, 201)),
    # A request with a token has no session to end.
    ("DELETE", "/v1/session", (404, 404, 404, 404, 404)),
    ("GET", "/metrics", ONLY_OF_THE_FLEET),
    ("GET", "/healthz", LISTED),
    ("GET", "/readyz", LISTED),
]
BODIES: dict[str, Any] = {
    "/v1/machines/a-0": {"size": "large"},
    "/v1/hosts/host-3/maintenance": {"action": "freeze"},
    "/v1/clock/advance": {"seconds": 1},
    "/v1/projects/a/rehearsal": {"id": UNKNOWN_ID, "scenario": "mine", "machines": ["a-0"]},
    "/v1/tokens": {"name": "new", "role": "viewer"},
    "/v1/fleet": {},
    "/v1/fleet/domains": {},
    "/v1/hosts/host-3": {},
    "/v1/groups/a-web": {},
    "/v1/projects/a": {},
    "/v1/fleet/import": {"from": "simulated"},
    "/v1/holds": {"reason": "holidays"},
    "/v1/rollouts": {"hosts": ["host-3"], "action": "freeze"},
    "/v1/webhooks": {"url": "https://hooks.example/forewarn"},
}


def added(service: Service, keeper: ProjectName | None) -> Webhook:
    """Add a webhook for records of a, as its user or as an operator."""
    webhooks = service.within(keeper).webhooks
    return webhooks.add("https://hooks.example/a", project=A, kinds=(), secret=None, by="test")


def prepared(service: Service, path: str) -> str:
    """Create the resource that a path names, and fill in its id."""
    if "{order}" in path or "{event}" in path:
        placed = service.order("a-0", Action.RESTART)
        return path.format(order=placed.order.id, event=placed.events[0].id)
    if "/{webhook}" in path or "/{operators}" in path:
        id_ = added(service, A if "{webhook}" in path else None).id
        return path.format(webhook=id_, operators=id_)
    if "{hold}" in path:
        return path.format(hold=service.fleet.hosts.hold(TEST, project=None, host=None).id)
    if "{host_" in path:
        placed = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
        mine = next(each for each in placed.events if each.group == "a-web")
        return path.format(host_order=placed.order.id, host_event=mine.id)
    if "{lost}" in path or "{failed}" in path:
        return path.format(lost="host-3", failed=gone_wrong(service))
    if "{eviction}" in path or "{stopped}" in path:
        service.fleet.declarations.delete_machine("spot", project=B, by="test")
        placed = service.order("spot", Action.EVICT)
        if "{stopped}" in path:
            service.advance(minutes=10)
        return path.format(eviction=placed.order.id, stopped="spot")
    return path


def gone_wrong(service: Service) -> OrderId:
    """Let a step fail, and a host not return from its work."""
    service.driver.failing.add("a-1")
    placed = service.order("a-1", Action.RESTART)
    service.driver.slow.add("work of host-3")
    service.host_order("host-3", Action.SERVICE)
    service.advance(hours=2)
    return placed.order.id


class Prepared:
    """Services with the resources that calls need. Unchanged services are reused."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._kept: dict[str, tuple[Service, str]] = {}

    @contextmanager
    def for_call(self, path: str, *, changes: bool) -> Iterator[tuple[Api, str]]:
        """Return an API, and the path with the ids of its resources."""
        if changes:
            service = self._opened()
            yield Api(app_of(service)), prepared(service, path)
            service.close()
            return
        what = path if "{" in path else ""
        if what not in self._kept:
            service = self._opened()
            self._kept[what] = service, prepared(service, what)
        service, actual = self._kept[what]
        before = service.everything()
        yield Api(app_of(service)), actual or path
        assert service.everything() == before

    def close(self) -> None:
        for service, _ in self._kept.values():
            service.close()

    def _opened(self) -> Service:
        return opened(self._folders.mktemp("prepared"), tokens=True)


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    services = Prepared(tmp_path_factory)
    yield services
    services.close()


@pytest.mark.parametrize(
    ("method", "path", "statuses"), CALLS, ids=[f"{call[0]} {call[1]}" for call in CALLS]
)
@pytest.mark.parametrize("role", ROLES)
def test_each_role_gets_its_answer(
    services: Prepared, role: str, method: str, path: str, statuses: tuple[int, ...]
) -> None:
    body = BODIES.get(path) if method in ("PUT", "POST") else None
    wanted = dict(zip(ROLES, statuses, strict=True))[role]
    with services.for_call(path, changes=method != "GET" and wanted < 400) as (api, actual):
        answer = api(method, actual, json=body, headers=bearer(ROLES[role]))
    assert answer.status_code == wanted, answer.text
    if role in ("a's viewer", "a's user"):
        assert not re.search(r"\b(host-\d|olga|vera|test|bert|b-\w+)\b", answer.text), answer.text
    if wanted >= 400:
        assert error_of(answer) == (wanted, CODES[wanted])


@pytest.mark.usefixtures("tokens")
def test_a_refused_change_leaves_no_record(service: Service, api: Api) -> None:
    before = service.history()
    for secret in (VIEWER, A_VIEWER):
        for method, path, _ in CALLS:
            if method != "GET" and path != "/v1/session":
                assert api(method, path, json=BODIES.get(path), headers=bearer(secret)).status_code == 403
    assert service.history() == before


def endpoints(api: Api) -> set[tuple[str, str]]:
    paths = api("GET", "/openapi.json").json()["paths"]
    return {(method.upper(), path) for path, operations in paths.items() for method in operations}


def test_every_endpoint_is_in_the_table(api: Api) -> None:
    called = {(method, path.partition("?")[0]) for method, path, _ in CALLS}
    for method, path in endpoints(api):
        like = re.compile(re.sub(r"\{\w+\}", "[^/]+", path))
        assert any(each == method and like.fullmatch(tried) for each, tried in called), f"{method} {path}"


def test_every_endpoint_is_guarded(api: Api) -> None:
    guarded = {(route.method, route.path) for route in ENDPOINTS}
    assert {each for each in endpoints(api) if each[1].startswith("/v1/")} <= guarded


def test_an_endpoint_without_a_right_is_refused_to_users_of_projects() -> None:
    router = ApiRouter("new")

    async def answer() -> StatusAnswer:
        return StatusAnswer(status="new")

    router.call("GET /v1/new", "Show it")(answer)
    router.call("DELETE /v1/new", "Remove it")(answer)
    rights = [route.right for route in router.routes]
    assert rights == [Right.SURVEY, Right.RUN]


# Without a token


@pytest.mark.usefixtures("tokens")
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic b2xnYTpmdw=="},
        {"Authorization": "Basic /w=="},
        {"Authorization": "Basic not-base64"},
        bearer("fw_guessed"),
        {"Authorization": b"Bearer \xff"},
        bearer(f"{OPERATOR}x"),
        [("Authorization", f"Bearer {OPERATOR}"), ("Authorization", f"Bearer {OPERATOR}")],
    ],
)
def test_every_request_except_probes_needs_a_token(api: Api, headers: Any) -> None:
    for method, path, _ in [
        *CALLS,
        ("GET", "/openapi.json", ()),
        ("GET", "/nowhere", ()),
        ("PATCH", "/", ()),
    ]:
        answer = api(method, path, headers=headers)
        if path in ("/healthz", "/readyz"):
            assert answer.status_code == 200
        else:
            assert error_of(answer) == (401, "Unauthorized")
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            assert "fw_" not in answer.text.replace("fw_…", "")


@pytest.mark.usefixtures("tokens")
def test_a_token_may_come_as_a_password_for_clients_that_can_send_nothing_else(api: Api) -> None:
    for name in ("", "olga", "anybody"):
        given = b64encode(f"{name}:{OPERATOR}".encode()).decode()
        assert api("GET", "/v1/clock", headers={"Authorization": f"Basic {given}"}).status_code == 200


@pytest.mark.usefixtures("tokens")
def test_the_scheme_is_read_in_any_case(api: Api) -> None:
    assert api("GET", "/v1/clock", headers={"Authorization": f"bearer  {OPERATOR}"}).status_code == 200


def test_while_no_token_exists_every_caller_is_an_operator(service: Service, api: Api) -> None:
    for headers in ({}, bearer("fw_stale"), {"Authorization": "Basic x"}):
        assert api("GET", "/v1/hosts", headers=headers).status_code == 200
    api("POST", "/v1/hosts/host-1/cordon")
    assert service.history()[-1].by == "operator"


# Tokens


def test_the_first_token_must_be_an_operators_and_then_every_request_needs_one(api: Api) -> None:
    user = {"name": "anna", "role": "user", "project": "a"}
    assert error_of(api("POST", "/v1/tokens", json=user)) == (409, "Conflict")
    made = api("POST", "/v1/tokens", json={"name": "olga", "role": "operator"})
    assert made.status_code == 201
    assert error_of(api("GET", "/v1/clock")) == (401, "Unauthorized")
    operator = bearer(made.json()["secret"])
    assert made.json()["secret"].startswith("fw_")
    assert api("POST", "/v1/tokens", json=user, headers=operator).status_code == 201


@pytest.mark.usefixtures("tokens")
def test_a_list_of_tokens_shows_no_secret_and_no_digest(api: Api) -> None:
    answer = api("GET", "/v1/tokens?limit=2", headers=bearer(OPERATOR))
    names = [each["name"] for each in answer.json()["tokens"]]
    assert names == ["olga", "vera"]
    assert set(answer.json()["tokens"][0]) == {
        *("name", "role", "project", "created_at", "created_by", "expires_at", "revoked_at")
    }
    rest = api("GET", f"/v1/tokens?after={answer.json()['next']}", headers=bearer(OPERATOR)).json()
    assert [each["name"] for each in rest["tokens"]] == ["anna-reads", "anna", "bert"]


@pytest.mark.usefixtures("tokens")
def test_a_revoked_token_is_refused_from_the_next_request_on(api: Api) -> None:
    assert api("GET", "/v1/machines", headers=bearer(B_USER)).status_code == 200
    revoked = api("POST", "/v1/tokens/bert/revoke", headers=bearer(OPERATOR)).json()["token"]
    assert revoked["revoked_at"] == "2026-01-05T12:00:00Z"
    assert error_of(api("GET", "/v1/machines", headers=bearer(B_USER))) == (401, "Unauthorized")
    assert error_of(api("POST", "/v1/tokens/bert/revoke", headers=bearer(OPERATOR))) == (404, "NotFound")


@pytest.mark.usefixtures("tokens")
def test_a_name_is_free_again_once_its_token_is_revoked(api: Api) -> None:
    wanted = {"name": "bert", "role": "viewer"}
    assert api("POST", "/v1/tokens", json=wanted, headers=bearer(OPERATOR)).status_code == 409
    api("POST", "/v1/tokens/bert/revoke", headers=bearer(OPERATOR))
    assert api("POST", "/v1/tokens", json=wanted, headers=bearer(OPERATOR)).status_code == 201


@pytest.mark.usefixtures("tokens")
def test_when_all_tokens_are_revoked_every_request_is_refused(service: Service, api: Api) -> None:
    for wanted in GRANTS:
        service.tokens.revoke(wanted.name, by="test")
    assert error_of(Api(app_of(service))("GET", "/v1/clock")) == (401, "Unauthorized")


@pytest.mark.usefixtures("tokens")
def test_a_token_expires_by_service_time(service: Service, api: Api) -> None:
    wanted = {"name": "temp", "role": "viewer", "expires_seconds": 3600}
    made = api("POST", "/v1/tokens", json=wanted, headers=bearer(OPERATOR)).json()
    assert made["token"]["expires_at"] == "2026-01-05T13:00:00Z"
    service.advance(minutes=59)
    assert api("GET", "/v1/clock", headers=bearer(made["secret"])).status_code == 200
    service.advance(minutes=1)
    assert error_of(api("GET", "/v1/clock", headers=bearer(made["secret"]))) == (401, "Unauthorized")


@pytest.mark.usefixtures("tokens")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"name": "a b", "role": "viewer"}, "name: expected a name of"),
        ({"name": "x", "role": "root"}, "role: expected viewer, user or operator"),
        ({"name": "x", "role": "user"}, "project: a user's token belongs to one project"),
        ({"name": "x", "role": "user", "project": "c"}, "project: expected one of the projects"),
        (
            {"name": "x", "role": "viewer", "expires_seconds": 0},
            "expires_seconds: expected more than 0 s, got 0 s",
        ),
        (
            {"name": "x", "role": "viewer", "expires_seconds": 1e300},
            "expires_seconds: expected at most 3650 d, got 1e+300 s",
        ),
        ({"name": "x", "role": "viewer", "secret": "mine"}, "secret: there is no such key in the body"),
    ],
)
def test_an_invalid_token_request_is_refused(api: Api, body: dict[str, Any], message: str) -> None:
    answer = api("POST", "/v1/tokens", json=body, headers=bearer(OPERATOR))
    assert error_of(answer) == (400, "Invalid")
    assert message in answer.json()["error"]["message"]


# Resources of projects


@pytest.mark.usefixtures("tokens")
def test_a_project_sees_only_its_own_resources(service: Service, api: Api) -> None:
    service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    service.order("a-0", Action.RESTART)
    service.order("b-0", Action.RESTART)
    for path, key, mine in (
        ("machines", "name", {"a-0", "a-1", "spot"}),
        ("groups", "name", {"a-web"}),
        ("orders", "machine", {"a-0"}),
        ("events", "group", {"a-web"}),
    ):
        for secret in (A_USER, A_VIEWER):
            found = api("GET", f"/v1/{path}", headers=bearer(secret)).json()[path]
            assert {each[key] for each in found} == mine
    records = api("GET", "/v1/history", headers=bearer(A_USER)).json()["records"]
    assert {each["project"] for each in records} == {"a"}
    there, nowhere = (
        api("GET", f"/v1/history?project={name}", headers=bearer(A_USER)).text.replace(f"{name}\\", "NAME")
        for name in ("b", "z")
    )
    assert there == nowhere


@pytest.mark.usefixtures("tokens")
def test_a_name_in_two_projects_means_the_callers_own(api: Api) -> None:
    shown = api("GET", "/v1/machines/spot", headers=bearer(B_USER)).json()["machine"]
    assert shown["project"] == "b"
    assert api("GET", "/v1/machines/spot", headers=bearer(OPERATOR)).status_code == 409
    assert error_of(api("GET", "/v1/machines/spot?project=a", headers=bearer(B_USER))) == (404, "NotFound")


@pytest.mark.usefixtures("tokens")
def test_resources_of_other_projects_are_answered_like_unknown_ones(service: Service, api: Api) -> None:
    order = service.order("a-0", Action.RESTART).order.id
    nobodys = "602D9444-D2CD-49C7-8624-8643E7171297"
    for path in ("/v1/machines/{}/restart", "/v1/machines/{}/terminate"):
        there, nowhere = (
            api("POST", path.format(name), headers=bearer(B_USER)).text.replace(name, "NAME")
            for name in ("a-0", "z-0")
        )
        assert there == nowhere
    there, nowhere = (
        api("POST", f"/v1/orders/{each}/cancel", headers=bearer(B_USER)).text.replace(each, "ID")
        for each in (order, nobodys)
    )
    assert there == nowhere


@pytest.mark.usefixtures("tokens")
def test_every_change_records_its_caller(service: Service, api: Api) -> None:
    placed = api("POST", "/v1/machines/a-0/restart", headers=bearer(A_USER)).json()
    assert placed["order"]["by"] == "anna"
    event = api("POST", f"/v1/events/{placed['event']['id']}/approve", headers=bearer(A_USER)).json()["event"]
    assert [(each["by"], each["kind"]) for each in event["approvals"]] == [("anna", "person")]
    api("POST", "/v1/clock/advance", json={"seconds": 60}, headers=bearer(OPERATOR))
    turned = service.history()[-1]
    assert (turned.kind, turned.by) == ("clock-advanced", "olga")
    assert turned.reason == "by 1 m to 2026-01-05T12:01:00Z"
    made = [each for each in service.history() if each.kind.startswith("token-")]
    assert [(each.by, each.reason) for each in made][-1] == ("test", "bert (user of b)")
    api("POST", "/v1/tokens/bert/revoke", headers=bearer(OPERATOR))
    last = service.history()[-1]
    assert (last.kind, last.by, last.reason) == ("token-revoked", "olga", "bert (user of b)")


# The authenticator


class Store:
    """A worker whose store can be unavailable."""

    away = False
    jobs = 0

    async def __call__(self, job: Any, /) -> Any:
        self.jobs += 1
        if self.away:
            raise Unavailable("away")
        return job()


async def who(authenticator: Authenticator, secret: str) -> str:
    return (await authenticator.identify(Credentials(token=secret))).caller.name


@pytest.mark.usefixtures("tokens")
def test_a_token_created_or_revoked_by_another_process_counts_within_a_second(service: Service) -> None:
    seconds = 0.0
    authenticator = Authenticator(
        service.sessions, run=Store(), now=service.clock.now, monotonic=lambda: seconds
    )
    service.tokens.create(Grant(name="new", role=Role.VIEWER), by="elsewhere")
    seconds = 0.95
    assert asyncio.run(who(authenticator, "fw_secret-6")) == "new"
    service.tokens.revoke("new", by="elsewhere")
    seconds = 1.9
    with pytest.raises(Exception, match="not known"):
        asyncio.run(who(authenticator, "fw_secret-6"))


@pytest.mark.usefixtures("tokens")
def test_a_hanging_worker_does_not_block_callers(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authentication, "LONGEST_WAIT", 0.01)
    seconds = 0.0

    async def hang(_: Any, /) -> Any:
        await asyncio.Event().wait()

    authenticator = Authenticator(
        service.sessions, run=hang, now=service.clock.now, monotonic=lambda: seconds
    )
    seconds = 5.0
    assert asyncio.run(who(authenticator, A_USER)) == "anna"
    with pytest.raises(Exception, match="not known"):
        asyncio.run(who(authenticator, "fw_guess"))


@pytest.mark.usefixtures("tokens")
def test_callers_share_one_deadline_while_a_worker_hangs(service: Service) -> None:
    seconds = 0.0

    async def hang(_: Any, /) -> Any:
        await asyncio.Event().wait()

    async def one_after_another() -> None:
        nonlocal seconds
        first = asyncio.create_task(who(authenticator, A_USER))
        await asyncio.sleep(0)
        seconds += authentication.LONGEST_WAIT
        # The request would wait for a second, in which no other request arrives.
        assert await asyncio.wait_for(who(authenticator, A_USER), authentication.LONGEST_WAIT / 2) == "anna"
        assert not first.done()
        first.cancel()

    authenticator = Authenticator(
        service.sessions, run=hang, now=service.clock.now, monotonic=lambda: seconds
    )
    seconds = 5.0
    asyncio.run(one_after_another())


@pytest.mark.usefixtures("tokens")
def test_an_unknown_token_does_not_load_the_worker(service: Service) -> None:
    seconds, store = 0.0, Store()
    authenticator = Authenticator(
        service.sessions, run=store, now=service.clock.now, monotonic=lambda: seconds
    )
    for guess in range(100):
        with pytest.raises(Exception, match="not known"):
            asyncio.run(who(authenticator, f"fw_guess-{guess}"))
    assert store.jobs == 0


@pytest.mark.usefixtures("tokens")
def test_concurrent_callers_share_one_refresh(service: Service) -> None:
    seconds, store = 0.0, Store()
    authenticator = Authenticator(
        service.sessions, run=store, now=service.clock.now, monotonic=lambda: seconds
    )
    seconds = 60.0

    async def all_at_once() -> list[str]:
        return await asyncio.gather(*(who(authenticator, OPERATOR) for _ in range(10)))

    assert asyncio.run(all_at_once()) == ["olga"] * 10
    assert store.jobs == 1


@pytest.mark.usefixtures("tokens")
def test_tokens_are_loaded_again_only_after_a_change(service: Service) -> None:
    known = service.sessions.loaded()
    service.order("a-0", Action.FREEZE)
    after = service.sessions.loaded(known)
    assert after.keyring.number > known.keyring.number
    assert after.keyring.tokens is known.keyring.tokens
    service.tokens.revoke("bert", by="elsewhere")
    assert [token.name for token in service.sessions.loaded(after).keyring.tokens] == [
        *(token.name for token in known.keyring.tokens if token.name != "bert")
    ]


@pytest.mark.usefixtures("tokens")
def test_a_token_of_a_project_that_is_removed_is_refused_at_once(service: Service, api: Api) -> None:
    assert api("GET", "/v1/machines", headers=bearer(B_USER)).status_code == 200
    without_b = write_fleet(fleet_of(A))
    assert api("PUT", "/v1/fleet", json=without_b, headers=bearer(OPERATOR)).status_code == 200
    assert api("GET", "/v1/machines", headers=bearer(B_USER)).status_code == 401


@pytest.mark.usefixtures("tokens")
def test_known_tokens_stay_valid_during_an_outage_of_the_store(service: Service) -> None:
    seconds, store = 0.0, Store()
    authenticator = Authenticator(
        service.sessions, run=store, now=service.clock.now, monotonic=lambda: seconds
    )
    store.away, seconds = True, 60.0
    assert asyncio.run(who(authenticator, OPERATOR)) == "olga"
    with pytest.raises(Exception, match="not known"):
        asyncio.run(who(authenticator, "fw_guessed"))


@pytest.mark.usefixtures("tokens")
def test_a_token_revoked_before_an_outage_does_not_count(service: Service) -> None:
    store = Store()
    authenticator = Authenticator(service.sessions, run=store, now=service.clock.now, monotonic=lambda: 0.0)
    service.tokens.revoke("olga", by="here")
    authenticator.forget()
    store.away = True
    for _ in range(2):
        with pytest.raises(Unavailable, match="were changed"):
            asyncio.run(who(authenticator, OPERATOR))
    store.away = False
    with pytest.raises(Exception, match="not known"):
        asyncio.run(who(authenticator, OPERATOR))


def test_the_expiry_of_a_grant_is_kept(service: Service) -> None:
    wanted = Grant(name="olga", role=Role.OPERATOR, life=timedelta(days=1))
    token, _ = service.tokens.create(wanted, by="test")
    assert service.sessions.loaded().keyring.tokens == (token,)


@pytest.mark.usefixtures("tokens")
@pytest.mark.parametrize("terms", [{"emergency": "I cannot wait"}, {"driver": "external"}])
def test_only_an_operator_may_break_a_promise_or_choose_an_external_driver(
    api: Api, terms: dict[str, str]
) -> None:
    answer = api("POST", "/v1/machines/a-0/restart", json=terms, headers=bearer(A_USER))
    assert error_of(answer) == (403, "Forbidden")
