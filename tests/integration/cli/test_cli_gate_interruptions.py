"""The gate while the server is unreachable, and after interrupts by an operator."""

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.helpers.database.stores import sqlite_url
from tests.helpers.programs.process import (
    FOREWARN,
    PATIENCE,
    Output,
    Program,
    ending,
    free_port,
    operator_client,
    run,
    sample_fleet,
    started,
    until,
)
from tests.helpers.service.harness import Service
from tests.helpers.service.served import app_of, sample, serving

WEB_0 = "127.0.1.10"
FREEZE = ("machine", "db", "--action", "freeze")
# Works until the test creates a file.
WORK = (
    "--",
    "sh",
    "-c",
    "echo $$ > begun.new; mv begun.new begun; until [ -e go ]; do sleep 0.05; done; exit $(cat go)",
)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """Yield a server that keeps its address across restarts."""
    place = f"127.0.0.1:{free_port()}"
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path), operator=place) as program:
        yield program


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningGate:
    """A running gate and its output."""

    process: "subprocess.Popen[str]"
    out: Output
    err: Output

    def code(self) -> int:
        """Wait for the exit code."""
        code = self.process.wait(PATIENCE)
        self.out.finish()
        self.err.finish()
        return code


@contextmanager
def gated(server: str, folder: Path, *words: str) -> Iterator[RunningGate]:
    with ending(started([FOREWARN, "--server", server, "gate", *words], folder)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        yield RunningGate(process=process, out=Output(process.stdout), err=Output(process.stderr))


def the_order(program: Program) -> dict[str, Any]:
    (order,) = program.all("orders")
    return order


def approve(program: Program) -> None:
    (event,) = program.all("events")
    program.post(f"/v1/events/{event['id']}/approve")


def begin(program: Program, folder: Path, gate: RunningGate) -> int:
    """Let the work begin, and return the process id of the command."""
    gate.out.wait_for("waiting for db")
    approve(program)
    begun = folder / "begun"
    until(begun.exists, what="the command to be run")
    return int(begun.read_text())


def is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


# An unreachable server


def test_a_gate_waits_for_an_unreachable_server(program: Program, tmp_path: Path) -> None:
    with gated(program.operators, tmp_path, *FREEZE, "--", "true") as gate:
        gate.out.wait_for("waiting for db")
        program.kill()
        gate.err.wait_for("reconnecting: No server answers")
        program.start()
        gate.err.wait_for("connected again")
        approve(program)
        assert gate.code() == 0
        assert len(gate.err.lines) == 2
        assert {step["state"] for step in the_order(program)["steps"]} == {"done"}


def test_the_end_of_the_command_is_reported_when_the_server_is_back(program: Program, tmp_path: Path) -> None:
    with gated(program.operators, tmp_path, *FREEZE, *WORK) as gate:
        begin(program, tmp_path, gate)
        program.kill()
        (tmp_path / "go").write_text("0")
        gate.err.wait_for("reconnecting: ")
        program.start()
        assert gate.code() == 0
        gate.out.wait_for("Done: db.")
        assert {step["state"] for step in the_order(program)["steps"]} == {"done"}


@pytest.mark.parametrize(("code", "report"), [(0, "complete"), (7, "fail")])
def test_an_unreported_end_is_printed_with_the_command_that_reports_it(
    program: Program, tmp_path: Path, code: int, report: str
) -> None:
    with gated(program.operators, tmp_path, *FREEZE, "--heartbeat", "5", *WORK) as gate:
        begin(program, tmp_path, gate)
        id_ = the_order(program)["id"]
        program.kill()
        (tmp_path / "go").write_text(str(code))
        assert gate.code() == 3
        gate.err.wait_for(f"sh ended with code {code}, but the report failed: No server answers")
        assert f"order {report} {id_}" in gate.err.lines[-1]
        assert "once the server answers" in gate.err.lines[-1]


def test_a_gate_that_cannot_cancel_its_order_prints_the_next_step(program: Program, tmp_path: Path) -> None:
    with gated(program.operators, tmp_path, *FREEZE, "--", "true") as gate:
        gate.out.wait_for("waiting for db")
        id_ = the_order(program)["id"]
        program.kill()
        gate.process.send_signal(signal.SIGTERM)
        assert gate.code() == 3
        gate.err.wait_for(f"order {id_} could not be cancelled")
        assert f"order cancel {id_}` once the server answers" in gate.err.lines[-1]


# The order is stopped


def test_a_stopped_order_terminates_its_command_and_the_gate_reports_it(
    program: Program, tmp_path: Path
) -> None:
    with gated(program.operators, tmp_path, *FREEZE, "--heartbeat", "2", *WORK) as gate:
        process = begin(program, tmp_path, gate)
        order = the_order(program)["id"]
        until(
            lambda: the_order(program)["waiting"][0]["reason"].startswith("done outside"), what="a heartbeat"
        )
        hold = program.post("/v1/holds", json={"reason": "wrong image", "abort": True})["hold"]
        assert [each["machine"] for each in hold["still_running"]] == ["db"]
        gate.err.wait_for(f"order {order} is stopped by ")
        until(lambda: is_gone(process), what="the command to end")
        assert gate.code() != 0
        until(lambda: the_order(program)["ended_at"] is not None, what="the order to be closed")
        assert the_order(program)["why"].startswith("stopped by ")


# The gate is interrupted

ENDS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])


@ENDS
def test_a_gate_interrupted_while_it_waits_cancels_its_order(
    program: Program, tmp_path: Path, number: signal.Signals
) -> None:
    with gated(program.operators, tmp_path, *FREEZE, "--", "true") as gate:
        gate.out.wait_for("waiting for db")
        gate.process.send_signal(number)
        assert gate.code() == 1
        order = the_order(program)
        assert order["state"] == "cancelled"
        gate.err.wait_for(f"order {order['id']} is cancelled")


@ENDS
def test_a_gate_interrupted_during_the_work_ends_its_command_and_prints_the_next_step(
    program: Program, tmp_path: Path, number: signal.Signals
) -> None:
    with gated(program.operators, tmp_path, *FREEZE, *WORK) as gate:
        command = begin(program, tmp_path, gate)
        gate.process.send_signal(number)
        assert gate.code() == 1
        assert is_gone(command)
        order = the_order(program)
        assert order["state"] == "started"
        gate.err.wait_for(f"order {order['id']} stays open: sh was interrupted, and ended with code -15")
        gate.out.wait_for(f"gate order {order['id']} --yes -- COMMAND")
        gate.out.wait_for(f"order complete {order['id']}")


class SlowPath:
    """Delays requests to one path until the test releases them."""

    def __init__(self, app: ASGIApp, *, path: str) -> None:
        self._app = app
        self._path = path
        self.reached, self.through = threading.Event(), threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].endswith(self._path):
            self.reached.set()
            await asyncio.to_thread(self.through.wait, PATIENCE)
        await self._app(scope, receive, send)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(sample())
    yield service
    service.close()


def states(url: str) -> list[str]:
    with operator_client(url) as client:
        return [order["state"] for order in client.get("/v1/orders").json()["orders"]]


def test_an_interrupt_during_the_first_request_is_deferred_and_cancels_the_order(
    service: Service, tmp_path: Path
) -> None:
    slow = SlowPath(app_of(service), path="/freeze")
    with serving(slow) as url, gated(url, tmp_path, *FREEZE, "--", "touch", "ran") as gate:
        assert slow.reached.wait(PATIENCE)
        gate.process.send_signal(signal.SIGINT)
        gate.err.wait_for("interrupted; finishing")
        slow.through.set()
        assert gate.code() == 1
        gate.err.wait_for("is cancelled")
        assert states(url) == ["cancelled"]
    assert not (tmp_path / "ran").exists()


def test_further_interrupts_do_not_prevent_the_cancellation(service: Service, tmp_path: Path) -> None:
    slow = SlowPath(app_of(service), path="/cancel")
    with serving(slow) as url, gated(url, tmp_path, *FREEZE, "--", "true") as gate:
        gate.out.wait_for("waiting for db")
        gate.process.send_signal(signal.SIGINT)
        gate.err.wait_for("cancelling order ")
        assert slow.reached.wait(PATIENCE)
        for number in (signal.SIGINT, signal.SIGTERM):
            gate.process.send_signal(number)
        slow.through.set()
        assert gate.code() == 1
        gate.err.wait_for("is cancelled")
        assert states(url) == ["cancelled"]


def test_a_saved_report_whose_answer_is_lost_is_not_an_error(service: Service, tmp_path: Path) -> None:
    app, heard = app_of(service), threading.Event()

    async def lose_the_first_answer(scope: Scope, receive: Receive, send: Send) -> None:
        if not scope["path"].endswith("/complete") or heard.is_set():
            await app(scope, receive, send)
            return
        heard.set()
        await app(scope, receive, nowhere)
        await JSONResponse({"error": {"code": "Unavailable", "message": "going away"}}, status_code=503)(
            scope, receive, send
        )

    async def nowhere(_: Message) -> None:
        pass

    emergency = ("host", "host-1", "--action", "freeze", "--emergency", "coolant leak")
    with serving(lose_the_first_answer) as url, gated(url, tmp_path, *emergency, "--", "true") as gate:
        assert gate.code() == 0, gate.err.text
        assert gate.err.lines == ["forewarn: reconnecting: going away", "forewarn: connected again"]
        gate.out.wait_for("Done: ")


# Notice


def test_a_machine_that_never_polled_is_named_while_the_gate_waits_and_at_the_end(
    program: Program, tmp_path: Path
) -> None:
    with gated(program.operators, tmp_path, *FREEZE, "--", "true") as gate:
        gate.out.wait_for("waiting for db (never polled), until ")
        program.advance(900)
        assert gate.code() == 0
        gate.out.wait_for("db: promised 15 m, not delivered (no machine polled), started after 15 m")


def test_promised_and_delivered_notice_are_printed_side_by_side(program: Program, tmp_path: Path) -> None:
    with gated(program.operators, tmp_path, "machine", "web-0", "--action", "freeze", "--", "true") as gate:
        gate.out.wait_for("waiting for web-0")
        program.advance(60)
        assert program.guest(WEB_0).document()["Events"]
        program.advance(840)
        assert gate.code() == 0
        gate.out.wait_for("web-0: promised 15 m, delivered 14 m, started after 15 m")


def test_a_machine_without_notice_is_reported_as_such(program: Program, tmp_path: Path) -> None:
    words = ("gate", "machine", "db", "--action", "restart", "--", "false")
    ran = run(tmp_path, "--server", program.operators, *words)
    assert ran.returncode == 1
    assert "  No event: its group is not enabled" in ran.stdout
    assert "has failed" in ran.stderr
    assert "events" not in ran.stderr
