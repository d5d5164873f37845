"""`forewarn gate rollout`: the command runs once for each host, in waves, until all hosts are done."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from starlette.types import ASGIApp, Receive, Scope, Send

from forewarn.cli.gate import rollout_gate
from forewarn.cli.main import app as main
from forewarn.core.basic_types import OrderId, StepState
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service, fleet, group, machine
from tests.helpers.service.served import app_of, serving

NOTE = 'echo "$FOREWARN_HOST:$FOREWARN_MACHINES" >> ran'


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """One update domain of web on each of two hosts, a third host without machines, two on a fourth host."""
    service = Service(sqlite_url(tmp_path))
    service.apply(
        fleet(
            group("web"),
            machine("web-0", "host-1", group="web", domain=0),
            machine("web-1", "host-2", group="web", domain=1),
            machine("web-2", "host-4", group="web", domain=1),
            machine("web-3", "host-4", group="web", domain=2),
            machine("db", "host-2"),
            hosts=4,
        )
    )
    yield service
    service.close()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The command's working directory, with shorter polling intervals than people need."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rollout_gate, "LOOK_SECONDS", 0.05)
    (tmp_path / "ran").touch()
    return tmp_path


def fast_forwarding(service: Service) -> ASGIApp:
    """Return an API whose clock advances 15 minutes at each poll, unless work is in progress."""
    app = app_of(service)

    async def advance_first(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, send)
        steps = [step for order in service.everything().orders.values() for step in order.steps]
        if "/rollouts/" in scope["path"] and not any(step.state is StepState.RUNNING for step in steps):
            service.advance(minutes=15)

    return advance_first


def gate(app: ASGIApp, *words: str, command: str = NOTE) -> Result:
    with serving(app) as url:
        return CliRunner().invoke(
            main, ["--server", url, "gate", "rollout", *words, "--", "sh", "-c", command]
        )


def test_the_command_runs_once_for_each_host_even_an_empty_one(service: Service, folder: Path) -> None:
    gated = gate(fast_forwarding(service), "host-1", "host-2", "host-3", "--action", "reboot")
    assert gated.exit_code == 0, gated.output
    assert sorted((folder / "ran").read_text().split()) == ["host-1:web-0", "host-2:db,web-1", "host-3:"]
    assert "is done: 3 hosts" in gated.stdout


def test_hosts_that_cannot_be_done_at_once_are_refused_before_the_start(service: Service) -> None:
    gated = gate(fast_forwarding(service), "--all", "--action", "reboot")
    assert gated.exit_code == 1
    assert "host-4 carries update domains 1 and 2 of group web" in gated.stderr
    assert service.rollouts.rollouts(after=None, limit=9)[0] == []


def test_one_by_one_the_command_runs_for_each_part_of_a_host(service: Service, folder: Path) -> None:
    gated = gate(fast_forwarding(service), "host-4", "--action", "reboot", "--one-by-one")
    assert gated.exit_code == 0, gated.output
    assert (folder / "ran").read_text().split() == ["host-4:web-2", "host-4:web-3"]


def test_hosts_of_a_wave_are_done_concurrently(service: Service, folder: Path) -> None:
    service.put("web-1", group="web", update_domain=0)
    both = "touch $FOREWARN_HOST; until [ -e host-1 ] && [ -e host-2 ]; do sleep 0.02; done"
    waves = ("host-1", "host-2", "--action", "freeze", "--hosts-at-once", "2")
    gated = gate(fast_forwarding(service), *waves, command=both)
    assert gated.exit_code == 0, gated.output


def test_a_failure_pauses_the_rollout_and_again_repeats_only_the_failed_host(
    service: Service, folder: Path
) -> None:
    app, fails = fast_forwarding(service), f"{NOTE}; [ -e fixed ] || exit 7"
    gated = gate(app, "host-1", "host-2", "--action", "reboot", command=fails)
    assert gated.exit_code == 7
    (shown,) = service.rollouts.rollouts(after=None, limit=9)[0]
    assert shown.rollout.state == "paused"
    assert f"gate rollout --again {shown.rollout.id} -- sh -c" in gated.stderr
    (folder / "fixed").touch()
    again = gate(app, "--again", shown.rollout.id, command=fails)
    assert again.exit_code == 0, again.output
    assert (folder / "ran").read_text().split() == ["host-1:web-0", "host-1:web-0", "host-2:db,web-1"]


def test_a_refused_report_does_not_stop_the_other_commands(service: Service, folder: Path) -> None:
    service.put("web-1", group="web", update_domain=0)
    app = fast_forwarding(service)

    async def fail_before_the_report(scope: Scope, receive: Receive, send: Send) -> None:
        first = scope["path"].endswith("/complete") and not (folder / "refused").exists()
        if first:
            order = OrderId(scope["path"].split("/")[-2])
            service.orders.fail_order(order, by="ops", why="it takes too long")
        await app(scope, receive, send)
        if first:
            (folder / "refused").touch()

    second_waits = '[ "$FOREWARN_HOST" = host-1 ] || until [ -e refused ]; do sleep 0.02; done'
    waves = ("host-1", "host-2", "--action", "freeze", "--hosts-at-once", "2")
    gated = gate(fail_before_the_report, *waves, command=f"{second_waits}; {NOTE}")
    assert (
        gated.exit_code,
        "sh ended with code 0, but the server refused the report" in gated.stderr,
    ) == (
        1,
        True,
    )
    assert "host-2: done: db and web-1." in gated.stdout
    states = {order.host: order.state for order in service.everything().orders.values()}
    assert states["host-1"] == "failed"


def test_no_command_starts_after_its_rollout_is_aborted(service: Service, folder: Path) -> None:
    app = fast_forwarding(service)

    async def abort_at_the_heartbeat(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].endswith("/heartbeat"):
            (known,), _ = service.rollouts.rollouts(after=None, limit=1)
            service.rollouts.abort(known.rollout.id, by="ops")
        await app(scope, receive, send)

    gated = gate(abort_at_the_heartbeat, "host-1", "--action", "reboot")
    assert gated.exit_code == 1
    assert (folder / "ran").read_text() == ""
    assert "sh was not run: order" in gated.output


def test_an_interrupt_ends_the_command_and_pauses_the_rollout(service: Service, folder: Path) -> None:
    app = fast_forwarding(service)

    async def interrupting(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, send)
        if scope["path"].endswith("/heartbeat"):
            os.kill(os.getpid(), signal.SIGTERM)

    gated = gate(interrupting, "host-1", "host-2", "--action", "reboot", command=f"{NOTE}; exec sleep 60")
    assert gated.exit_code == 1
    (shown,) = service.rollouts.rollouts(after=None, limit=9)[0]
    assert (shown.rollout.state, "its gate was interrupted" in shown.rollout.why) == ("paused", True)
    assert f"gate rollout --again {shown.rollout.id} --yes -- sh -c" in gated.stderr
    unasked = gate(app, "--again", shown.rollout.id)
    assert (unasked.exit_code, "is working on web-0" in unasked.stderr) == (1, True)
    again = gate(app, "--again", shown.rollout.id, "--yes")
    assert again.exit_code == 0, again.output


def test_a_rollout_gate_needs_hosts_or_a_rollout_to_resume(service: Service) -> None:
    neither = gate(app_of(service), "--action", "reboot")
    assert (neither.exit_code, "--again" in neither.stderr) == (2, True)
    unsaid = gate(app_of(service), "host-1")
    assert (unsaid.exit_code, "--action" in unsaid.stderr) == (2, True)
