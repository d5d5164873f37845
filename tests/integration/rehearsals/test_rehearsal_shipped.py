"""Each shipped scenario, played to guests that use only curl."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.programs.process import run

pytestmark = pytest.mark.skipif(
    shutil.which("curl") is None, reason="curl, the guest of these tests, is absent"
)

CURL = Path(__file__).with_name("curl-guest.sh")


def rehearsed(folder: Path, name: str, *, speed: int, guest: str = "approve") -> dict[str, Any]:
    """Play a scenario to its end. It must succeed."""
    ran = run(folder, "rehearse", name, "--json", "--speed", str(speed), "--", CURL, "{endpoint}", guest)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    told: dict[str, Any] = json.loads(ran.stdout)
    assert told["held"]
    return told


def only_event(told: dict[str, Any]) -> dict[str, Any]:
    guest, *others = [guest for guest in told["guests"] if guest["events"]]
    assert not others
    (event,) = guest["events"]
    return dict(event)


@pytest.mark.parametrize(
    ("name", "speed", "type_", "notice"),
    [
        ("live-migration", 120, "Freeze", 900),
        ("host-update", 120, "Reboot", 900),
        ("user-restart", 120, "Reboot", 900),
        ("redeploy", 120, "Redeploy", 600),
        ("spot-eviction", 15, "Preempt", 30),
        ("terminate", 60, "Terminate", 300),
        ("degraded-hardware", 3600, "Redeploy", 7 * 86400),
    ],
)
def test_an_approval_shortens_the_notice(
    tmp_path: Path, name: str, speed: int, type_: str, notice: int
) -> None:
    event = only_event(rehearsed(tmp_path, name, speed=speed))
    assert event["type"] == type_
    assert event["announced_seconds"] <= event["seen_seconds"] <= event["approved_seconds"]
    # NotBefore is rounded up to a second.
    assert notice <= event["notice_seconds"] <= notice + 1
    assert event["used_seconds"] < event["notice_seconds"]
    assert event["ended_seconds"] > event["started_seconds"]


def test_cancelled_maintenance_never_starts(tmp_path: Path) -> None:
    event = only_event(rehearsed(tmp_path, "cancelled-maintenance", speed=120, guest="watch"))
    assert event["type"] == "Redeploy"
    assert event["seen_seconds"] is not None
    assert event["started_seconds"] is None
    assert event["ended_seconds"] == pytest.approx(240, abs=60)


def test_a_hardware_failure_gives_no_notice(tmp_path: Path) -> None:
    event = only_event(rehearsed(tmp_path, "hardware-failure", speed=120))
    assert event["type"] == "Reboot"
    assert event["started_seconds"] == event["announced_seconds"]
    assert event["approved_seconds"] is None


def test_a_rolling_update_takes_one_update_domain_after_another(tmp_path: Path) -> None:
    told = rehearsed(tmp_path, "rolling-host-update", speed=120)
    own = {
        guest["machine"]: next(event for event in guest["events"] if event["named"])
        for guest in told["guests"]
    }
    assert list(own) == ["web-0", "web-1", "web-2"]
    assert own["web-1"]["announced_seconds"] >= own["web-0"]["ended_seconds"]
    assert own["web-2"]["announced_seconds"] >= own["web-1"]["ended_seconds"]
