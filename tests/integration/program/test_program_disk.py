"""A full disk: writes are refused, polls are answered, and the server recovers by itself."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.programs.process import Program, run, sample_fleet, until
from tests.integration.cli.test_cli_watch import watching

WEB_0, WEB_1, SHOP = "127.0.1.10", "127.0.1.11", "127.0.1.20"


@contextmanager
def full_disk(program: Program) -> Iterator[None]:
    """Limit the size of the server's files, which has the effect of a full disk without root."""
    pid, hard = program.process.pid, resource.RLIM_INFINITY
    soft = resource.prlimit(pid, resource.RLIMIT_FSIZE)[0]
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    unlimited = {"FOREWARN_GUEST_RATE": "0"}
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path), environment=unlimited) as program:
        yield program


def test_polls_are_answered_and_writes_refused_while_the_disk_is_full(program: Program) -> None:
    guest = program.guest(WEB_0)
    guest.document()
    event = program.post("/v1/machines/web-0/restart")["event"]
    before, history = guest.poll().content, program.history()
    with full_disk(program):
        order = program.call("POST", "/v1/machines/web-1/restart")
        assert order.status_code == 503
        assert order.json()["error"]["code"] == "Unavailable"
        assert int(order.headers["retry-after"]) > 0
        assert guest.approve(event["id"]).status_code == 503
        assert program.call("POST", f"/v1/events/{event['id']}/approve").status_code == 503
        assert program.call("POST", f"/v1/events/{event['id']}/cancel").status_code == 503
        assert program.call("POST", "/v1/clock/advance", json={"seconds": 60}).status_code == 503
        # The first poll of a group has to be saved, which is impossible now.
        assert program.guest(SHOP).poll().status_code == 503
        assert guest.poll().content == before
        assert program.guest(WEB_1).poll().content == before
        assert program.history() == history
        assert program.get("/healthz") == {"status": "ok"}
    assert program.history() == history


def test_without_any_call_the_server_is_unready_while_it_cannot_write(
    program: Program, tmp_path: Path
) -> None:
    def status() -> int:
        return program.call("GET", "/readyz").status_code

    assert status() == 200
    with full_disk(program):
        until(lambda: status() == 503, what="it to find out by itself")
        for _ in range(3):
            program.get("/v1/machines")  # after each call runs a tick, which has nothing to save
            assert status() == 503
        assert "forewarn_store_writable 0.0" in program.call("GET", "/metrics").text
        assert program.get("/healthz") == {"status": "ok"}
        said = run(tmp_path, "watch", "--once", "--server", program.operators).stdout
        assert "The server is not ready: " in said
        frame = run(tmp_path, "watch", "--once", "--json", "--server", program.operators).stdout
        assert json.loads(frame)["trouble"].startswith("the store cannot be written")
    until(lambda: status() == 200, what="it to be ready again")
    assert "forewarn_store_writable 1.0" in program.call("GET", "/metrics").text


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_the_stream_reports_once_that_the_server_is_unready_and_once_that_it_is_ready(
    program: Program, tmp_path: Path, words: tuple[str, ...]
) -> None:
    def status() -> int:
        return program.call("GET", "/readyz").status_code

    with watching(program, tmp_path, *words) as (_, err):
        with full_disk(program):
            until(lambda: status() == 503, what="it to find out by itself")
            err.wait_for("forewarn: the server is not ready: ")
        until(lambda: status() == 200, what="it to be ready again")
        err.wait_for("forewarn: the server is ready again")
    assert err.text.count("the server is not ready") == 1


def test_the_server_recovers_when_the_disk_has_room_again(program: Program) -> None:
    guest = program.guest(WEB_0)
    guest.document()
    event = program.post("/v1/machines/web-0/restart")["event"]
    with full_disk(program):
        assert program.call("POST", "/v1/machines/web-1/restart").status_code == 503
    assert program.call("POST", "/v1/machines/web-1/restart").status_code == 202
    assert guest.approve(event["id"]).status_code == 200
    assert program.guest(SHOP).poll().status_code == 200
    program.advance(900)
    program.restart()
    assert program.get(f"/v1/events/{event['id']}")["event"]["approved"]


def test_work_that_becomes_due_while_the_disk_is_full_is_done_afterwards(tmp_path: Path) -> None:
    quick = {
        "FOREWARN_TIMES_REBOOT_NOTICE": "3",
        "FOREWARN_SIMULATED_RESTART": "0",
        "FOREWARN_TIMES_LINGER": "0",
    }
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path), clock="system", environment=quick) as program:
        program.guest(WEB_0).document()
        placed = program.post("/v1/machines/web-0/restart")
        with full_disk(program):
            until(
                lambda: program.call("GET", "/readyz").status_code == 503,
                what="it to say that it is not ready",
            )
            # Whatever was decided before the disk was full, unsaved changes are not shown.
            saved = program.get(f"/v1/events/{placed['event']['id']}")["event"]["status"]
            shown = [each["EventStatus"] for each in program.guest(WEB_1).document()["Events"]]
            # On a busy computer the work may have ended before.
            assert shown == ([saved] if saved in ("Scheduled", "Started") else [])
        done = f"/v1/orders/{placed['order']['id']}"
        until(lambda: program.get(done)["order"]["state"] == "done", what="the order to be done")
        until(lambda: program.call("GET", "/readyz").status_code == 200, what="it to be ready again")
        assert program.stop() == 0
        assert "the store cannot be written; polls are still answered" in program.err.text
        assert "Traceback" not in program.err.text


def test_a_database_that_cannot_be_written_is_refused_at_start(tmp_path: Path) -> None:
    free = ("--guest", "127.0.0.1:0", "--operator", "127.0.0.1:0")
    refused = run(tmp_path, "serve", *free, "--database", "sqlite:///nowhere/forewarn.db")
    assert refused.returncode == 1
    assert "nowhere/forewarn.db cannot be locked: check that its folder exists" in refused.stderr
