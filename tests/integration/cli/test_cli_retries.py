"""Commands after a broken connection or a 503 are sent again and take effect once."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from forewarn.api.error_answers import refusal
from forewarn.cli.main import app
from forewarn.client import retrying
from forewarn.core.errors import RETRY_ADVICE, ForewarnError, Unavailable, Uncertain
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
from tests.helpers.service.served import app_of, sample, serving


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(sample())
    yield service
    service.close()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "FIRST_PAUSE", 0.0)


class FaultyApp:
    """An app that answers each POST with the next fault in a list, and remembers the keys."""

    def __init__(self, app: ASGIApp, *troubles: Callable[..., object]) -> None:
        self._app = app
        self._left = list(troubles)
        self.keys: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            self.keys.append(dict(scope["headers"])[b"idempotency-key"].decode())
            if self._left:
                await self._left.pop(0)(self._app, scope, receive, send)  # type: ignore[misc]
                return
        await self._app(scope, receive, send)


async def lose_answer(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Carry out the request, and break the connection in the middle of the answer."""

    async def only_the_head(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)

    await app(scope, receive, only_the_head)


async def be_full(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    await refuse(Unavailable("the disk is full"), scope, receive, send)


async def be_unavailable(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    await refuse(Unavailable("fleet does not answer; nothing was done by this call"), scope, receive, send)


async def be_uncertain(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    await refuse(Uncertain(f"fleet does not answer; {RETRY_ADVICE}"), scope, receive, send)


async def do_it_and_be_uncertain(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Carry out the request, and answer that the result is uncertain."""

    async def nowhere(message: Message) -> None:
        pass

    await app(scope, receive, nowhere)
    await be_uncertain(app, scope, receive, send)


async def refuse(error: ForewarnError, scope: Scope, receive: Receive, send: Send) -> None:
    answer = refusal(error)
    answer.headers["Retry-After"] = "0"
    await answer(scope, receive, send)


def run(url: str, *words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["--server", url, *words])
    assert result.exit_code == code, result.output
    return result


def final_message(result: Result) -> str:
    """Return the message after the last retry."""
    return result.stderr.rpartition("trying again in 0 s: ")[2].partition("\n")[2]


def test_a_command_whose_answer_is_lost_is_sent_again_and_takes_effect_once(service: Service) -> None:
    troubled = FaultyApp(app_of(service), lose_answer, be_full)
    with serving(troubled) as url:
        result = run(url, "machine", "restart", "web-0", "--json")
    assert len(troubled.keys) == 3
    assert len(set(troubled.keys)) == 1
    placed, _ = service.views.orders(after=None, limit=10)
    assert [json.loads(result.stdout)["order"]["id"]] == [order.id for order in placed]
    assert result.stderr.count("trying again in 0 s: ") == 2


def test_repeatedly_broken_connections_leave_the_result_uncertain(service: Service) -> None:
    troubled = FaultyApp(app_of(service), *[lose_answer] * 9)
    with serving(troubled) as url:
        result = run(url, "machine", "restart", "web-0", code=3)
    assert len(troubled.keys) == retrying.TRIES
    assert "it may still happen; the last try ended with: No server answers" in final_message(result)


@pytest.mark.parametrize("first", [be_uncertain, do_it_and_be_uncertain, lose_answer])
def test_the_final_message_is_uncertain_whatever_later_tries_answer(
    service: Service, first: Callable[..., object]
) -> None:
    troubled = FaultyApp(app_of(service), first, *[be_unavailable] * 9)
    with serving(troubled) as url:
        result = run(url, "machine", "restart", "web-0", code=3)
    assert len(troubled.keys) == retrying.TRIES
    assert "it may still happen; the last try ended with: fleet does not answer" in final_message(result)
    assert "`forewarn history`, `forewarn order list`" in final_message(result)


def test_json_reports_the_code_uncertain(service: Service) -> None:
    with serving(FaultyApp(app_of(service), be_uncertain, *[be_unavailable] * 9)) as url:
        result = run(url, "machine", "restart", "web-0", "--json", code=3)
    said = json.loads(result.stderr.splitlines()[-1])["error"]
    assert said["code"] == "Uncertain"
    assert "it may still happen" in said["message"]


def test_a_call_without_effect_is_refused(service: Service) -> None:
    with serving(FaultyApp(app_of(service), *[be_unavailable] * 9)) as url:
        result = run(url, "machine", "restart", "web-0", code=1)
    assert "may still happen" not in result.stderr


@pytest.mark.parametrize("first", [be_uncertain, do_it_and_be_uncertain])
def test_retries_of_an_uncertain_command_take_effect_once(
    service: Service, first: Callable[..., object]
) -> None:
    troubled = FaultyApp(app_of(service), first, be_unavailable)
    with serving(troubled) as url:
        result = run(url, "machine", "restart", "web-0", "--json")
    assert len(set(troubled.keys)) == 1
    placed, _ = service.views.orders(after=None, limit=10)
    assert [json.loads(result.stdout)["order"]["id"]] == [order.id for order in placed]


def test_an_unreachable_server_is_not_retried() -> None:
    result = run("http://127.0.0.1:9", "machine", "restart", "web-0", code=3)
    assert "trying again" not in result.stderr
