"""The stream of a real server: every record comes exactly once, and a slow reader delays no caller."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.helpers.programs.follower import Follower
from tests.helpers.programs.process import Program, operator_client, sample_fleet, until

ORDERS = 120


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path)) as program:
        yield program


def newest(program: Program) -> int:
    return int(program.get("/v1/history", params={"limit": 1})["records"][0]["number"])


def storm(program: Program, done: threading.Event) -> None:
    """Place and cancel orders until the test stops it."""
    with operator_client(program.operators) as api:
        for _ in range(ORDERS):
            order = api.post("/v1/hosts/host-1/maintenance", json={"action": "freeze"}).json()["order"]
            assert api.post(f"/v1/orders/{order['id']}/cancel").status_code == 200
    done.set()


def test_every_record_is_one_event_as_in_the_history(program: Program) -> None:
    with Follower(program.operators, "?since=0") as follower:
        program.post("/v1/machines/web-0/freeze")
        follower.wait_for(newest(program))
        history = program.history()
        assert follower.records == history
        assert follower.kinds == [record["kind"] for record in history]


def test_without_a_number_the_stream_begins_now(program: Program) -> None:
    before = newest(program)
    with Follower(program.operators) as follower:
        program.post("/v1/machines/web-0/freeze")
        follower.wait_for(newest(program))
        assert min(follower.numbers) == before + 1


def test_a_storm_of_records_is_followed_through_reconnects(program: Program) -> None:
    done = threading.Event()
    first = newest(program)
    with ThreadPoolExecutor() as pool, Follower(program.operators) as follower:
        storming = pool.submit(storm, program, done)
        while not done.is_set():
            seen = len(follower.numbers)
            until(lambda seen=seen: done.is_set() or len(follower.numbers) > seen + 20, what="records")
            follower.disconnect()
            follower.resume()
        storming.result()
        follower.wait_for(newest(program))
        wanted = [each["number"] for each in program.history() if each["number"] > first]
        assert follower.numbers == wanted
        assert len(wanted) > ORDERS


def test_the_stream_resumes_after_a_crash(program: Program) -> None:
    with Follower(program.operators) as follower:
        program.post("/v1/machines/web-0/freeze")
        program.kill()
        follower.wait_for_the_end()
        program.start()
        program.post("/v1/machines/web-1/freeze")
        follower.resume(program.operators)
        follower.wait_for(newest(program))
        assert follower.numbers == sorted(set(follower.numbers))
        assert {record["machine"] for record in follower.records} >= {"web-0", "web-1"}


def test_a_filter_passes_only_the_wanted_records(program: Program) -> None:
    with (
        Follower(program.operators, "?since=0&machine=web-0&kind=event-scheduled") as one,
        Follower(program.operators, "?since=0&machine=web-2&kind=event-scheduled") as none,
        Follower(program.operators, "?since=0&kind=event-scheduled&kind=order-placed") as kinds,
    ):
        program.post("/v1/machines/web-0/freeze")
        program.post("/v1/machines/web-1/freeze")
        until(lambda: len(kinds.records) == 4, what="two orders and their events")
        until(lambda: one.records, what="the event of one of them")
        assert [record["machine"] for record in one.records] == ["web-0"]
        assert none.records == []


def test_a_reader_that_does_not_read_delays_no_caller(program: Program) -> None:
    place = urlsplit(program.operators)
    with socket.create_connection((place.hostname, place.port)) as idle:
        idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        head = f"GET /v1/stream?since=0 HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n"
        idle.sendall(head.encode())
        with Follower(program.operators) as follower:
            storm(program, threading.Event())
            follower.wait_for(newest(program))
        assert program.stop() == 0


def test_the_stream_ends_cleanly_when_the_server_stops(program: Program) -> None:
    with Follower(program.operators) as follower:
        assert program.stop() == 0
        follower.wait_for_the_end()
        assert follower.whole
        assert "Traceback" not in program.err.text


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        ("?since=-1", {}, 400),
        ("?kind=lost", {}, 400),
        ("?since=99999999", {}, 409),
        ("", {"Last-Event-ID": "x"}, 400),
        ("?last_event_id=99999999", {}, 409),
    ],
)
def test_an_impossible_start_is_refused(
    program: Program, query: str, headers: dict[str, str], status: int
) -> None:
    answer = program.call("GET", f"/v1/stream{query}", headers=headers)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]
