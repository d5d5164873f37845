"""Commands whose connection breaks, or who are asked for patience: sent again, and done once."""

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
    await refuse(Unavailable("the disk is full"), scope, receive, send)


async def be_silent(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    await refuse(Unavailable("fleet does not answer; nothing was done by this call"), scope, receive, send)


async def be_uncertain(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    await refuse(Uncertain(f"fleet does not answer; {RETRY_ADVICE}"), scope, receive, send)


async def do_it_in_the_dark(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Do what is asked, and answer that this is not known."""

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


def last_word(result: Result) -> str:
    """What a command says in the end, after all its tries."""
    return result.stderr.rpartition("trying again in 0 s: ")[2].partition("\n")[2]


def test_a_command_whose_answer_is_lost_is_sent_again_and_done_once(service: Service) -> None:
    troubled = Troubled(app_of(service), lose_answer, be_full)
    with serving(troubled) as url:
        result = run(url, "machine", "restart", "web-0", "--json")
    assert len(troubled.keys) == 3
    assert len(set(troubled.keys)) == 1
    placed, _ = service.views.orders(after=None, limit=10)
    assert [json.loads(result.stdout)["order"]["id"]] == [order.id for order in placed]
    assert result.stderr.count("trying again in 0 s: ") == 2


def test_a_server_that_breaks_off_again_and_again_leaves_it_open_what_was_done(service: Service) -> None:
    troubled = Troubled(app_of(service), *[lose_answer] * 9)
    with serving(troubled) as url:
        result = run(url, "machine", "restart", "web-0", code=3)
    assert len(troubled.keys) == retrying.TRIES
    assert "it may still happen; the last try ended with: No server answers" in last_word(result)


@pytest.mark.parametrize("first", [be_uncertain, do_it_in_the_dark, lose_answer])
def test_what_may_still_happen_is_the_last_word_whatever_later_tries_are_told(
    service: Service, first: Callable[..., object]
) -> None:
    troubled = Troubled(app_of(service), first, *[be_silent] * 9)
    with serving(troubled) as url:
        result = run(url, "machine", "restart", "web-0", code=3)
    assert len(troubled.keys) == retrying.TRIES
    assert "it may still happen; the last try ended with: fleet does not answer" in last_word(result)
    assert "`forewarn history`, `forewarn order list`" in last_word(result)


def test_what_may_still_happen_is_uncertain_to_a_program(service: Service) -> None:
    with serving(Troubled(app_of(service), be_uncertain, *[be_silent] * 9)) as url:
        result = run(url, "machine", "restart", "web-0", "--json", code=3)
    said = json.loads(result.stderr.splitlines()[-1])["error"]
    assert said["code"] == "Uncertain"
    assert "it may still happen" in said["message"]


def test_a_call_that_nothing_was_done_for_is_refused(service: Service) -> None:
    with serving(Troubled(app_of(service), *[be_silent] * 9)) as url:
        result = run(url, "machine", "restart", "web-0", code=1)
    assert "may still happen" not in result.stderr


@pytest.mark.parametrize("first", [be_uncertain, do_it_in_the_dark])
def test_a_command_that_was_uncertain_is_done_once_by_its_repeats(
    service: Service, first: Callable[..., object]
) -> None:
    troubled = Troubled(app_of(service), first, be_silent)
    with serving(troubled) as url:
        result = run(url, "machine", "restart", "web-0", "--json")
    assert len(set(troubled.keys)) == 1
    placed, _ = service.views.orders(after=None, limit=10)
    assert [json.loads(result.stdout)["order"]["id"]] == [order.id for order in placed]


def test_a_server_that_is_not_there_is_not_waited_for() -> None:
    result = run("http://127.0.0.1:9", "machine", "restart", "web-0", code=3)
    assert "trying again" not in result.stderr
