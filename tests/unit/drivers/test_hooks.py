"""Hooks: their input, and the meaning of their exit codes."""

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from forewarn.config import HookSettings, HookTimeouts
from forewarn.control.driver import (
    Cancelled,
    Done,
    DriverTask,
    Failed,
    NotBegun,
    Running,
    TooLate,
    Unknown,
)
from forewarn.core.basic_types import HOOK, Action, HostName, HostTask, OrderId, Work
from forewarn.core.model.host import Host
from forewarn.drivers import hooks
from forewarn.drivers.hooks import HookDriver
from forewarn.drivers.program_steps import ASK_AGAIN, read_answer
from tests import ROOT
from tests.helpers.programs.process import until
from tests.helpers.service.harness import START
from tests.helpers.service.racing import at_once

TASK = DriverTask(
    order=OrderId("ORDER"),
    attempt=1,
    action=Action.SERVICE,
    work=Work.HOST,
    task=HostTask.WORK,
    machine=None,
    source=Host(name=HostName("host-1"), uri="ssh://host-1"),
    target=None,
    begun_at=START,
    now=START,
    mark="made earlier",
    driver=HOOK,
)


def test_a_host_task_has_a_name() -> None:
    assert TASK.name == "work of host-1"
    assert replace(TASK, task=None).name == "host-1"


Hook = Callable[..., HookDriver]


@pytest.fixture(autouse=True)
def _waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the end of a hook on a slow computer."""
    monkeypatch.setattr(hooks, "WAIT_SECONDS", 60.0)


@pytest.fixture
def hook(tmp_path: Path) -> Hook:
    """Create a driver whose `work` hook is a script; `$1` is the call, `$d` a folder."""

    def made(text: str, **more: Any) -> HookDriver:
        command = ("/bin/sh", "-c", f'd="{tmp_path}"; {text}', "hook")
        return HookDriver(HookSettings(work=command, **more))

    return made


def said(**answer: Any) -> str:
    return f"printf %s '{json.dumps(answer)}'"


# Exit codes


def test_a_hook_with_exit_code_0_is_done(hook: Hook) -> None:
    assert hook("exit 0").begin(TASK) == Done()


def test_output_that_is_no_answer_does_not_matter(hook: Hook) -> None:
    assert hook("echo done").begin(TASK) == Done()
    assert hook("echo '[1]'").begin(TASK) == Done()


def test_a_failed_hook_is_quoted_with_its_last_line(hook: Hook) -> None:
    assert hook("echo no route >&2; exit 3").begin(TASK) == Failed("no route")
    assert hook("exit 3").begin(TASK) == Failed("the hook exited with 3")


def test_a_failed_hook_is_tried_again_as_set(hook: Hook) -> None:
    driver = hook("exit 1", retries=1)
    again = (driver.begin(replace(TASK, attempt=attempt)) for attempt in (1, 2))
    assert [each.again for each in again if isinstance(each, Failed)] == [True, False]


def test_a_hook_that_is_not_done_is_called_with_check(hook: Hook, tmp_path: Path) -> None:
    driver = hook('echo "$1" >> $d/calls; test "$1" = check || exit 75')
    assert driver.begin(TASK) == Running(START + ASK_AGAIN)
    assert driver.check(TASK) == Done()
    assert (tmp_path / "calls").read_text().split() == ["begin", "check"]


def test_a_killed_hook_is_unknown(hook: Hook) -> None:
    assert hook("kill -9 $$").begin(TASK) == Unknown("the hook was killed by signal 9 in begin")


def test_a_missing_hook_fails_at_begin_and_is_unknown_at_check() -> None:
    driver = HookDriver(HookSettings(work=("/no/such/hook",)))
    assert driver.begin(TASK) == Failed("/no/such/hook cannot be run: No such file or directory")
    again = replace(TASK, attempt=2)
    assert driver.check(again) == Unknown("/no/such/hook cannot be run: No such file or directory")


def test_a_hook_that_takes_too_long_is_stopped_and_checked(hook: Hook) -> None:
    text = 'test "$1" = check || exec sleep 600'
    driver = hook(text, timeouts=HookTimeouts(work=timedelta(milliseconds=1)))
    assert driver.begin(TASK) == Unknown("the hook did not finish begin within 0.001 s and was stopped")
    assert hook(text).check(TASK) == Done()


def test_without_a_hook_begin_fails_and_check_is_unknown() -> None:
    driver = HookDriver(HookSettings())
    assert driver.begin(TASK) == Failed("there is no hook for work: set one in [hooks], then retry")
    assert isinstance(driver.check(TASK), Unknown)
    assert isinstance(driver.begin(replace(TASK, task=None)), Failed)


# Running hooks


def test_a_long_hook_is_checked_and_not_begun_again(
    hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "WAIT_SECONDS", 0.01)
    go_on = tmp_path / "go-on"
    os.mkfifo(go_on)
    driver = hook('echo "$1" >> $d/calls; read word < $d/go-on')
    first = driver.begin(TASK)
    assert isinstance(first, Running)
    assert first.look_at is not None
    assert isinstance(driver.check(TASK), Running)
    go_on.write_text("on\n")
    monkeypatch.setattr(hooks, "WAIT_SECONDS", 60.0)
    assert driver.check(TASK) == Done()
    # The answer may not have been saved.
    assert driver.check(TASK) == Done()
    assert (tmp_path / "calls").read_text().split() == ["begin"]


def test_cancelling_stops_the_hook(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forewarn.programs.watched_program.LOOK_EVERY", 0.01)
    monkeypatch.setattr(hooks, "WAIT_SECONDS", 0.01)
    driver = hook("exec sleep 600")
    assert isinstance(driver.begin(TASK), Running)
    assert driver.cancel(TASK) == Cancelled()


def test_a_hook_that_is_done_is_too_late_to_cancel(hook: Hook) -> None:
    driver = hook("exit 0")
    driver.begin(TASK)
    assert driver.cancel(TASK) == TooLate()


def test_a_failed_hook_is_cancelled(hook: Hook) -> None:
    driver = hook("exit 1")
    driver.begin(TASK)
    assert driver.cancel(TASK) == Cancelled()


def test_work_that_a_hook_left_elsewhere_is_checked_and_not_cancelled(hook: Hook) -> None:
    driver = hook('test "$1" = check || exit 75')
    driver.begin(TASK)
    assert driver.cancel(TASK) == TooLate()
    assert driver.check(TASK) == Done()


def test_a_hook_of_another_server_is_not_cancelled(hook: Hook, tmp_path: Path) -> None:
    driver = hook('echo "$1" >> $d/calls')
    assert driver.cancel(TASK) == TooLate()
    assert not (tmp_path / "calls").exists()


def test_cancelling_does_not_stop_a_hook_during_check(
    hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "WAIT_SECONDS", 0.01)
    go_on = tmp_path / "go-on"
    os.mkfifo(go_on)
    driver = hook("read word < $d/go-on")
    assert isinstance(driver.check(TASK), Running)
    assert driver.cancel(TASK) == TooLate()
    go_on.write_text("on\n")
    monkeypatch.setattr(hooks, "WAIT_SECONDS", 60.0)
    assert driver.check(TASK) == Done()


def test_the_outcomes_of_the_last_hooks_are_remembered(
    hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "REMEMBERED", 1)
    driver = hook('echo "$1 $FOREWARN_ATTEMPT" >> $d/calls')
    for attempt in (1, 2):
        driver.begin(replace(TASK, attempt=attempt))
    for attempt in (2, 1):
        driver.check(replace(TASK, attempt=attempt))
    assert (tmp_path / "calls").read_text().splitlines() == ["begin 1", "begin 2", "check 1"]


# Input


def test_a_hook_gets_its_task(hook: Hook, tmp_path: Path) -> None:
    hook("env > $d/variables; cat > $d/task").begin(TASK)
    variables = dict(
        line.split("=", 1) for line in (tmp_path / "variables").read_text().splitlines() if "=" in line
    )
    assert {name: variables[f"FOREWARN_{name}"] for name in ("HOOK", "CALL", "HOST", "ORDER")} == {
        "HOOK": "work",
        "CALL": "begin",
        "HOST": "host-1",
        "ORDER": "ORDER",
    }
    assert (variables["FOREWARN_ATTEMPT"], variables["FOREWARN_MARK"]) == ("1", "made earlier")
    task = json.loads((tmp_path / "task").read_text())
    assert task["host"] == {"name": "host-1", "uri": "ssh://host-1"}
    assert (task["call"], task["task"], task["attempt"], task["machine"]) == ("begin", "work", 1, None)
    assert task["begun_at"] == "2026-01-05T12:00:00Z"


# Answers


@pytest.mark.parametrize(
    ("answer", "taken"),
    [
        ({"state": "done", "host": "host-9"}, Done()),
        (
            {"state": "running", "look_in": 60, "mark": "job 7", "progress": 0.5},
            Running(START + timedelta(minutes=1), mark="job 7", progress=0.5),
        ),
        (
            {"state": "running", "progress": 7, "look_in": "soon"},
            Running(START + ASK_AGAIN, progress=1.0),
        ),
        ({"state": "failed", "why": "no\nroute"}, Failed("no route")),
        ({"state": "failed"}, Failed("the program gave no reason")),
        (
            {"state": "unknown", "look_in": 5},
            Unknown("the program cannot tell", START + timedelta(seconds=5)),
        ),
        ({"state": "not-begun"}, NotBegun()),
        (
            {"state": "cancelled"},
            Unknown("the hook answered check with cancelled, which is no answer to check"),
        ),
        (
            {"state": "too-late"},
            Unknown("the hook answered check with too-late, which is no answer to check"),
        ),
    ],
)
def test_a_hook_may_answer_in_json(hook: Hook, answer: dict[str, Any], taken: object) -> None:
    assert hook(said(**answer)).check(TASK) == taken


def test_a_hook_cannot_answer_begin_with_not_begun(hook: Hook) -> None:
    assert hook(said(state="not-begun")).begin(TASK) == Unknown("the hook reports that it has not begun")


def test_the_exit_code_limits_the_answer(hook: Hook) -> None:
    not_yet = hook(said(mark="job 7", state="done") + "; exit 75").begin(TASK)
    assert not_yet == Running(START + ASK_AGAIN, mark="job 7")
    assert hook(said(state="unknown", why="no answer") + "; exit 75").begin(TASK) == Unknown("no answer")
    assert hook(said(why="no disk") + "; exit 1").begin(TASK) == Failed("no disk")


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"state": "finished"}', "7", '"done"'])
def test_an_invalid_answer_is_ignored(text: str) -> None:
    assert read_answer(text.encode()) is None


def test_a_background_job_as_in_the_guide_goes_on_after_its_hook(hook: Hook, tmp_path: Path) -> None:
    guide = (ROOT / "docs/operate/hooks.md").read_text()
    (script,) = (each for each in guide.split("```") if "update-firmware" in each)
    job = tmp_path / "update"
    job.write_text(f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo no image; false\n")
    text = script.removeprefix("sh\n").replace("/var/lib/forewarn", str(tmp_path))
    driver = hook(text.replace('update-firmware "$FOREWARN_HOST"', f"sh {job}"))
    assert driver.check(TASK) == NotBegun()
    assert isinstance(driver.begin(TASK), Running)
    assert isinstance(driver.check(TASK), Running)
    (tmp_path / "go").touch()
    until(lambda: driver.check(TASK) == Failed("no image"), what="the job to end")


def test_one_of_concurrent_checks_runs_the_hook(hook: Hook, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go-on")
    driver = hook('echo "$1" >> $d/calls; read word < $d/go-on')
    with ThreadPoolExecutor() as threads:
        answers = threads.submit(at_once, [partial(driver.check, TASK)] * 4)
        (tmp_path / "go-on").write_text(
            "on\n"
        )  # blocks until the hook reads, so that no check returns before
        assert answers.result() == [Done()] * 4
    assert (tmp_path / "calls").read_text() == "check\n"
