"""Questions before work that affects several machines: only at a terminal, and only without --yes."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from forewarn.cli.main import app
from forewarn.cli.views import confirmation
from forewarn.core.access import Grant, Role
from forewarn.core.basic_types import DEFAULT_PROJECT, Action, Work
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service, fleet, group, machine
from tests.helpers.service.served import app_of, serving

FAIL = ("host", "fail", "host-1")
EMERGENCY = ("host", "maintenance", "host-1", "--action", "reboot", "--emergency", "smoke in rack 3")
ROLL = ("rollout", "start", "--all", "--detach")


@pytest.fixture(autouse=True)
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    machines = [machine(f"web-{n}", f"host-{n % 3 + 1}", group="web", domain=n % 3) for n in range(6)]
    service.apply(fleet(group("web"), *machines, hosts=6))
    with serving(app_of(service)) as url:
        monkeypatch.setenv("FOREWARN_SERVER", url)
        yield service
    service.close()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmation, "is_at_terminal", lambda: True)


def run(*words: str, answer: str = "", code: int = 0) -> Result:
    result = CliRunner().invoke(app, list(words), input=answer)
    assert result.exit_code == code, result.output
    return result


def state(host: str) -> str:
    return str(json.loads(run("host", "show", host, "--json").stdout)["host"]["state"])


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (
            FAIL,
            "Has host-1 failed? Then its 2 machines (web-0, web-3) recover on other hosts, without notice.",
        ),
        (EMERGENCY, "Emergency on host-1: give its 2 machines (web-0, web-3) no notice?"),
        ((*EMERGENCY, "--notice", "2m"), "(web-0, web-3) only 2 m of notice?"),
        (ROLL, "Roll freeze over 6 hosts, in 6 waves, until about 2026-01-05 13:00:00 UTC?"),
    ],
)
def test_the_answer_no_changes_nothing(service: Service, words: tuple[str, ...], asked: str) -> None:
    before = len(service.history())
    refused = run(*words, answer="n\n", code=1)
    assert asked in refused.output
    assert "nothing was changed" in refused.output
    assert len(service.history()) == before


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("words", [FAIL, EMERGENCY, ROLL])
def test_the_answer_yes_and_the_option_yes_both_continue(words: tuple[str, ...]) -> None:
    assert "?" not in run(*words, "--yes").output


@pytest.mark.usefixtures("terminal")
def test_a_rollout_over_five_hosts_needs_no_answer() -> None:
    assert "?" not in run("rollout", "start", *(f"host-{n}" for n in range(1, 6)), "--detach").output


@pytest.mark.usefixtures("terminal")
def test_cancelling_an_event_that_affects_other_machines_asks_and_names_them(
    service: Service,
) -> None:
    (event,) = service.host_order("host-1", Action.MAINTENANCE, Work.REBOOT).events
    asked = run("event", "cancel", event.id, answer="n\n", code=1).output
    assert "Cancel maintenance reboot of host-1, for all of web-0 and web-3?" in asked
    said = run("event", "cancel", event.id, answer="y\n").output
    assert "with its order: maintenance reboot of host-1, for web-0 and web-3." in said
    (alone, *_) = service.order("web-1", Action.FREEZE).events
    assert run("event", "cancel", alone.id).stdout.endswith("with its order: freeze of web-1.\n")


def test_without_a_terminal_a_command_continues() -> None:
    run(*FAIL)
    assert state("host-1") == "failed"


def test_a_command_at_a_terminal_asks() -> None:
    controller, terminal = pty.openpty()
    program = [sys.executable, "-m", "forewarn", *FAIL]
    with subprocess.Popen(program, stdin=terminal, stdout=terminal, stderr=terminal) as running:
        os.close(terminal)
        os.write(controller, b"n\n")
        assert running.wait() == 1
    os.close(controller)
    assert state("host-1") == "ok"


def test_an_emergency_asks_and_lists_what_it_overrides(service: Service) -> None:
    first = service.host_order("host-2", Action.MAINTENANCE, Work.REBOOT)
    said = run(*EMERGENCY).stdout
    assert "host-1: maintenance (reboot) ordered as an emergency (smoke in rack 3), under way." in said
    passed = f"web: update domain 0 waits for domain 1 (order {first.order.id})"
    assert f"Broken promise, recorded in the history: smoke in rack 3: announced although {passed}." in said


def test_an_emergency_despite_holds_lists_the_holds() -> None:
    run("hold", "--reason", "a freeze", "--host", "host-1")
    said = run(*EMERGENCY, "--despite-hold").stdout
    assert "announced although host host-1: held by" in said


def test_a_held_emergency_names_the_hold_to_release() -> None:
    run("hold", "--reason", "a freeze", "--host", "host-1")
    said = run(*EMERGENCY).stdout
    assert "host host-1: held by" in said
    assert re.search(r"release the hold: +\S+ hold release 0000", said)
    assert re.search(r"host maintenance host-1 --action reboot --emergency .* --despite-hold\n", said)


@pytest.mark.usefixtures("terminal")
def test_a_question_to_a_tenant_names_no_host(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    (event,) = service.host_order("host-1", Action.MAINTENANCE, Work.REBOOT).events
    for grant in (
        Grant(name="olga", role=Role.OPERATOR),
        Grant(name="anna", role=Role.USER, project=DEFAULT_PROJECT),
    ):
        monkeypatch.setenv("FOREWARN_TOKEN", service.tokens.create(grant, by="test")[1])
    asked = run("event", "cancel", event.id, answer="n\n", code=1).output
    assert "Cancel maintenance reboot of a host, for all of web-0 and web-3?" in asked
