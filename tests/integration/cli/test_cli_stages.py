"""Orders in several stages: the later stages and their machines."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from forewarn.cli.main import app
from forewarn.cli.views.step_tables import ON_HOST
from forewarn.core.basic_types import HostName, HostTask, Mobility, StepState
from forewarn.core.model.declaration import HostSpec
from forewarn.core.model.host import HostResource
from forewarn.wire.answers.order_answers import HostStepAnswer
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service, fleet, group, machine
from tests.helpers.service.served import app_of, serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Two update domains of web on host-1, one on host-2."""
    service = Service(sqlite_url(tmp_path))
    service.apply(
        fleet(
            group("web"),
            *(machine(f"web-{n}", "host-1", group="web", domain=n) for n in range(2)),
            machine("db", "host-1"),
            machine("web-2", "host-2", group="web", domain=2),
        )
    )
    with serving(app_of(service)) as url:
        yield url
    service.close()


def output_of(url: str, *words: str) -> str:
    result = CliRunner().invoke(app, [*words, "--server", url])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_maintenance_of_a_host_prints_its_later_stages_and_their_machines(server: str) -> None:
    ordered = output_of(server, "host", "maintenance", "host-1", "--action", "reboot")
    assert "  Stage 2 of 2, announced after stage 1: reboot of web-1.\n" in ordered
    assert "Stage 1 of 2" not in ordered


def test_an_unannounced_order_prints_its_stages_too(server: str) -> None:
    output_of(server, "host", "maintenance", "host-2", "--action", "reboot")
    ordered = output_of(server, "host", "maintenance", "host-1", "--action", "freeze")
    assert "  Stage 1 of 2, announced first: freeze of db and web-0.\n" in ordered
    assert "  Stage 2 of 2, announced after stage 1: freeze of web-1.\n" in ordered


def test_an_order_with_one_stage_prints_no_stages(server: str) -> None:
    assert "Stage" not in output_of(server, "host", "maintenance", "host-2", "--action", "freeze")


def test_an_order_shows_the_stage_of_each_step(server: str) -> None:
    order = json.loads(output_of(server, "host", "maintenance", "host-1", "--action", "reboot", "--json"))
    order = order["order"]["id"]
    rows = [line.split() for line in output_of(server, "order", "show", order).splitlines()]
    header = next(row for row in rows if row[:1] == ["STAGE"])
    assert header[:3] == ["STAGE", "MACHINE", "STEP"]
    shown = {row[1]: row[0] for row in rows if len(row) > 2 and row[2] == "waiting"}
    assert shown == {"db": "1", "web-0": "1", "web-1": "2"}


def test_an_order_may_choose_its_driver(server: str) -> None:
    words = ("host", "maintenance", "host-2", "--action", "freeze", "--driver", "external", "--json")
    assert json.loads(output_of(server, *words))["order"]["driver"] == "external"


def test_host_service_shows_its_stages_by_kind(server: str) -> None:
    order = json.loads(output_of(server, "host", "service", "host-2", "--json"))["order"]["id"]
    shown = output_of(server, "order", "show", order)
    leave, work = shown.split("Stage 1 of 2: ")[1].split("Stage 2 of 2: ")
    assert leave.startswith("machines leave (announced, 0 of 1 machine)\n")
    assert ["web-2", "waiting", "1", "moves,", "restarts"] in [
        line.split()[:5] for line in leave.splitlines()
    ]
    assert work.startswith("work on host-2 (queued)\n")
    assert ["work", "waiting", "1", "simulated"] in [line.split()[:4] for line in work.splitlines()]


def test_a_machine_that_stays_restarts_with_its_host(server: str) -> None:
    order = json.loads(output_of(server, "host", "service", "host-2", "--in-place", "--json"))["order"]["id"]
    shown = output_of(server, "order", "show", order)
    assert "service in place on host-2" in shown
    assert "Stage 1 of 1: work on host-2 (announced, 0 of 1 machine)" in shown
    assert "restarts with the host" in shown


def test_a_host_shows_its_blockers_its_cordon_and_how_its_machines_leave(server: str) -> None:
    placed = json.loads(output_of(server, "host", "service", "host-2", "--json"))
    order, event = placed["order"]["id"], placed["events"][0]["id"]
    output_of(server, "host", "maintenance", "host-1", "--action", "reboot")
    waits = output_of(server, "host", "show", "host-1")
    assert "Restart elsewhere  db, web-0, web-1" in waits
    assert f"    Redeploy of web-2 (event {event}, order {order} on host-2)\n" in waits
    assert f"cordoned for {order}" in output_of(server, "host", "list")


def test_a_single_leaving_machine_is_singular(server: str) -> None:
    output_of(server, "host", "maintenance", "host-1", "--action", "reboot")
    assert "announced first: web-2 leaves." in output_of(server, "host", "service", "host-2")


def test_a_confirmed_fence_is_printed(server: str) -> None:
    failed = output_of(server, "host", "fail", "host-2", "--fenced", "pulled its plug", "--yes")
    assert "  Fenced, confirmed by operator: pulled its plug.\n" in failed


def test_work_with_unknown_state_shows_when_the_host_counts_as_lost() -> None:
    step = HostStepAnswer(
        task=HostTask.WORK,
        driver="hook",
        attempt=1,
        state=StepState.RUNNING,
        begun_at=None,
        ended_at=None,
        progress=None,
        why="no answer",
        back_by=datetime(2026, 1, 5, 12, tzinfo=UTC),
    )
    drawn = " ".join(line.plain for line in ON_HOST.lines([step]))
    assert "no answer; lost unless over by 2026-01-05 12:00:00 UTC" in " ".join(drawn.split())


def test_a_bare_metal_host_shows_no_free_resources(tmp_path: Path) -> None:
    service = Service(sqlite_url(tmp_path))
    gpus = {"gpus": HostResource(amount=8)}
    host = HostSpec(name=HostName("gpu01"), bare_metal=True, resources=gpus)
    itself = machine("gpu01", "gpu01", mobility=Mobility.NONE)
    service.apply(replace(fleet(itself, hosts=0), hosts=(host,)))
    with serving(app_of(service)) as url:
        assert "8 of 8" not in output_of(url, "host", "show", "gpu01")
    service.close()
