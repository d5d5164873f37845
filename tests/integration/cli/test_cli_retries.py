"""Commands whose connection breaks, or who are asked for patience: sent again, and done once."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from typer.testing import CliRunner, Result

from forewarn.api.errors import refusal
from forewarn.cli.main import app
from forewarn.client import retrying
from forewarn.core.errors import Unavailable
from tests.harness import Service
from tests.served import app_of, sample, serving
from tests.stores import sqlite_url


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(sample())
    yield service
    service.close()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "FIRST_PAUSE", 0.0)


class Troubled:
    """An app that meets each POST with the next of some troubles, and remembers the keys."""

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
    """Do what is asked, and break off in the middle of the answer."""

    async def only_the_head(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)

    await app(scope, receive, only_the_head)


async def be_full(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    answer = refusal(Unavailable("the disk is full"))
    answer.headers["Retry-After"] = "0"
    await answer(scope, receive, send)


def run(url: str, *words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["--server", url, *words])
    assert result.exit_code == code, result.output
    return result


def test_a_command_whose_answer_is_lost_is_sent_again_and_done_once(service: Service) -> None:
    troubled = Troubled(app_of(service), lose_answer, be_full)
    with serving(troubled) as url:
        result = run(url, "machine", "restart", "web-0", "--json")
    assert len(troubled.keys) == 3
    assert len(set(troubled.keys)) == 1
    placed, _ = service.views.orders(after=None, limit=10)
    assert [json.loads(result.stdout)["order"]["id"]] == [order.id for order in placed]
    assert result.stderr.count("trying again in 0 s: ") == 2


def test_a_server_that_breaks_off_again_and_again_is_said_to_be_unreachable(service: Service) -> None:
    troubled = Troubled(app_of(service), *[lose_answer] * 9)
    with serving(troubled) as url:
        result = run(url, "machine", "restart", "web-0", code=3)
    assert len(troubled.keys) == retrying.TRIES
    assert "No server answers" in result.stderr


def test_a_server_that_is_not_there_is_not_waited_for() -> None:
    result = run("http://127.0.0.1:9", "machine", "restart", "web-0", code=3)
    assert "trying again" not in result.stderr
