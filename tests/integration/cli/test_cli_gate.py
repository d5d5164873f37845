"""`forewarn gate` runs a command when the guests have notice and are ready."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result
from starlette.types import ASGIApp, Receive, Scope, Send

from forewarn.cli.gate import gated_order
from forewarn.cli.main import app as main
from forewarn.core.basic_types import Action, OrderId, StepState
from forewarn.core.model.declaration import NO_DEFAULTS
from forewarn.wire.answers.coding import read_body
from forewarn.wire.answers.order_answers import OrderDetailWithEventsAnswer
from tests.helpers.database.stores import sqlite_url
from tests.helpers.programs.process import FOREWARN, Program, run, sample_fleet, started, until
from tests.helpers.service.harness import Service
from tests.helpers.service.served import app_of, sample, serving


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path, "--fleet", sample_fleet(tmp_path))


def gate(program: Program, folder: Path, *words: str) -> "subprocess.Popen[str]":
    command = [FOREWARN, "--server", program.operators, "gate", *words]
    return started(command, folder)


def approve_everything(program: Program) -> bool:
    """Approve all open events as a person, and return whether there were any."""
    listed = [event for event in program.all("events") if event["status"] == "Scheduled"]
    for event in listed:
        program.post(f"/v1/events/{event['id']}/approve")
    return bool(listed)


def test_one_by_one_the_command_runs_for_each_part_when_its_guests_are_ready(
    program: Program, tmp_path: Path
) -> None:
    with program:
        run_it = ("--one-by-one", "--", "sh", "-c", "echo $FOREWARN_MACHINES >> ran")
        gated = gate(program, tmp_path, "host", "host-1", "--action", "freeze", *run_it)
        until(lambda: approve_everything(program), what="the first stage to be announced")
        until(lambda: (tmp_path / "ran").exists(), what="the command to be run")
        until(lambda: not _running(program), what="the command's end to be reported")
        program.advance(90)  # the events of the first stage are still listed
        until(lambda: approve_everything(program), what="the second stage to be announced")
        out, err = gated.communicate(timeout=60)
        assert (gated.returncode, err) == (0, "")
        ran = [set(line.split(",")) for line in (tmp_path / "ran").read_text().split()]
        assert ran == [{"batch_0", "FrontEnd_IN_0", "web-0", "web-3"}, {"Worker_IN_1"}]
        assert "promised" in out


def test_a_failing_command_fails_the_order_and_prints_the_next_step(program: Program, tmp_path: Path) -> None:
    with program:
        gated = gate(program, tmp_path, "machine", "db", "--action", "freeze", "--", "sh", "-c", "exit 7")
        until(lambda: approve_everything(program), what="the event")
        _, err = gated.communicate(timeout=60)
        assert gated.returncode == 7
        (order,) = program.all("orders")
        assert order["state"] == "failed"
        assert order["waiting"][0]["reason"] == "failed: sh ended with code 7"
        assert f"gate order {order['id']} -- sh -c 'exit 7'" in err


# The gate waits for no guest.
GATE = ("gate", "host", "host-1", "--action", "freeze", "--emergency", "coolant leak")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(sample())
    yield service
    service.close()


def gate_here(app: ASGIApp, *words: str) -> str:
    with serving(app) as url:
        ran = CliRunner().invoke(main, ["--server", url, *GATE, *words])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def test_a_gate_sets_a_deadline_and_a_heartbeat_limit(service: Service) -> None:
    terms = ("--deadline", "2030-01-31T12:00:00Z", "--takes", "3h", "--heartbeat", "2m")
    said = gate_here(app_of(service), "--wait", *terms)
    assert "fails after 2 m of silence" in said
    (order,) = service.everything().orders.values()
    assert order.terms.deadline == datetime(2030, 1, 31, 12, tzinfo=UTC)
    assert order.terms.expected == timedelta(hours=3)
    assert order.terms.heartbeat == timedelta(minutes=2)


def test_a_gate_sends_heartbeats_within_the_limit(service: Service, tmp_path: Path) -> None:
    app, beaten = app_of(service), tmp_path / "beaten"

    async def note_heartbeats(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].endswith("/heartbeat"):
            beaten.touch()
        await app(scope, receive, send)

    # The command ends successfully if a heartbeat arrives within 30 seconds.
    command = ("timeout", "30", "sh", "-c", f"until [ -e {beaten} ]; do sleep 0.05; done")
    gate_here(note_heartbeats, "--heartbeat", "1", "--", *command)


def invoke(url: str, *words: str) -> Result:
    return CliRunner().invoke(main, ["--server", url, *words])


@pytest.fixture
def failed(service: Service) -> Iterator[tuple[str, str]]:
    """Yield the server's URL and the id of an order whose command has failed."""
    with serving(app_of(service)) as url:
        ran = invoke(url, *GATE, "--heartbeat", "2m", "--", "false")
        assert ran.exit_code == 1
        (order,) = service.everything().orders
        yield url, order


def test_a_failed_order_is_resumed(service: Service, failed: tuple[str, str]) -> None:
    url, order = failed
    again = invoke(url, "gate", "order", order[:8], "--", "true")
    assert again.exit_code == 0, again.output
    assert "Done: " in again.stdout
    assert {step.state for step in service.everything().orders[OrderId(order)].steps} == {StepState.DONE}


def test_a_retried_order_asks_for_an_external_program(service: Service, failed: tuple[str, str]) -> None:
    url, order = failed
    retried = invoke(url, "order", "retry", order)
    assert "An external program does this work" in retried.stdout
    assert f"gate order {order} --yes -- COMMAND" in retried.stdout
    assert f"order complete {order}" in retried.stdout
    unasked = invoke(url, "gate", "order", order, "--", "true")
    assert unasked.exit_code == 1
    assert "perhaps from another gate; use --yes" in unasked.stderr
    assert invoke(url, "gate", "order", order, "--yes", "--", "true").exit_code == 0


def test_a_resumed_order_keeps_its_heartbeat_limit(failed: tuple[str, str]) -> None:
    url, order = failed
    assert "fails after 2 m of silence" in invoke(url, "gate", "order", order, "--wait").stdout


def test_an_order_names_its_driver_and_the_command_that_resumes_it(failed: tuple[str, str]) -> None:
    url, order = failed
    shown = invoke(url, "order", "show", order).stdout
    assert "an external program, which reports progress" in shown
    assert f"gate order {order} -- COMMAND" in shown


def test_an_order_that_is_over_or_has_another_driver_is_not_resumed(
    service: Service, failed: tuple[str, str]
) -> None:
    url, order = failed
    invoke(url, "order", "abandon", order)
    over = invoke(url, "gate", "order", order, "--", "true")
    assert (over.exit_code, "is failed: place a new order" in over.stderr) == (1, True)
    own = service.order("db", Action.RESTART).order.id
    refused = invoke(url, "gate", "order", own, "--", "true")
    assert (refused.exit_code, "the server itself does order" in refused.stderr) == (1, True)


def test_an_abandoned_order_shows_who_abandoned_it_and_why(failed: tuple[str, str]) -> None:
    url, order = failed
    invoke(url, "order", "abandon", order)
    for words in (("order", "list"), ("order", "show", order)):
        shown = invoke(url, *words).stdout
        assert "failed, abandoned" in shown
        assert "abandoned by operator: failed: false ended with code 1" in shown


def test_a_gate_notes_that_guests_still_see_the_event(service: Service) -> None:
    for name in ("web-0", "web-3", "spot-0"):
        service.poll(name)
    said = gate_here(app_of(service), "--", "true")
    assert "still listed; stays listed for 90 s after its start" in said


def test_a_failed_host_prints_how_to_report_that_it_is_fenced(service: Service) -> None:
    service.apply(replace(sample(), defaults=NO_DEFAULTS))
    with serving(app_of(service)) as url:
        said = invoke(url, "host", "fail", "host-1", "--yes").stdout
        (order,) = service.everything().orders
        seen = read_body(OrderDetailWithEventsAnswer, httpx.get(f"{url}/v1/orders/{order}").json())
    assert "host fail host-1 --fenced REASON" in said
    assert f"`forewarn order complete {order}`" in " ".join(said.split())
    assert "gate order" not in said
    assert [line for line in gated_order.progress(seen, known=set()) if "done;" in line] == []


def test_an_operator_holds_and_releases_with_commands(program: Program, tmp_path: Path) -> None:
    def forewarn(*words: str) -> subprocess.CompletedProcess[str]:
        return run(tmp_path, "--server", program.operators, *words)

    with program:
        assert "Hold set" in forewarn("hold", "--reason", "holidays", "--host", "host-1").stdout
        (hold,) = json.loads(forewarn("holds", "--json").stdout)["holds"]
        assert (hold["reach"], hold["reason"]) == ("host host-1", "holidays")
        again = forewarn("hold", "--reason", "twice", "--host", "host-1")
        assert again.returncode == 1
        assert hold["id"] in again.stderr
        assert forewarn("release").returncode == 0
        assert forewarn("release").returncode == 1


def _running(program: Program) -> bool:
    return any(step["state"] == "running" for order in program.all("orders") for step in order["steps"])


@pytest.mark.parametrize("words", [("--", "./no-such-program"), ()])
def test_a_command_that_cannot_run_announces_nothing(
    program: Program, tmp_path: Path, words: tuple[str, ...]
) -> None:
    with program:
        gated = gate(program, tmp_path, "host", "host-1", "--action", "freeze", *words)
        gated.communicate()
        assert gated.returncode == 2
        assert program.all("orders") == []
