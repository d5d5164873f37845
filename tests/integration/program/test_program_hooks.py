"""Hooks of a real server: they run in lanes, and are checked after a kill."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.programs.process import Program, sample_fleet, until

# Waits for a file; a check meanwhile answers that it is running.
HOOK = """#!/bin/sh
echo "$FOREWARN_HOOK $1 $FOREWARN_ATTEMPT" >> {folder}/calls
case "$1" in
begin) read word < {folder}/go-on && echo worked >> {folder}/worked ;;
check) test -e {folder}/worked || {{ echo '{{"look_in": 1, "progress": 0.5}}'; exit 75; }} ;;
esac
"""
SERVICE = {"mode": "in-place", "together": "its board is swapped", "emergency": "fire"}


@pytest.fixture
def hooked(tmp_path: Path) -> dict[str, str]:
    """Settings with a hook for the work on hosts."""
    os.mkfifo(tmp_path / "go-on")
    hook = tmp_path / "hook"
    hook.write_text(HOOK.format(folder=tmp_path))
    hook.chmod(0o755)
    return {"FOREWARN_HOOKS_WORK": str(hook)}


def calls(folder: Path) -> list[str]:
    path = folder / "calls"
    return path.read_text().splitlines() if path.exists() else []


def work_on(program: Program) -> str:
    """Order work on a host and let it start."""
    order: str = program.post("/v1/hosts/host-1/service", json=SERVICE)["order"]["id"]
    program.advance(1)
    return order


def host_step(program: Program, order: str) -> dict[str, Any]:
    (step,) = program.get(f"/v1/orders/{order}")["order"]["host_steps"]
    found: dict[str, Any] = step
    return found


def test_a_hook_runs_once_even_if_the_server_is_killed_while_it_runs(
    tmp_path: Path, hooked: dict[str, str]
) -> None:
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path), environment=hooked) as program:
        order = work_on(program)
        until(lambda: calls(tmp_path) == ["work begin 1"], what="the hook runs")
        program.kill()
        program.start()
        until(lambda: "work check 1" in calls(tmp_path), what="the hook is asked")
        until(lambda: host_step(program, order)["progress"] == 0.5, what="what it says is saved")
        (tmp_path / "go-on").write_text("on\n")
        until(lambda: host_step(program, order)["state"] == "done", what="the work is done")
        assert [each for each in calls(tmp_path) if "begin" in each] == ["work begin 1"]
        assert (tmp_path / "worked").read_text() == "worked\n"
        program.advance(120)
        assert program.get(f"/v1/orders/{order}")["order"]["state"] == "done"


def test_a_failed_hook_reports_why_and_a_retry_is_a_new_attempt(tmp_path: Path) -> None:
    hook = tmp_path / "hook"
    hook.write_text('#!/bin/sh\ntest "$FOREWARN_ATTEMPT" -gt 2 || { echo no route >&2; exit 1; }\n')
    hook.chmod(0o755)
    settings = {"FOREWARN_HOOKS_WORK": str(hook), "FOREWARN_HOOKS_RETRIES": "1"}
    with Program(tmp_path, "--fleet", sample_fleet(tmp_path), environment=settings) as program:
        order = work_on(program)
        until(lambda: host_step(program, order)["state"] == "failed", what="both attempts have failed")
        failed = host_step(program, order)
        assert (failed["attempt"], failed["why"].endswith("no route")) == (2, True)
        program.post(f"/v1/orders/{order}/retry")
        until(lambda: host_step(program, order)["state"] == "done", what="the third attempt is done")
        said = [each["reason"] for each in program.history() if each["kind"] == "step-failed"]
        assert ["tried again" in each for each in said] == [True, False]
