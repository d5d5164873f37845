"""Gating a rollout: the command runs once for each of its hosts, in waves, until all are done."""

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
    """One update domain of web on each of two hosts, nobody on a third, two update domains on a fourth."""
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
    """Where the command runs, looked after more often than people need it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rollout_gate, "LOOK_SECONDS", 0.05)
    (tmp_path / "ran").touch()
    return tmp_path


def hurrying(service: Service) -> ASGIApp:
    """An API whose clock goes on by a quarter of an hour with each look, unless work is under way."""
    app = app_of(service)

    async def hurry(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, send)
        steps = [step for order in service.everything().orders.values() for step in order.steps]
        if "/rollouts/" in scope["path"] and not any(step.state is StepState.RUNNING for step in steps):
            service.advance(minutes=15)

    return hurry


def gate(app: ASGIApp, *words: str, command: str = NOTE) -> Result:
    with serving(app) as url:
        return CliRunner().invoke(
            main, ["--server", url, "gate", "rollout", *words, "--", "sh", "-c", command]
        )


def test_the_command_runs_once_for_each_host_also_for_one_that_carries_nobody(
    service: Service, folder: Path
) -> None:
    gated = gate(hurrying(service), "host-1", "host-2", "host-3", "--action", "reboot")
    assert gated.exit_code == 0, gated.output
    assert sorted((folder / "ran").read_text().split()) == ["host-1:web-0", "host-2:db,web-1", "host-3:"]
    assert "is done: 3 hosts" in gated.stdout


def test_hosts_that_cannot_be_done_in_one_go_are_refused_before_anything_begins(service: Service) -> None:
    gated = gate(hurrying(service), "--all", "--action", "reboot")
    assert gated.exit_code == 1
    assert "host-4 carries update domains 1 and 2 of group web" in gated.stderr
    assert service.rollouts.rollouts(after=None, limit=9)[0] == []


def test_one_by_one_the_command_runs_for_each_part_of_a_host(service: Service, folder: Path) -> None:
    gated = gate(hurrying(service), "host-4", "--action", "reboot", "--one-by-one")
    assert gated.exit_code == 0, gated.output
    assert (folder / "ran").read_text().split() == ["host-4:web-2", "host-4:web-3"]


def test_hosts_of_a_wave_are_done_at_once(service: Service, folder: Path) -> None:
    service.put("web-1", group="web", update_domain=0)
    both = "touch $FOREWARN_HOST; until [ -e host-1 ] && [ -e host-2 ]; do sleep 0.02; done"
    waves = ("host-1", "host-2", "--action", "freeze", "--hosts-at-once", "2")
    gated = gate(hurrying(service), *waves, command=both)
    assert gated.exit_code == 0, gated.output


def test_a_failure_pauses_the_rollout_and_again_does_what_failed_once_more(
    service: Service, folder: Path
) -> None:
    app, fails = hurrying(service), f"{NOTE}; [ -e mended ] || exit 7"
    gated = gate(app, "host-1", "host-2", "--action", "reboot", command=fails)
    assert gated.exit_code == 7
    (shown,) = service.rollouts.rollouts(after=None, limit=9)[0]
    assert shown.rollout.state == "paused"
    assert f"gate rollout --again {shown.rollout.id} -- sh -c" in gated.stderr
    (folder / "mended").touch()
    again = gate(app, "--again", shown.rollout.id, command=fails)
    assert again.exit_code == 0, again.output
    assert (folder / "ran").read_text().split() == ["host-1:web-0", "host-1:web-0", "host-2:db,web-1"]


def test_a_report_that_is_refused_leaves_no_other_command_alone(service: Service, folder: Path) -> None:
    service.put("web-1", group="web", update_domain=0)
    app = hurrying(service)

    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        first = scope["path"].endswith("/complete") and not (folder / "refused").exists()
        if first:
            order = OrderId(scope["path"].split("/")[-2])
            service.orders.fail_order(order, by="ops", why="it takes too long")
        await app(scope, receive, send)
        if first:
            (folder / "refused").touch()

    second_waits = '[ "$FOREWARN_HOST" = host-1 ] || until [ -e refused ]; do sleep 0.02; done'
    waves = ("host-1", "host-2", "--action", "freeze", "--hosts-at-once", "2")
    gated = gate(failing, *waves, command=f"{second_waits}; {NOTE}")
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


def test_no_command_begins_for_a_rollout_that_is_aborted_in_that_moment(
    service: Service, folder: Path
) -> None:
    app = hurrying(service)

    async def aborting(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].endswith("/heartbeat"):
            (known,), _ = service.rollouts.rollouts(after=None, limit=1)
            service.rollouts.abort(known.rollout.id, by="ops")
        await app(scope, receive, send)

    gated = gate(aborting, "host-1", "--action", "reboot")
    assert gated.exit_code == 1
    assert (folder / "ran").read_text() == ""
    assert "sh was not run: order" in gated.output


def test_an_interrupt_ends_the_command_and_pauses_the_rollout(service: Service, folder: Path) -> None:
    app = hurrying(service)

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


def test_a_gate_wants_hosts_or_a_rollout_to_take_up(service: Service) -> None:
    neither = gate(app_of(service), "--action", "reboot")
    assert (neither.exit_code, "--again" in neither.stderr) == (2, True)
    unsaid = gate(app_of(service), "host-1")
    assert (unsaid.exit_code, "--action" in unsaid.stderr) == (2, True)
