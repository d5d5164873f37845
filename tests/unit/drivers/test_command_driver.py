"""A command as a driver: its input, its answers and its exit codes."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from forewarn.config import Settings
from forewarn.config_reading import load
from forewarn.control.driver import (
    Cancelled,
    Done,
    DriverLimits,
    Failed,
    NotBegun,
    Running,
    TooLate,
    Unknown,
)
from forewarn.core.basic_types import Action, GroupName, HostName, HostTask, OrderId, Work
from forewarn.core.errors import Invalid
from forewarn.core.model.host import Host
from forewarn.drivers.command import CommandDriver, CommandOptions, make
from forewarn.drivers.driver_setup import DriverSetup, UnusableDriver
from forewarn.drivers.program_steps import ASK_AGAIN
from tests.helpers.programs.process_ends import await_end
from tests.helpers.service.driver_calls import NOW, task

TASK = task()
Command = Callable[..., CommandDriver]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Create a driver with a script; `$1` is the call, `$d` a folder."""

    def made(text: str, **more: Any) -> CommandDriver:
        words = ("/bin/sh", "-c", f'd="{tmp_path}"; {text}', "command")
        return CommandDriver(CommandOptions(command=words, **more))

    return made


def said(**answer: Any) -> str:
    return f"printf %s '{json.dumps(answer)}'"


def made_with(**options: Any) -> CommandDriver:
    return make(DriverSetup(name="lxc", settings=Settings(), options=options, monotonic=lambda: 0.0))


# Answers


@pytest.mark.parametrize(
    ("answer", "means"),
    [
        ({"state": "done"}, Done()),
        ({"state": "done", "host": "rack-2", "impact": 1.5}, Done(HostName("rack-2"), 1.5)),
        ({"state": "done", "host": "", "impact": -1}, Done()),
        ({"state": "running"}, Running(NOW + ASK_AGAIN)),
        (
            {"state": "running", "look_in": 3, "mark": "job 7", "progress": 0.25},
            Running(NOW + timedelta(seconds=3), mark="job 7", progress=0.25),
        ),
        ({"state": "running", "look_in": "soon", "progress": 7}, Running(NOW + ASK_AGAIN, progress=1.0)),
        ({"state": "failed", "why": "no room"}, Failed("no room")),
        ({"state": "unknown", "why": "no route"}, Unknown("no route")),
        ({"state": "unknown", "look_in": 60}, Unknown("the program cannot tell", NOW + timedelta(minutes=1))),
    ],
)
def test_begin_and_check_return_the_answer_of_the_command(
    command: Command, answer: Mapping[str, Any], means: Any
) -> None:
    driver = command(said(**answer))
    assert driver.begin(TASK) == means
    assert driver.check(TASK) == means


def test_only_check_may_answer_not_begun(command: Command) -> None:
    driver = command(said(state="not-begun"))
    assert driver.check(TASK) == NotBegun()
    assert driver.begin(TASK) == Unknown(
        "the command answered begin with not-begun, which is no answer to begin"
    )
    assert isinstance(driver.cancel(TASK), Unknown)


@pytest.mark.parametrize(
    ("script", "means"),
    [
        (said(state="cancelled"), Cancelled()),
        (said(state="too-late"), TooLate()),
        (said(state="done"), TooLate()),
        (said(state="failed", why="no route"), Unknown("no route")),
        (
            said(state="running"),
            Unknown("the command answered cancel with running, which is no answer to cancel"),
        ),
        ("echo no such job >&2; exit 1", Unknown("no such job")),
        ("exit 75", Unknown("the command cannot tell (cancel)")),
    ],
)
def test_cancelled_must_be_answered_explicitly(command: Command, script: str, means: Any) -> None:
    assert command(script).cancel(TASK) == means


@pytest.mark.parametrize("word", ["cancelled", "too-late"])
def test_cancelled_answers_cancel_only(command: Command, word: str) -> None:
    driver = command(said(state=word))
    assert isinstance(driver.begin(TASK), Unknown)
    assert isinstance(driver.check(TASK), Unknown)


@pytest.mark.parametrize(
    "output", ["done", "[1]", "{}", '{"state": "finished"}', '{"state": "done"} {"state": "done"}', '{"a']
)
def test_an_invalid_answer_is_unknown(command: Command, output: str) -> None:
    driver = command(f"printf %s '{output}'")
    assert driver.begin(TASK) == Unknown(
        f'the command answered begin with no JSON object that has a "state": {output}'
    )


def test_a_command_without_output_is_unknown(command: Command) -> None:
    assert command("exit 0").check(TASK) == Unknown(
        'the command answered check with no JSON object that has a "state"'
    )


# Exit codes


def test_exit_code_75_is_unknown_whatever_the_answer(command: Command) -> None:
    assert command("echo no answer yet >&2; exit 75").check(TASK) == Unknown("no answer yet")
    busy = command(f"{said(state='done', why='it is busy', look_in=5)}; exit 75")
    assert busy.check(TASK) == Unknown("it is busy", NOW + timedelta(seconds=5))


def test_any_other_exit_code_is_a_failure_with_the_last_line_of_stderr(command: Command) -> None:
    assert command("echo first >&2; echo; echo no room >&2; exit 3").begin(TASK) == Failed("no room")
    assert command(f"{said(state='done')}; exit 1").begin(TASK) == Failed(
        "the command exited with 1 in begin"
    )
    assert command(f"{said(state='failed', why='it says')}; exit 1").check(TASK) == Failed("it says")


def test_a_hanging_command_is_stopped_with_its_children(command: Command, tmp_path: Path) -> None:
    driver = command("sleep 600 & echo $! > $d/child; sleep 600", timeout=timedelta(seconds=2))
    assert driver.begin(TASK) == Unknown("the command did not finish begin within 2 s and was stopped")
    await_end(int((tmp_path / "child").read_text()))


def test_processes_left_in_the_commands_group_are_stopped(command: Command, tmp_path: Path) -> None:
    driver = command(f"sleep 600 >/dev/null & echo $! > $d/child; {said(state='done')}")
    assert driver.begin(TASK) == Done()
    await_end(int((tmp_path / "child").read_text()))


def test_too_much_output_is_unknown(command: Command) -> None:
    driver = command(
        """printf '{"state": "done", "why": "'; head -c 200000 /dev/zero | tr '\\0' x; echo '"}'"""
    )
    assert isinstance(driver.begin(TASK), Unknown)


def test_a_killed_command_is_unknown(command: Command) -> None:
    assert command("kill -9 $$").begin(TASK) == Unknown("the command was killed by signal 9 in begin")


def test_a_missing_command_is_unknown() -> None:
    driver = CommandDriver(CommandOptions(command=("/no/such/program",)))
    gone = Unknown("/no/such/program cannot be run: No such file or directory")
    assert (driver.begin(TASK), driver.check(TASK), driver.cancel(TASK)) == (gone, gone, gone)


# Attempts


def test_an_outdated_attempt_is_refused_after_a_later_one(command: Command, tmp_path: Path) -> None:
    driver = command(f'echo "$1" >> $d/calls; {said(state="running")}')
    driver.begin(replace(TASK, attempt=2))
    late = "attempt 1 is outdated: attempt 2 of the step has begun"
    assert driver.begin(TASK) == Failed(late)
    assert driver.check(TASK) == Failed(late)
    assert driver.cancel(TASK) == Unknown(late)
    assert isinstance(driver.begin(replace(TASK, order=OrderId("OTHER"))), Running)
    assert (tmp_path / "calls").read_text().split() == ["begin", "begin"]


# Input


def test_a_command_gets_its_whole_task(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_SERVER", "1")
    machine = replace(TASK.machine, tags={"os": "bsd"}, address="10.0.0.7", mac="02:00:00:00:00:07", size="s")
    moved = replace(
        TASK,
        machine=machine,
        work=Work.REDEPLOY,
        source=Host(name=HostName("rack-1"), uri="file:///srv/rack-1"),
        target=Host(name=HostName("rack-2"), uri="file:///srv/rack-2"),
        deadline=NOW + timedelta(minutes=5),
        mark="job 7",
    )
    command(f"env > $d/variables; cat > $d/task; {said(state='done')}").begin(moved)
    given = json.loads((tmp_path / "task").read_text())
    assert {key: given[key] for key in ("order", "attempt", "work", "task", "call", "mark", "deadline")} == {
        "order": "ORDER",
        "attempt": 1,
        "work": "redeploy",
        "task": None,
        "call": "begin",
        "mark": "job 7",
        "deadline": "2026-03-01T12:05:00Z",
    }
    assert given["host"] == given["source"] == {"name": "rack-1", "uri": "file:///srv/rack-1"}
    assert given["target"] == {"name": "rack-2", "uri": "file:///srv/rack-2"}
    expected = {
        "name": "web-0",
        "id": "web-0",
        "vm_id": "web-0",
        "project": "default",
        "group": "web",
        "host": "host-1",
        "tags": {"os": "bsd"},
        "address": "10.0.0.7",
        "mac": "02:00:00:00:00:07",
        "size": "s",
        "mobility": "cold",
    }
    assert {key: given["machine"][key] for key in expected} == expected
    variables = dict(
        line.split("=", 1) for line in (tmp_path / "variables").read_text().splitlines() if "=" in line
    )
    assert "SECRET_OF_THE_SERVER" not in variables
    assert {
        name: variables[f"FOREWARN_{name}"] for name in ("WORK", "MACHINE", "HOST", "TARGET", "MARK")
    } == {
        "WORK": "redeploy",
        "MACHINE": "web-0",
        "HOST": "rack-1",
        "TARGET": "rack-2",
        "MARK": "job 7",
    }


def test_a_standalone_machine_has_no_group_and_a_host_task_no_machine(
    command: Command, tmp_path: Path
) -> None:
    driver = command(f'cat > "$d/$1"; {said(state="done")}')
    alone = replace(TASK.machine, group=GroupName("standalone/web-0"))
    driver.begin(replace(TASK, machine=alone))
    driver.check(replace(TASK, machine=None, action=Action.FAIL, work=Work.HOST, task=HostTask.FENCE))
    assert json.loads((tmp_path / "begin").read_text())["machine"]["group"] is None
    fence = json.loads((tmp_path / "check").read_text())
    assert (fence["machine"], fence["work"], fence["task"]) == (None, "host", "fence")
    assert fence["host"]["name"] == "host-1"


# Settings


def test_the_settings_define_the_calls_of_a_command() -> None:
    text = """
        [drivers.lxc]
        kind = "command"
        command = ["/etc/forewarn/lxc", "/var/lib/lxc"]
        timeout = "20s"
        at-once = 2
        fences = true
    """
    table = {key: value for key, value in load(text, {}, {}).drivers["lxc"].items() if key != "kind"}
    driver = made_with(**table)
    assert driver.limits == DriverLimits(timeout=timedelta(seconds=30), at_once=2)  # time to stop it
    assert (driver.fences, driver.works_on_hosts, driver.verifies_restarts) == (True, False, False)
    assert made_with(**table, **{"verifies-restarts": True}).verifies_restarts


def test_a_command_driver_without_a_command_cannot_be_used() -> None:
    with pytest.raises(UnusableDriver, match="it needs a command"):
        made_with()


def test_a_command_may_be_a_name_in_path() -> None:
    assert made_with(command=["printf", '{"state": "done"}%.0s']).begin(TASK) == Done()


@pytest.mark.parametrize("words", [[], [""], ["./lxc"], ["drivers/lxc"]])
def test_a_command_is_no_relative_path(words: list[str]) -> None:
    with pytest.raises(Invalid) as refused:
        made_with(command=words, timeout=5)
    assert str(refused.value) == (
        "[drivers.lxc] command: expected a program, as an absolute path or a name in PATH, and its arguments"
    )


@pytest.mark.parametrize("table", ["drivers = 7", "[drivers]\nlxc = 7"])
def test_an_invalid_table_of_a_driver_is_refused(table: str) -> None:
    with pytest.raises(Invalid, match="drivers: expected a table for each, in the file"):
        load(table, {}, {})
