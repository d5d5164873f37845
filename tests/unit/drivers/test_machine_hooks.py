"""Hooks before and after the work on a machine: each part begins once, and the hook after always runs."""

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from forewarn.config import MachineHookSettings
from forewarn.control.driver import (
    Begun,
    CancelAnswer,
    Cancelled,
    Checked,
    Done,
    Driver,
    DriverTask,
    Failed,
    NotBegun,
    Running,
    TooLate,
    Unknown,
)
from forewarn.core.basic_types import Action, HostName, HostTask, OrderId, Work
from forewarn.core.model.host import Host
from forewarn.core.model.order import AttemptId
from forewarn.drivers import hooks, machine_hook_attempts
from forewarn.drivers.hooks import HookRuns
from forewarn.drivers.machine_hook_attempts import HookedMark, Part, read_mark, write_mark
from forewarn.drivers.machine_hooks import CALL_OVERHEAD, HAS_ENDED, NOT_ANSWERED, MachineHooks
from forewarn.drivers.registry import DriversByName, HookedDrivers
from tests.helpers.programs.process import until
from tests.helpers.service.harness import START
from tests.helpers.service.scripted_driver import SCRIPTED, ScriptedDriver
from tests.unit.slices import machine

HOST = Host(name=HostName("host-1"), uri="test://host-1")
TASK = DriverTask(
    order=OrderId("ORDER"),
    attempt=1,
    action=Action.EVICT,
    work=Work.EVICT,
    machine=machine("web-0"),
    source=HOST,
    target=None,
    begun_at=START,
    now=START,
    driver=SCRIPTED,
)
# Logs its calls and runs a file with the name of the hook.
SCRIPT = """
echo "$FOREWARN_HOOK $1 $FOREWARN_ATTEMPT" >> $d/calls
test ! -e $d/$FOREWARN_HOOK || . $d/$FOREWARN_HOOK
"""


@pytest.fixture(autouse=True)
def _waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the end of a hook on a slow computer."""
    monkeypatch.setattr(hooks, "WAIT_SECONDS", 60.0)


class HookedStep:
    """A step as the engine runs it: each answer is saved before the next call."""

    def __init__(self, folder: Path, *, only: str = "") -> None:
        self.folder = folder
        self.work = ScriptedDriver()
        command = ("/bin/sh", "-c", f'd="{folder}"; {SCRIPT}', "hook")
        self.settings = MachineHookSettings(
            before=command if only in ("", "before") else (), after=command if only in ("", "after") else ()
        )
        self.task = TASK
        self.start()

    def start(self) -> None:
        """Start a server, which knows the saved state only."""
        self.runs = HookRuns(remembered=10)
        self.driver = MachineHooks(self.work, self.settings, runs=self.runs)

    def hook(self, part: str, text: str) -> None:
        """Set the script of a hook."""
        (self.folder / f"machine-{part}").write_text(text)

    def begin(self) -> Checked:
        return self._saved(self.driver.begin(self.task))

    def check(self) -> Checked:
        return self._saved(self.driver.check(self.task))

    def cancel(self) -> CancelAnswer:
        return self.driver.cancel(self.task)

    def run(self, answer: Checked) -> Checked:
        """Call `check` until the step has ended."""
        while isinstance(answer, Running):
            answer = self.check()
        return answer

    @property
    def part(self) -> Part | None:
        mark = read_mark(self.task.mark)
        return None if mark is None else mark.part

    @property
    def calls(self) -> list[str]:
        """The calls of hooks and driver."""
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def worked(self) -> list[str]:
        return [verb for verb, _, _ in self.work.asked]

    def _saved(self, answer: Checked) -> Checked:
        if isinstance(answer, Running) and answer.mark:
            self.task = replace(self.task, mark=answer.mark)
        return answer


@pytest.fixture
def step(tmp_path: Path) -> HookedStep:
    return HookedStep(tmp_path)


# Order


def test_hooks_run_before_and_after_the_work(step: HookedStep) -> None:
    assert step.run(step.begin()) == Done()
    assert step.calls == ["machine-before begin 1", "machine-after begin 1"]
    assert step.worked == ["begin", "check"]


def test_each_part_is_saved_before_it_begins(step: HookedStep) -> None:
    step.begin()
    assert (step.part, step.worked) == (Part.WORK, [])
    step.work.begins = [Running(None, mark="job 7", progress=0.5)]
    running = step.check()
    assert (step.part, step.worked) == (Part.WORK, ["begin"])
    assert isinstance(running, Running)
    assert running.progress == 0.5
    step.check()
    assert step.work.tasks[-1].mark == "job 7"
    assert (step.part, step.calls) == (Part.AFTER, ["machine-before begin 1"])


def test_an_unsaved_answer_is_repeated_without_beginning_again(step: HookedStep) -> None:
    step.begin()
    step.task = replace(step.task, mark="")
    assert isinstance(step.check(), Running)
    assert (step.part, step.worked, step.calls) == (Part.WORK, [], ["machine-before begin 1"])
    assert step.run(step.check()) == Done()
    assert step.worked[0] == "begin"


@pytest.mark.parametrize("only", ["before", "after"])
def test_one_hook_is_enough(tmp_path: Path, only: str) -> None:
    step = HookedStep(tmp_path, only=only)
    assert step.run(step.begin()) == Done()
    assert (step.calls, step.worked) == ([f"machine-{only} begin 1"], ["begin", "check"])


def test_without_hooks_only_the_driver_is_called(tmp_path: Path) -> None:
    step = HookedStep(tmp_path, only="none")
    step.work.begins = [Running(None, mark="job 7")]
    assert step.begin() == Running(None, mark="job 7")
    assert step.check() == Done()
    assert step.cancel() == Cancelled()


def test_work_on_a_host_runs_no_machine_hooks(step: HookedStep) -> None:
    step.task = replace(TASK, machine=None, task=HostTask.FENCE, work=Work.HOST)
    step.begin()
    assert step.check() == Done()
    assert step.cancel() == Cancelled()
    step.driver.ended(step.task)
    assert (step.calls, step.worked) == ([], ["begin", "check", "cancel"])


def test_a_hook_gets_its_task_and_the_outcome_of_the_work(step: HookedStep) -> None:
    step.hook("after", 'cat > $d/given; echo "$FOREWARN_MACHINE $FOREWARN_WORK $FOREWARN_OUTCOME" > $d/names')
    step.work.checks = [Done(HostName("host-2"), 1.5)]
    assert step.run(step.begin()) == Done(HostName("host-2"), 1.5)
    given = json.loads((step.folder / "given").read_text())
    assert (given["hook"], given["outcome"]) == ("machine-after", {"state": "done", "host": "host-2"})
    assert given["machine"]["name"] == "web-0"
    assert (step.folder / "names").read_text() == "web-0 evict done\n"


def test_a_long_hook_is_checked_with_its_own_mark(step: HookedStep) -> None:
    step.hook(
        "before", 'test "$FOREWARN_MARK" = "job 7" || { echo \'{"mark": "job 7", "look_in": 5}\'; exit 75; }'
    )
    assert isinstance(step.begin(), Running)
    assert (step.part, step.worked) == (Part.BEFORE, [])
    step.hook("after", (step.folder / "machine-before").read_text())
    assert step.run(step.check()) == Done()
    assert step.calls == [
        f"machine-{part} {call} 1" for part in Part if part != "work" for call in ("begin", "check")
    ]


# Failures


def test_if_the_hook_before_fails_the_work_does_not_begin_and_the_hook_after_runs(step: HookedStep) -> None:
    step.hook("before", "echo no quorum >&2; exit 1")
    assert step.run(step.begin()) == Failed("its hook says: before the work: no quorum")
    assert (step.calls, step.worked) == (["machine-before begin 1", "machine-after begin 1"], [])


def test_the_hook_after_runs_if_the_work_fails(step: HookedStep) -> None:
    step.work.checks = [Failed("no disk")]
    assert step.run(step.begin()) == Failed("no disk")
    assert step.calls[-1] == "machine-after begin 1"


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (Done(), Done(note="the hook after the work failed: no quorum")),
        (Failed("no disk"), Failed("no disk; the hook after the work failed: no quorum")),
    ],
)
def test_a_failed_hook_after_does_not_fail_the_work(step: HookedStep, end: Checked, said: Checked) -> None:
    step.hook("after", "echo no quorum >&2; exit 1")
    step.work.checks = [end]
    assert step.run(step.begin()) == said


@pytest.mark.parametrize("part", ["before", "after"])
def test_a_hook_that_answers_unknown_is_checked_again(step: HookedStep, part: str) -> None:
    step.hook(part, 'test "$1" = check || kill -9 $$')
    answer = step.run(step.begin())
    assert isinstance(answer, Unknown)
    assert answer.why == f"its hook says: {part} the work: the hook was killed by signal 9 in begin"
    assert step.run(step.check()) == Done()


def test_a_driver_that_answers_unknown_is_checked_again(step: HookedStep) -> None:
    step.work.begins = [Unknown("no route")]
    step.begin()
    assert step.check() == Unknown("no route")
    assert step.run(step.check()) == Done()
    assert step.worked == ["begin", "check"]


# Crashes


def test_after_a_crash_the_current_part_is_checked_first(step: HookedStep) -> None:
    step.hook("before", 'test "$1" = check || { echo \'{"look_in": 5}\'; exit 75; }')
    step.begin()
    step.start()
    step.check()
    assert (step.part, step.calls[-1]) == (Part.WORK, "machine-before check 1")
    step.check()
    step.start()
    step.check()
    assert (step.part, step.worked) == (Part.AFTER, ["begin", "check"])
    step.start()
    assert step.check() == Done()
    assert step.calls[-1] == "machine-after check 1"


def test_a_part_that_the_earlier_server_did_not_begin_begins(step: HookedStep) -> None:
    step.hook("before", 'test "$1" = begin || echo \'{"state": "not-begun"}\'')
    step.hook("after", 'test "$1" = begin || echo \'{"state": "not-begun"}\'')
    step.check()
    assert step.calls == ["machine-before check 1", "machine-before begin 1"]
    step.start()
    step.work.checks = [NotBegun(), Done()]
    step.check()
    assert step.worked == ["check", "begin"]
    step.check()
    step.start()
    assert step.check() == Done()
    assert step.calls[2:] == ["machine-after check 1", "machine-after begin 1"]


def test_the_work_does_not_begin_again_while_its_begin_runs(step: HookedStep) -> None:
    step.begin()
    step.work.checks = [NotBegun()]
    asked: list[Checked] = []

    def begin(task: DriverTask) -> Running:
        asked.append(step.driver.check(step.task))
        return Running(None)

    step.work.begin = begin  # type: ignore[method-assign]
    step.check()
    assert asked == [Unknown(NOT_ANSWERED)]


def test_removed_hooks_are_skipped(step: HookedStep) -> None:
    step.settings = MachineHookSettings()
    for mark in (HookedMark(part=Part.BEFORE), HookedMark(part=Part.AFTER, end=Done(HostName("host-2")))):
        step.task = replace(TASK, mark=write_mark(mark))
        step.start()
        assert isinstance(step.run(step.check()), Done)
    assert step.calls == []


def test_a_step_that_began_without_hooks_ends_without_them(step: HookedStep) -> None:
    step.task = replace(TASK, mark="job 7")
    assert step.check() == Done()
    assert step.cancel() == Cancelled()
    assert step.calls == []


# Cancelling


def test_the_hook_after_runs_if_the_work_is_cancelled(step: HookedStep) -> None:
    step.begin()
    step.check()
    assert step.cancel() == Cancelled()
    assert (step.worked, step.calls[-1]) == (["begin", "cancel"], "machine-after begin 1")


def test_cancelling_waits_for_the_hook_after_and_cancels_the_work_once(
    step: HookedStep,
) -> None:
    step.hook("after", 'test "$FOREWARN_MARK" = 7 || { echo \'{"mark": "7", "look_in": 5}\'; exit 75; }')
    step.begin()
    step.check()
    answer = step.cancel()
    assert isinstance(answer, Unknown)
    assert answer.look_at == START + timedelta(seconds=5)
    assert step.cancel() == Cancelled()
    assert (step.worked, step.calls[1:]) == (
        ["begin", "cancel"],
        ["machine-after begin 1", "machine-after check 1"],
    )


def test_work_that_cannot_be_cancelled_goes_on_and_has_its_hook(step: HookedStep) -> None:
    step.work.cancels = [TooLate()]
    step.begin()
    step.check()
    assert step.cancel() == TooLate()
    assert step.run(step.check()) == Done()
    assert step.calls[-1] == "machine-after begin 1"
    assert step.cancel() == TooLate()


def test_a_driver_that_answers_cancel_with_unknown_is_called_again(step: HookedStep) -> None:
    step.work.cancels = [Unknown("no route"), Cancelled()]
    step.begin()
    step.check()
    assert step.cancel() == Unknown("no route")
    assert step.cancel() == Cancelled()


def test_work_that_is_cancelled_during_the_hook_before_never_begins(step: HookedStep) -> None:
    step.hook("before", "test $1 = check || exit 75")
    step.begin()
    assert step.cancel() == Cancelled()
    assert (step.worked, step.calls[-1]) == ([], "machine-after begin 1")
    answer = step.check()  # a late call
    assert isinstance(answer, Running)
    assert step.part is Part.AFTER
    assert step.check() == NotBegun()
    assert [each for each in step.calls if "after begin" in each] == ["machine-after begin 1"]


def test_cancelling_waits_for_the_hook_before(step: HookedStep) -> None:
    step.hook("before", "exit 75")
    step.begin()
    for _ in range(2):
        answer = step.cancel()
        assert isinstance(answer, Unknown)
        assert answer.look_at is not None
    step.hook("before", "kill -9 $$")
    assert isinstance(step.cancel(), Unknown)
    step.hook("before", "exit 1")
    assert step.cancel() == Cancelled()
    assert step.calls[-1] == "machine-after begin 1"


def test_cancelling_stops_a_running_hook_before(step: HookedStep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "WAIT_SECONDS", 0.0)
    os.mkfifo(step.folder / "never")
    step.hook("before", "read word < $d/never")
    assert isinstance(step.begin(), Running)
    until(lambda: step.calls == ["machine-before begin 1"], what="the hook runs")
    monkeypatch.setattr(hooks, "WAIT_SECONDS", 60.0)
    assert step.cancel() == Cancelled()
    assert step.calls == ["machine-before begin 1", "machine-after begin 1"]


def test_work_that_has_not_begun_is_cancelled_without_its_driver(step: HookedStep) -> None:
    step.begin()
    assert step.cancel() == Cancelled()
    assert (step.worked, step.calls[-1]) == ([], "machine-after begin 1")


def test_after_a_crash_the_hook_after_a_cancelled_work_is_checked_first(step: HookedStep) -> None:
    step.begin()
    step.check()
    step.start()
    assert step.cancel() == Cancelled()
    assert step.calls[-1] == "machine-after check 1"


def test_a_step_that_never_began_has_no_hook_after(step: HookedStep) -> None:
    step.hook("before", 'echo \'{"state": "not-begun"}\'')
    assert step.cancel() == Cancelled()
    assert step.calls == ["machine-before check 1"]


@pytest.mark.parametrize(("how", "is_known"), [("exit 1", True), ("kill -9 $$", False)])
def test_the_hook_after_a_cancelled_work_may_fail(step: HookedStep, how: str, is_known: bool) -> None:
    step.hook("after", how)
    step.begin()
    step.check()
    assert (step.cancel() == Cancelled()) is is_known


def test_a_driver_does_not_begin_an_abandoned_step(step: HookedStep) -> None:
    step.begin()
    step.start()
    step.work.cancels = [TooLate()]
    step.work.checks = [NotBegun()]
    assert step.cancel() == TooLate()
    assert step.run(step.check()) == NotBegun()
    assert step.worked == ["cancel", "check"]


# Abandoned attempts


def test_an_abandoned_attempt_has_its_hook_after_and_begins_nothing_more(step: HookedStep) -> None:
    step.hook("after", "echo $FOREWARN_OUTCOME > $d/outcome")
    step.begin()
    step.driver.ended(step.task)
    outcome = step.folder / "outcome"
    until(lambda: outcome.exists() and outcome.read_text(), what="the hook has run")
    assert step.driver.check(step.task) == Unknown(HAS_ENDED)
    assert step.driver.cancel(step.task) == Unknown(HAS_ENDED)
    assert (step.worked, outcome.read_text()) == ([], "abandoned\n")


class _HeldAtStart(HookRuns):
    """Begins hooks when the test releases it, like a slow thread."""

    def __init__(self) -> None:
        super().__init__(remembered=10)
        self.is_at_start, self.goes_on = threading.Event(), threading.Event()

    def begin(self, hook: hooks.Hook) -> Begun:
        self.is_at_start.set()
        assert self.goes_on.wait(60)
        return super().begin(hook)


def test_an_attempt_that_is_abandoned_during_begin_has_the_hook_after(step: HookedStep) -> None:
    runs = _HeldAtStart()
    step.driver = MachineHooks(step.work, step.settings, runs=runs)
    beginning = threading.Thread(target=step.driver.begin, args=(step.task,))
    beginning.start()
    assert runs.is_at_start.wait(60)
    step.driver.ended(step.task)  # the lane's thread is about to run the hook before
    runs.goes_on.set()
    beginning.join()
    until(lambda: "machine-after begin 1" in step.calls, what="the hook after")
    assert step.calls == ["machine-before begin 1", "machine-after begin 1"]


def test_a_late_call_of_an_ended_attempt_begins_nothing(step: HookedStep) -> None:
    step.driver.ended(step.task)
    assert step.driver.begin(step.task) == Unknown(HAS_ENDED)
    assert step.calls == []


def test_the_hook_before_an_abandoned_attempt_ends_before_the_hook_after_begins(
    step: HookedStep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "WAIT_SECONDS", 0.0)
    step.hook(
        "before", 'trap "echo ended >> $d/calls; exit" TERM; echo > $d/runs; while :; do sleep 0.01; done'
    )
    assert isinstance(step.begin(), Running)
    until((step.folder / "runs").exists, what="the hook before")
    step.driver.ended(step.task)
    until(lambda: "machine-after begin 1" in step.calls, what="the hook after")
    assert step.calls == ["machine-before begin 1", "ended", "machine-after begin 1"]


def test_the_next_attempt_waits_for_the_last_hook_after(step: HookedStep) -> None:
    os.mkfifo(step.folder / "go-on")
    step.hook("after", "read word < $d/go-on")
    step.begin()
    step.driver.ended(step.task)
    step.task = replace(TASK, attempt=2)
    assert step.begin() == Running(START + timedelta(seconds=1))
    until(lambda: "machine-after begin 1" in step.calls, what="the hook runs")
    (step.folder / "go-on").write_text("on\n")
    until(lambda: step.check() and len(step.calls) == 3, what="the next attempt begins")
    assert step.calls[-1] == "machine-before begin 2"


def test_ended_attempts_are_forgotten(step: HookedStep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_hook_attempts, "REMEMBERED", 2)
    attempts, ended = step.driver.attempts, list[AttemptId]()
    for attempt in range(1, 6):
        step.task = replace(TASK, attempt=attempt)
        step.run(step.begin())
        step.driver.ended(step.task)
        ended.append(step.task.id)
    assert len(attempts) == 0
    assert [each for each in ended if attempts.has_ended(each)] == ended[-2:]
    assert attempts.left(machine("web-0").id) is None
    assert not any(step.runs.find((each, part)) for each in ended for part in Part)
    machines = [machine(f"web-{attempt}") for attempt in range(6, 12)]
    for attempt, each in enumerate(machines, start=6):
        step.task = replace(TASK, attempt=attempt, machine=each)
        step.begin()
        if attempt % 2:
            step.driver.ended(step.task)
    assert len(attempts) <= 2
    assert len([each for each in machines if attempts.left(each.id) is not None]) == 2


# Other members


def test_optional_methods_are_forwarded_to_the_driver(step: HookedStep, tmp_path: Path) -> None:
    step.work.refusing = {"host-1": "full"}
    assert step.driver.precheck(replace(step.task, target=HOST)) == "full"
    assert step.driver.reach(HOST) is None
    assert step.driver.limits == replace(step.work.limits, timeout=step.work.limits.timeout + CALL_OVERHEAD)


@pytest.mark.parametrize(
    "mark",
    [
        HookedMark(part=Part.BEFORE, hook="job 7"),
        HookedMark(part=Part.WORK, mark='{"a": 1}'),
        HookedMark(part=Part.AFTER, end=Done(HostName("host-2"), 1.5)),
        HookedMark(part=Part.AFTER, end=Done()),
        HookedMark(part=Part.AFTER, end=Failed("why")),
        HookedMark(part=Part.AFTER, end=Cancelled(), hook="x"),
    ],
)
def test_the_mark_of_a_step_survives_writing_and_reading(mark: HookedMark) -> None:
    assert read_mark(write_mark(mark)) == mark


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"timeout": timedelta()}, "a time greater than zero"),
        ({"after": ("",)}, "a program and its arguments"),
    ],
)
def test_empty_settings_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        MachineHookSettings(**settings)


def test_verifying_a_restart_runs_no_hooks(tmp_path: Path) -> None:
    step = HookedStep(tmp_path)
    step.task = replace(TASK, work=Work.START, verifies=True)
    step.begin()
    step.check()
    step.cancel()
    step.driver.ended(step.task)
    assert ([each for each, _, _ in step.work.asked], step.calls) == (["begin", "check", "cancel"], [])


class _MetDrivers(DriversByName):
    """Returns a driver to two threads at the same moment."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._both = threading.Barrier(2, timeout=30)

    def __getitem__(self, name: str) -> Driver:
        self._both.wait()
        return super().__getitem__(name)


def test_concurrent_first_lookups_get_the_same_object() -> None:
    drivers = HookedDrivers(_MetDrivers({SCRIPTED: ScriptedDriver()}), MachineHookSettings())
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(drivers.__getitem__, [SCRIPTED, SCRIPTED])
    assert first is second
    assert isinstance(first, MachineHooks)
