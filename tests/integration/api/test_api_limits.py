"""The limits of callers over HTTP."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from forewarn.api.error_answers import http_refusal
from forewarn.api.limits import BodyLimits, CallerLimits, LimitExceeded
from forewarn.api.services import ApiSettings
from forewarn.client.calls import OperatorClient
from forewarn.wire.answers.service_answers import ClockAnswer
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
from tests.helpers.service.served import Api, app_of, serving
from tests.helpers.service.tenants import A_USER, B_USER, OPERATOR, bearer, let_in, two_projects

FEW = CallerLimits(rate=0.001, calls=1, streams=1)
FREE = CallerLimits(rate=0, calls=1, streams=2)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(two_projects())
    yield service
    service.close()


def limited(service: Service, limits: CallerLimits, bodies: BodyLimits | None = None) -> ASGIApp:
    return app_of(service, settings=ApiSettings(limits=limits, bodies=bodies or BodyLimits()))


def error_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_the_rate_of_one_token_does_not_limit_others(service: Service) -> None:
    let_in(service)
    api = Api(limited(service, FEW))
    assert api("GET", "/v1/machines", headers=bearer(A_USER)).status_code == 200
    refused = api("GET", "/v1/machines", headers=bearer(A_USER))
    assert error_of(refused) == (429, "LimitReached")
    assert refused.headers["Retry-After"] == "1000"
    assert refused.json()["error"]["message"].startswith("rate of token 'anna' is exceeded (0.001 a second)")
    assert api("GET", "/v1/machines", headers=bearer(B_USER)).status_code == 200
    metrics = api("GET", "/metrics", headers=bearer(OPERATOR)).text
    assert 'forewarn_requests_refused_total{limit="rate"} 1.0' in metrics


@pytest.mark.parametrize("key", [{}, {"Idempotency-Key": "one"}])
def test_each_call_runs_in_the_queue_of_its_caller(service: Service, key: dict[str, str]) -> None:
    let_in(service)
    turns: list[str] = []
    api = Api(app_of(service, turns=turns))
    for method, path in (("GET", "/v1/machines"), ("POST", "/v1/machines/a-0/restart")):
        assert api(method, path, headers={**bearer(A_USER), **key}).status_code in (200, 202)
        assert turns == ["project a"]
        turns.clear()


def test_requests_without_a_valid_token_are_limited_by_address(service: Service) -> None:
    let_in(service)
    api = Api(limited(service, FEW))
    assert api("GET", "/v1/machines", headers=bearer("fw_guess")).status_code == 401
    assert api("GET", "/v1/machines").status_code == 429
    assert api("GET", "/v1/machines", headers=bearer(OPERATOR)).status_code == 200
    assert api("GET", "/healthz").status_code == 200


def test_without_tokens_an_address_has_ten_times_the_limits(service: Service) -> None:
    api = Api(limited(service, CallerLimits(rate=1)))
    statuses = [api("GET", "/v1/clock").status_code for _ in range(20)]
    assert statuses == [200] * 20


def test_streams_and_other_requests_have_separate_limits(service: Service) -> None:
    let_in(service)
    with (
        serving(limited(service, FREE)) as url,
        httpx.Client(base_url=url, headers=bearer(A_USER), trust_env=False, verify=False) as client,
        ExitStack() as streams,
    ):
        for _ in range(2):
            assert streams.enter_context(client.stream("GET", "/v1/stream")).status_code == 200
        refused = client.get("/v1/stream")
        assert error_of(refused) == (429, "LimitReached")
        assert refused.headers["Retry-After"] == "10"
        assert client.get("/v1/machines").status_code == 200
        other = streams.enter_context(client.stream("GET", "/v1/stream", headers=bearer(B_USER)))
        assert other.status_code == 200
        service.recent.close()


def test_a_call_counts_until_it_is_answered(service: Service) -> None:
    let_in(service)
    app = limited(service, FREE)

    async def half_sent(sent: asyncio.Event, go_on: asyncio.Event) -> None:
        async def body() -> object:
            sent.set()
            await go_on.wait()
            yield b"{}"

        async with client() as http:
            answer = await http.post("/v1/machines/a-0/restart", content=body())  # type: ignore[arg-type]
            assert answer.status_code == 202

    def client() -> httpx.AsyncClient:
        transport = httpx.ASGITransport(app=app)
        return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=bearer(A_USER))

    async def both() -> tuple[int, int]:
        sent, go_on = asyncio.Event(), asyncio.Event()
        first = asyncio.create_task(half_sent(sent, go_on))
        await sent.wait()
        async with client() as http:
            refused = await http.get("/v1/machines")
            go_on.set()
            await first
            return refused.status_code, (await http.get("/v1/machines")).status_code

    assert asyncio.run(both()) == (429, 200)


@pytest.mark.parametrize(
    ("call", "secret", "status"),
    [
        ("POST /v1/machines/a-0/restart", A_USER, 413),
        ("POST /v1/clock/advance", OPERATOR, 413),
        ("PUT /v1/fleet", A_USER, 403),
        ("PUT /v1/fleet", OPERATOR, 400),  # it is read and refused
    ],
)
def test_only_an_operators_fleet_may_be_large(service: Service, call: str, secret: str, status: int) -> None:
    let_in(service)
    method, path = call.split()
    body = b" " * (1024 * 1024 + 1)
    answer = Api(limited(service, FREE))(method, path, content=body, headers=bearer(secret))
    assert answer.status_code == status


def test_a_body_beyond_the_total_size_is_refused_for_now(service: Service) -> None:
    let_in(service)
    api = Api(limited(service, FREE, BodyLimits(all_of_projects=0)))
    order = "/v1/machines/a-0/restart"
    refused = api("POST", order, content=b" " * 70_000, headers=bearer(A_USER))
    assert error_of(refused) == (429, "LimitReached")
    assert refused.headers["Retry-After"] == "1"
    assert api("POST", order, json={"reason": "small"}, headers=bearer(A_USER)).status_code == 202


def test_a_blocking_client_that_is_over_a_limit_waits_and_is_answered(service: Service) -> None:
    app, refusals = app_of(service), [LimitExceeded("too often", retry_after=seconds) for seconds in (1, 2)]

    async def limited_at_first(scope: Scope, receive: Receive, send: Send) -> None:
        await (http_refusal(refusals.pop(0)) if refusals else app)(scope, receive, send)

    waits: list[float] = []
    with serving(limited_at_first) as url:
        reply = OperatorClient(url, wait=waits.append).get("/v1/clock", ClockAnswer)
    assert reply.value.kind == "manual"
    assert waits == [1.0, 2.0]
