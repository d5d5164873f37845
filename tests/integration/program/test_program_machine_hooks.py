"""Machine hooks of a real server with a command driver, killed in every phase."""

from pathlib import Path
from typing import Any

import pytest

from tests.helpers.programs.process import Program, until

# The script of hooks and driver: each phase lasts until the test releases it, and reports its progress.
PART = """#!/bin/sh
part="${{FOREWARN_HOOK:-work}}"
echo "$part $1 $FOREWARN_ATTEMPT $FOREWARN_OUTCOME" >> {folder}/calls
test "$1" != cancel || {{ touch {folder}/gone; echo '{{"state": "cancelled"}}'; exit; }}
test ! -e {folder}/fail-$part || {{ echo "no quorum" >&2; exit 1; }}
if test -e {folder}/hold-$part; then
    echo '{{"state": "running", "look_in": 1}}'
    exit
fi
echo '{{"state": "done"}}'
"""
SETTINGS = """
[times]
preempt-notice = "0s"
unheard-notice = "0s"
linger = "0s"

[drivers.own]
kind = "command"
command = ["{folder}/part"]

[hooks.machine]
before = ["{folder}/part"]
after = ["{folder}/part"]
"""
FLEET = """
[hosts.host-1]
driver = "own"

[[machines]]
name = "web-0"
host = "host-1"
priority = "spot"
"""


@pytest.fixture
def flags(tmp_path: Path) -> tuple[str | Path, ...]:
    """Start a server with hooks."""
    part = tmp_path / "part"
    part.write_text(PART.format(folder=tmp_path))
    part.chmod(0o755)
    (tmp_path / "forewarn.toml").write_text(SETTINGS.format(folder=tmp_path))
    (tmp_path / "fleet.toml").write_text(FLEET)
    return ("--config", tmp_path / "forewarn.toml", "--fleet", tmp_path / "fleet.toml")


def calls(folder: Path, call: str) -> list[str]:
    path = folder / "calls"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line.strip() for line in lines if line.split()[1] == call]


def order_of(program: Program, order: str) -> Any:
    return program.get(f"/v1/orders/{order}")["order"]


def is_over(program: Program, order: str) -> bool:
    return order_of(program, order)["state"] in ("done", "failed")


@pytest.mark.parametrize("part", ["machine-before", "work", "machine-after"])
def test_a_server_that_is_killed_in_any_phase_begins_each_phase_once(
    tmp_path: Path, flags: tuple[str | Path, ...], part: str
) -> None:
    (tmp_path / f"hold-{part}").touch()
    with Program(tmp_path, *flags, clock="system") as program:
        order = program.post("/v1/machines/web-0/evict")["order"]["id"]
        until(lambda: any(part in each for each in calls(tmp_path, "begin")), what="the part runs")
        program.kill()
        program.start()
        until(lambda: any(part in each for each in calls(tmp_path, "check")), what="it is asked about")
        (tmp_path / f"hold-{part}").unlink()
        until(lambda: is_over(program, order), what="its end")
        assert order_of(program, order)["state"] == "done"
        assert program.get("/v1/machines/web-0")["machine"]["state"] == "stopped"
    assert calls(tmp_path, "begin") == [
        "machine-before begin 1",
        "work begin 1",
        "machine-after begin 1 done",
    ]


def test_abandoned_work_is_followed_by_its_hook(tmp_path: Path, flags: tuple[str | Path, ...]) -> None:
    (tmp_path / "hold-work").touch()
    with Program(tmp_path, *flags, clock="system") as program:
        order = program.post("/v1/machines/web-0/evict")["order"]["id"]
        until(lambda: any("work" in each for each in calls(tmp_path, "begin")), what="the work runs")
        program.post(f"/v1/orders/{order}/abandon", json={})
        until(lambda: is_over(program, order), what="its end")
    assert calls(tmp_path, "begin")[-1] == "machine-after begin 1 cancelled"
    assert len(calls(tmp_path, "begin")) == 3


def test_work_that_ends_because_its_host_fails_is_followed_by_its_hook(
    tmp_path: Path, flags: tuple[str | Path, ...]
) -> None:
    (tmp_path / "hold-work").touch()
    with Program(tmp_path, *flags, clock="system") as program:
        program.post("/v1/machines/web-0/restart")
        until(lambda: any("work" in each for each in calls(tmp_path, "begin")), what="the work runs")
        program.post("/v1/hosts/host-1/fail", json={})
        until(lambda: len(calls(tmp_path, "begin")) == 3, what="the hook after")
    assert calls(tmp_path, "begin")[-1] == "machine-after begin 1 abandoned"


def test_a_failed_hook_is_quoted_and_a_retry_runs_the_hooks_again(
    tmp_path: Path, flags: tuple[str | Path, ...]
) -> None:
    (tmp_path / "fail-machine-before").touch()
    with Program(tmp_path, *flags, clock="system") as program:
        order = program.post("/v1/machines/web-0/evict")["order"]["id"]
        until(lambda: is_over(program, order), what="its failure")
        (step,) = order_of(program, order)["steps"]
        assert step["why"] == "its hook says: before the work: no quorum"
        (tmp_path / "fail-machine-before").unlink()
        (tmp_path / "fail-machine-after").touch()
        program.post(f"/v1/orders/{order}/retry")
        until(lambda: order_of(program, order)["state"] == "done", what="its end")
        (step,) = order_of(program, order)["steps"]
        assert step["why"] == "its hook says: the hook after the work failed: no quorum"
        reasons = [each["reason"] for each in program.history() if each["kind"] == "step-done"]
        assert reasons[0].endswith("; its hook says: the hook after the work failed: no quorum")
    assert calls(tmp_path, "begin") == [
        "machine-before begin 1",
        "machine-after begin 1 failed",
        "machine-before begin 2",
        "work begin 2",
        "machine-after begin 2 done",
    ]
