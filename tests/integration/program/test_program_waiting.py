"""Long polls and rate limits of a real server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.programs.process import Held, Program, sample_fleet, until

WEB_0, WEB_1, BATCH_0 = "127.0.1.10", "127.0.1.11", "127.0.1.30"


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path)) as program:
        yield program


def test_a_long_poll_is_answered_when_an_order_is_placed(program: Program) -> None:
    etag = program.guest(WEB_0).poll().headers["etag"]
    others = program.guest(BATCH_0).poll().headers["etag"]
    held = Held(program.guests[0], address=WEB_1, If_None_Match=etag, Prefer="wait=300")
    other = Held(program.guests[0], address=BATCH_0, If_None_Match=others, Prefer="wait=300")
    # Sent later and answered at once: by now the others have been read and wait.
    assert program.guest(WEB_1).poll().status_code == 200
    assert not held.answered
    event = program.post("/v1/machines/web-0/restart")["event"]
    head, _, body = held.answer().partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 OK\r\n")
    assert "\r\nPreference-Applied: wait=300" in head
    assert [seen["EventId"] for seen in json.loads(body)["Events"]] == [event["id"]]
    assert not other.answered
    other.close()


def test_a_long_poll_whose_wait_is_over_gets_304(program: Program) -> None:
    etag = program.guest(WEB_0).poll().headers["etag"]
    answer = program.guest(WEB_0).poll(If_None_Match=etag, Prefer="wait=1")
    assert answer.status_code == 304
    assert answer.headers["preference-applied"] == "wait=1"


def test_the_next_poll_shows_an_order(program: Program) -> None:
    guest = program.guest(WEB_0)
    guest.document()
    event = program.post("/v1/machines/web-0/redeploy")["event"]
    assert guest.document()["Events"][0]["EventId"] == event["id"]
    assert guest.approve(event["id"]).status_code == 200
    program.advance(0)
    assert guest.document()["Events"][0]["EventStatus"] == "Started"
    program.advance(300)
    assert guest.document() == {"DocumentIncarnation": 4, "Events": []}


def test_only_a_caller_over_its_rate_limit_gets_429(program: Program) -> None:
    guest = program.guest(WEB_0)
    # Five a second with a burst of ten: fifty at once exceed that.
    answers = [guest.poll() for _ in range(50)]
    assert {answer.status_code for answer in answers[:10]} == {200}
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused
    assert refused[0].headers["retry-after"] == "1"
    assert program.guest(WEB_1).poll().status_code == 200


def test_a_first_poll_waits_for_the_enable_delay_in_service_time(tmp_path: Path) -> None:
    delay = {"FOREWARN_TIMES_ENABLE_DELAY": "2m"}
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path), environment=delay) as program:
        first = Held(program.guests[0], address=WEB_0)
        until(lambda: program.get("/v1/groups/web")["group"]["enabled"], what="the poll to be taken")
        program.advance(119)
        # Each group's delay starts with its own first poll.
        other = Held(program.guests[0], address=BATCH_0)
        assert not first.answered
        program.advance(1)
        assert first.answer().startswith("HTTP/1.1 200 OK\r\n")
        assert program.guest(WEB_1).poll().status_code == 200
        assert not other.answered
        other.close()
