"""The client of the operator API against scripted answers."""

import asyncio
import json
import socket
from dataclasses import fields
from typing import Any

import httpx
import pytest

from forewarn.client.async_calls import AsyncOperatorClient
from forewarn.client.calls import OperatorClient
from forewarn.client.replies import AnswerNotUnderstood, OutcomeUnknown, RequestRefused, ServerUnreachable
from forewarn.core.errors import Conflict
from forewarn.rehearsal.target import OperatorApi
from forewarn.wire.answers.fleet_answers import HostAnswer
from forewarn.wire.answers.service_answers import ClockAnswer

CLOCK = {"kind": "manual", "now": "2026-01-05T12:00:00Z", "speed": 0.0}


def client(*answers: tuple[int, object]) -> AsyncOperatorClient:
    """Return a client whose calls get these answers in turn."""
    left = list(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        status, body = left.pop(0)
        return httpx.Response(status, content=body if isinstance(body, bytes) else json.dumps(body))

    return AsyncOperatorClient(
        httpx.AsyncClient(base_url="http://here", transport=httpx.MockTransport(answer))
    )


def over_limit(retry_after: str = "1") -> httpx.Response:
    return httpx.Response(
        429,
        json={"error": {"code": "LimitReached", "message": "too often"}},
        headers={"Retry-After": retry_after},
    )


class Limited:
    """A server that limits some calls, and the pauses of its clients."""

    def __init__(self, *refusals: httpx.Response) -> None:
        self._left = list(refusals)
        self.waits: list[float] = []
        self.transport = httpx.MockTransport(self._answer)

    async def wait(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def call(self, method: str) -> Any:
        http = httpx.AsyncClient(base_url="http://here", transport=self.transport)
        reply = await AsyncOperatorClient(http, wait=self.wait).call(method, "/v1/clock", ClockAnswer)
        return reply.json

    def _answer(self, request: httpx.Request) -> httpx.Response:
        return self._left.pop(0) if self._left else httpx.Response(200, json=CLOCK)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_call_over_a_rate_limit_is_retried_after_the_requested_pause(method: str) -> None:
    server = Limited(over_limit("1"), over_limit("2"))
    assert asyncio.run(server.call(method)) == CLOCK
    assert server.waits == [1.0, 2.0]


@pytest.mark.parametrize(
    ("refusals", "waits"),
    [([over_limit()] * 9, 4), ([over_limit("60")], 0), ([over_limit("soon")], 0)],
    ids=["again and again", "for long", "for an unknown time"],
)
def test_a_lasting_limit_is_raised(refusals: list[httpx.Response], waits: int) -> None:
    server = Limited(*refusals)
    with pytest.raises(RequestRefused, match="too often") as refused:
        asyncio.run(server.call("GET"))
    assert (refused.value.status, len(server.waits)) == (429, waits)


def clock(*answers: tuple[int, object]) -> Any:
    return asyncio.run(client(*answers).get("/v1/clock", ClockAnswer))


def test_a_reply_has_a_value_and_the_json() -> None:
    sent = CLOCK | {"leap_seconds": 27}
    reply = clock((200, sent))
    assert (reply.value.kind, reply.value.now.year) == ("manual", 2026)
    assert reply.json == sent


def test_request_refused_has_the_message_and_status_of_the_server() -> None:
    with pytest.raises(RequestRefused, match="no such thing") as refused:
        clock((404, {"error": {"code": "NotFound", "message": "no such thing"}}))
    assert refused.value.status == 404


@pytest.mark.parametrize(
    "answer",
    [(200, b"<html>"), (500, {"detail": "oops"}), (404, b"[]"), (200, b"[" * 5000)],
    ids=["html", "another API", "a list", "nested without end"],
)
def test_an_answer_of_another_program_is_server_unreachable(answer: tuple[int, object]) -> None:
    with pytest.raises(ServerUnreachable, match="is not a forewarn server"):
        clock(answer)


def test_an_answer_without_a_key_is_not_understood() -> None:
    reply = clock((200, {"kind": "manual", "speed": 1.0}))
    with pytest.raises(AnswerNotUnderstood, match=r"at http://here has a version .* its answer has no 'now'"):
        _ = reply.value


def host(name: str, *, state: str = "ok") -> dict[str, Any]:
    """Return a host as a server sends it."""
    nothing = dict.fromkeys(each.name for each in fields(HostAnswer))
    known = {"name": name, "state": state, "driver": "external", "source": "declared", "bare_metal": False}
    return {**nothing, **known, "resources": {}, "labels": {}}


def test_an_unknown_enum_value_is_a_string() -> None:
    sent = {"hosts": [host("host-0", state="resting")], "next": None}
    reply = asyncio.run(client((200, sent)).all(HostAnswer))
    assert reply.value.items[0].state == "resting"


def test_all_reads_page_by_page() -> None:
    hosts = [host(f"host-{n}") for n in range(3)]
    pages = [(200, {"hosts": hosts[:2], "next": "two"}), (200, {"hosts": hosts[2:], "next": None})]
    reply = asyncio.run(client(*pages).all(HostAnswer))
    assert [host.name for host in reply.value.items] == ["host-0", "host-1", "host-2"]
    assert reply.json == {"hosts": hosts, "next": None}


def test_a_rehearsal_reports_a_server_of_another_version() -> None:
    api = OperatorApi(client((200, {"kind": "manual", "speed": 1.0})))
    with pytest.raises(Conflict, match="has a version"):
        asyncio.run(api.call("GET", "/v1/clock", ClockAnswer))


class Breaking:
    """A server that fails calls in these ways, and records their keys."""

    def __init__(self, *troubles: Exception | httpx.Response) -> None:
        self._left = list(troubles)
        self.keys: list[str | None] = []
        self.waits: list[float] = []

    async def wait(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def call(self, method: str, **more: Any) -> Any:
        http = httpx.AsyncClient(base_url="http://here", transport=httpx.MockTransport(self._answer))
        reply = await AsyncOperatorClient(http, wait=self.wait).call(method, "/v1/clock", ClockAnswer, **more)
        return reply.json

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.keys.append(request.headers.get("Idempotency-Key"))
        trouble = self._left.pop(0) if self._left else httpx.Response(200, json=CLOCK)
        if isinstance(trouble, Exception):
            raise trouble
        return trouble


def full(retry_after: str = "5", *, code: str = "Unavailable", status: int = 503) -> httpx.Response:
    body = {"error": {"code": code, "message": "the disk is full"}}
    return httpx.Response(status, json=body, headers={"Retry-After": retry_after})


def test_a_post_is_retried_with_its_key_after_a_broken_connection() -> None:
    server = Breaking(httpx.ReadError("reset"), httpx.ConnectError("refused"), full())
    assert asyncio.run(server.call("POST")) == CLOCK
    assert server.waits == [0.5, 1.0, 5.0]
    assert (len(server.keys), len(set(server.keys))) == (4, 1)
    assert None not in server.keys


def test_each_post_has_its_own_key_and_reads_have_none() -> None:
    server = Breaking()
    for method in ("POST", "POST", "GET"):
        asyncio.run(server.call(method))
    first, second, third = server.keys
    assert first != second
    assert third is None


@pytest.mark.parametrize("trouble", [httpx.ReadError("reset"), full()])
def test_a_call_without_a_key_is_not_retried(trouble: Exception | httpx.Response) -> None:
    server = Breaking(trouble)
    with pytest.raises((ServerUnreachable, RequestRefused)):
        asyncio.run(server.call("GET"))
    assert server.waits == []


@pytest.mark.parametrize("trouble", [httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), full("60")])
def test_a_missing_server_is_reported_at_once(trouble: Any) -> None:
    server = Breaking(trouble)
    with pytest.raises((ServerUnreachable, RequestRefused)):
        asyncio.run(server.call("POST"))
    assert len(server.keys) == 1


def test_a_post_is_retried_a_limited_number_of_times() -> None:
    server = Breaking(*[httpx.ReadError("reset")] * 9)
    with pytest.raises(ServerUnreachable, match="No server answers"):
        asyncio.run(server.call("POST"))
    assert len(server.keys) == 5


UNCERTAIN = full(code="Uncertain")


@pytest.mark.parametrize(
    "troubles",
    [
        [UNCERTAIN, *[full()] * 4],
        [UNCERTAIN, full("60")],
        [UNCERTAIN, over_limit("60")],
        [UNCERTAIN, full(status=500)],
        [httpx.ReadError("reset"), *[full()] * 4],
        [httpx.ReadError("reset"), *[httpx.ConnectError("refused")] * 4],
        [httpx.Response(504, content=b"<html>"), *[full()] * 4],
        [httpx.ReadTimeout("slow")],
    ],
    ids=str,
)
def test_a_post_that_may_still_take_effect_is_outcome_unknown(
    troubles: list[Exception | httpx.Response],
) -> None:
    server = Breaking(*troubles)
    with pytest.raises(OutcomeUnknown, match="it may still happen"):
        asyncio.run(server.call("POST"))
    assert len(server.keys) == len(troubles)


@pytest.mark.parametrize("trouble", [UNCERTAIN, httpx.ReadError("reset")])
def test_a_put_that_may_still_take_effect_is_outcome_unknown(
    trouble: Exception | httpx.Response,
) -> None:
    server = Breaking(trouble)
    with pytest.raises(OutcomeUnknown, match="it may still happen"):
        asyncio.run(server.call("PUT"))
    assert len(server.keys) == 1


def test_a_final_decision_of_the_server_is_raised_as_it_is() -> None:
    server = Breaking(UNCERTAIN, full(status=409, code="Conflict"))
    with pytest.raises(RequestRefused) as refused:
        asyncio.run(server.call("POST"))
    assert refused.value.status == 409


@pytest.mark.parametrize("more", [{"body": {"dry_run": True}}, {"params": {"dry_run": True}}])
def test_a_dry_run_is_never_outcome_unknown(more: dict[str, Any]) -> None:
    server = Breaking(*[httpx.ReadError("reset")] * 9)
    with pytest.raises(ServerUnreachable, match=r"^No server answers"):
        asyncio.run(server.call("POST", **more))


def test_a_server_that_hangs_is_unreachable_after_the_timeout() -> None:
    """A listener that accepts and never answers; without the limit the call would last ten minutes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        hanging = OperatorClient(f"http://127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(ServerUnreachable, match="timed out"):
            hanging.with_answer_timeout(0.05).get("/v1/clock", ClockAnswer)
        with hanging.with_answer_timeout(0.05).keeping_connection() as kept, pytest.raises(ServerUnreachable):
            kept.get("/v1/clock", ClockAnswer)
