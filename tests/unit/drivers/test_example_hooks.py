"""The hooks in `examples/hooks` suspend managers that would undo the work on a machine."""

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from forewarn.config import MachineHookSettings
from forewarn.control.driver import Checked, Done, Failed, Running
from forewarn.core.basic_types import Work
from forewarn.drivers import hooks
from forewarn.drivers.hooks import HookRuns
from forewarn.drivers.machine_hooks import MachineHooks
from tests import ROOT
from tests.helpers.service.scripted_driver import ScriptedDriver
from tests.unit.drivers.test_machine_hooks import TASK
from tests.unit.slices import machine

HOOKS = ROOT / "examples" / "hooks"
# Logs its calls; `server show` prints a file.
MANAGER = """#!/bin/sh
echo "$(basename "$0") $*" >> {folder}/asked
case "$*" in "server show"*) cat {folder}/properties ;; esac
"""
DONE = Done()
TASKS = replace(TASK, machine=machine("web-0", tags={"ha": "vm:100"}))


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install fake managers; return their log."""
    for name in ("ha-manager", "pcs", "openstack"):
        program = tmp_path / name
        program.write_text(MANAGER.format(folder=tmp_path))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(hooks, "WAIT_SECONDS", 60.0)
    return tmp_path / "asked"


def work(
    *words: str, work: Work = Work.REBOOT, end: Checked = DONE, tags: dict[str, str] | None = None
) -> Checked:
    """Run work on a machine with hooks before and after it."""
    command = (str(HOOKS / words[0]), *words[1:])
    inside = ScriptedDriver()
    inside.checks = [end]
    driver = MachineHooks(
        inside, MachineHookSettings(before=command, after=command), runs=HookRuns(remembered=10)
    )
    task = replace(TASKS, work=work)
    if tags is not None:
        task = replace(task, machine=machine("web-0", tags=tags))
    answer: Checked = driver.begin(task)
    while isinstance(answer, Running):
        task = replace(task, mark=answer.mark)
        answer = driver.check(task)
    return answer


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize(
    ("what", "end", "state"),
    [
        (Work.REBOOT, Done(), "set vm:100 --state started"),
        (Work.EVICT, Done(), "set vm:100 --state stopped"),
        (Work.EVICT, Failed("no"), "set vm:100 --state started"),
        (Work.START, Done(), "set vm:100 --state started"),
        (Work.TERMINATE, Done(), "remove vm:100"),
    ],
)
def test_proxmox_ignores_a_machine_during_work(asked: Path, what: Work, end: Checked, state: str) -> None:
    assert work("proxmox-ha", work=what, end=end) == end
    assert lines(asked) == ["ha-manager set vm:100 --state ignored", f"ha-manager {state}"]


@pytest.mark.parametrize(
    ("what", "end", "first"),
    [
        (Work.REDEPLOY, Done(), []),
        (Work.EVICT, Done(), ["pcs resource disable vm:100"]),
        (Work.EVICT, Failed("no"), []),
        (Work.START, Done(), ["pcs resource enable vm:100"]),
    ],
)
def test_pacemaker_does_not_manage_a_machine_during_work(
    asked: Path, what: Work, end: Checked, first: list[str]
) -> None:
    assert work("pacemaker", work=what, end=end) == end
    given_back = ["pcs resource refresh vm:100", "pcs resource manage vm:100"]
    assert lines(asked) == ["pcs resource unmanage vm:100", *first, *given_back]


@pytest.mark.parametrize("hook", ["proxmox-ha", "pacemaker"])
def test_a_machine_without_another_manager_is_left_alone(asked: Path, hook: str) -> None:
    assert work(hook, tags={}) == Done()
    assert lines(asked) == []


@pytest.mark.parametrize("hook", ["proxmox-ha", "pacemaker"])
def test_a_machine_of_a_failed_host_is_not_handed_back_before_its_recovery(asked: Path, hook: str) -> None:
    command = (str(HOOKS / hook),)
    runs = HookRuns(remembered=10)
    driver = MachineHooks(ScriptedDriver(), MachineHookSettings(before=command, after=command), runs=runs)
    driver.begin(TASKS)
    driver.ended(TASKS)
    key = driver.attempts.left(TASKS.machine.id) if TASKS.machine is not None else None
    assert key is not None
    run = runs.find(key)
    assert run is not None
    assert run.program.wait(60) is not None
    assert len(lines(asked)) == 1


@pytest.mark.parametrize(
    ("properties", "what", "said"),
    [
        ({}, Work.REBOOT, []),
        ({"HA_Enabled": "False"}, Work.REBOOT, []),
        (
            {"HA_Enabled": "True"},
            Work.EVICT,
            ["set --property HA_Enabled=False --property ha_held_by=forewarn web-0"],
        ),
        (
            {"HA_Enabled": "False", "ha_held_by": "forewarn"},
            Work.START,
            ["set --property HA_Enabled=True web-0", "unset --property ha_held_by web-0"],
        ),
    ],
)
def test_masakari_is_notified_about_its_servers(
    asked: Path, tmp_path: Path, properties: dict[str, str], what: Work, said: list[str]
) -> None:
    (tmp_path / "properties").write_text(json.dumps({"properties": properties}))
    assert work("masakari", "mycloud", work=what) == Done()
    changes = [line for line in lines(asked) if " show " not in line]
    assert changes == [f"openstack server {line}" for line in said]


def test_the_work_does_not_begin_if_the_manager_refuses(asked: Path, tmp_path: Path) -> None:
    (tmp_path / "ha-manager").write_text("#!/bin/sh\necho no quorum >&2; exit 2\n")
    answer = work("proxmox-ha")
    assert isinstance(answer, Failed)
    assert "before the work: no quorum" in answer.why
