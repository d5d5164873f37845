"""The commands `forewarn agent check`, `init` and `rehearse`."""

import json
import re
import shutil
import socket
import subprocess
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import Begun, Ended, Ending, Entry, Left, TakenUp
from forewarn.agent.setup.agent_config import parse
from forewarn.core.basic_types import EventType
from forewarn.core.time_formats import format_span_briefly
from forewarn.rehearsal import scenario_file
from forewarn.rehearsal.rehearse_agent import (
    ScenarioTime,
    early_recoveries,
    failures_of,
    leftovers,
    remarks,
    with_neighbours,
)
from forewarn.rehearsal.report import GuestEvent
from forewarn.sdk.documents import Event
from tests.helpers.programs.agents import NOW, event, started
from tests.helpers.programs.process import FOREWARN, run, until

UNIT = Path(__file__).parents[3] / "packaging/systemd/forewarn-agent.service"
HOOK = """#!/bin/sh
echo "$FOREWARN_SIDE $FOREWARN_ATTEMPT" >> {folder}/ran
sleep 0.3
"""
CONFIG = """
[agent]
journal = "{folder}/own.journal"
machine = "some-machine"
endpoint = "http://169.254.169.254"
approver = "any"

[[handlers]]
name = "drain"
kind = "exec"
prepare = ["{folder}/hook"]
recover = ["{folder}/hook"]
"""


def write(folder: Path, config: str = CONFIG) -> Path:
    (folder / "hook").write_text(HOOK.replace("{folder}", str(folder)))
    (folder / "hook").chmod(0o755)
    path = folder / "agent.toml"
    path.write_text(config.replace("{folder}", str(folder)))
    return path


def test_a_recipe_becomes_a_valid_config(tmp_path: Path) -> None:
    made = run(tmp_path, "agent", "init", "--recipe", "log")
    assert made.returncode == 0, made.stderr
    assert "agent check --config agent.toml" in made.stdout
    checked = run(tmp_path, "agent", "check", "--config", "agent.toml")
    assert checked.returncode == 0, checked.stdout
    assert checked.stdout.splitlines()[-1] == "agent.toml is valid."
    assert re.search(r"Terminate\n  prepare  log: logs a line", checked.stdout)


def test_a_config_with_problems_fails_the_check(tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "hook").unlink()
    checked = run(tmp_path, "agent", "check", "--config", path)
    assert checked.returncode == 1
    assert checked.stdout.splitlines()[-1] == f"{path} would not work here."
    assert "sound" not in checked.stdout


def test_a_config_without_handlers_gets_a_remark(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text("[agent]\n")
    checked = run(tmp_path, "agent", "check", "--config", "agent.toml", "--json")
    assert (checked.returncode, json.loads(checked.stdout)["remarks"]) == (
        0,
        ["there are no handlers: the agent approves events at once, without preparation"],
    )


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("mine")
    refused = run(tmp_path, "agent", "init", "mine.toml")
    assert refused.returncode == 1
    assert "mine.toml exists; --force overwrites it" in refused.stderr
    assert (tmp_path / "mine.toml").read_text() == "mine"
    assert run(tmp_path, "agent", "init", "mine.toml", "--force").returncode == 0


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    refused = run(tmp_path, "agent", "init", "etc/mine.toml")
    assert refused.returncode == 1
    assert "etc/mine.toml cannot be written: folder etc does not exist" in refused.stderr


def test_the_recipes_are_listed(tmp_path: Path) -> None:
    told = json.loads(run(tmp_path, "agent", "init", "--list", "--json").stdout)
    assert "haproxy" in [each["name"] for each in told["recipes"]]
    unknown = run(tmp_path, "agent", "init", "--recipe", "cake")
    assert unknown.returncode == 1
    assert "recipe 'cake' does not exist" in unknown.stderr


def test_a_check_names_the_line_and_field_of_an_error(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text('[agent]\napprove = "yes"\n')
    ran = run(tmp_path, "agent", "check", "--config", "agent.toml")
    assert ran.returncode == 2
    expected = (
        'forewarn: agent.toml line 2: agent.approve: expected never, when-ready or user-events, got "yes"\n'
    )
    assert ran.stderr == expected
    running = run(tmp_path, "agent", "--config", "agent.toml")
    assert (running.returncode, running.stderr) == (2, expected)


def test_a_check_reports_problems_of_this_machine(tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "hook").chmod(0o777)
    ran = run(tmp_path, "agent", "check", "--config", path)
    assert ran.returncode == 1
    assert f"drain: others can write {tmp_path}/hook: `chmod go-w {tmp_path}/hook`" in ran.stdout
    told = json.loads(run(tmp_path, "agent", "check", "--config", path, "--json").stdout)
    assert len(told["problems"]) == 1
    assert [each["type"] for each in told["types"]][:2] == ["Freeze", "Reboot"]


def test_a_check_finds_what_would_prevent_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        own = f'journal = "{tmp_path}/file/own.journal"\nlisten = "127.0.0.1:{port}"'
        path = write(tmp_path, CONFIG.replace('journal = "{folder}/own.journal"', own))
        ran = run(tmp_path, "agent", "check", "--config", path, "--json")
        assert ran.returncode == 1
        assert json.loads(ran.stdout)["problems"] == [
            f"journal: {tmp_path}/file/own.journal cannot be written: {tmp_path}/file is not a folder",
            f"listen: 127.0.0.1:{port} cannot be opened: Address already in use",
        ]


def test_a_check_names_skipped_files(tmp_path: Path) -> None:
    path = write(tmp_path, CONFIG.partition("[[handlers]]")[0])
    (tmp_path / "hooks").mkdir()
    for name in ("drain.sh", "forgot-chmod"):
        (tmp_path / "hooks" / name).write_text("#!/bin/sh\n")
    (tmp_path / "hooks" / "drain.sh").chmod(0o755)
    table = f'[[handlers]]\nname = "all"\nkind = "exec"\nhooks = "{tmp_path}/hooks"\n'
    path.write_text(path.read_text() + table)
    ran = run(tmp_path, "agent", "check", "--config", path)
    assert ran.returncode == 0
    shown = re.sub(r"\s+", " ", ran.stdout)
    assert "all/drain.sh: runs" in shown
    assert f"all: {tmp_path}/hooks/forgot-chmod is skipped: it is not executable" in shown


def test_the_error_of_a_missing_config_names_the_next_step(tmp_path: Path) -> None:
    ran = run(tmp_path, "agent", "run", "--config", "nowhere.toml")
    assert ran.returncode == 2
    assert "nowhere.toml cannot be read" in ran.stderr
    assert "forewarn agent init" in ran.stderr


@pytest.mark.parametrize(
    "words", [("--config", "a.toml", "init"), ("--dry-run", "check"), ("--log", "json", "status")]
)
def test_misplaced_options_are_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    ran = run(tmp_path, "agent", *words)
    assert ran.returncode == 2
    assert "put options after the command" in re.sub(r"[│\n ]+", " ", ran.stderr)


def test_the_config_option_may_come_before_the_command(tmp_path: Path) -> None:
    ran = run(tmp_path, "agent", "--config", write(tmp_path), "check", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["config"] == str(tmp_path / "agent.toml")


def test_run_is_the_default_command(tmp_path: Path) -> None:
    options = ("--endpoint", "ftp://no", "--machine", "web-0", "--log", "json", "--no-listen")
    ran = run(tmp_path, "agent", "--config", write(tmp_path), *options)
    assert ran.returncode == 2
    assert ran.stderr.startswith("forewarn: --endpoint: expected a URL")


def test_a_config_is_rehearsed_and_again_with_a_killed_agent(tmp_path: Path) -> None:
    path = write(tmp_path)
    ran = run(tmp_path, "agent", "rehearse", "redeploy", "--speed", "120", "--config", path, "--json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    sound, killed = json.loads(ran.stdout)["rehearsals"]
    assert (sound["as_expected"], killed["as_expected"]) == (True, True)
    assert (sound["killed"], killed["killed"]) == (False, True)
    told = [moment["what"] for moment in sound["stories"][0]["moments"]]
    wanted = ["the event is announced", "seen", "drain: prepare ready", "approved", "the event starts"]
    wanted += ["drain: recover ready", "recovered"]
    assert [what for what in told if what in wanted] == wanted
    # The progress and the summary count in the same way.
    announced = format_span_briefly(sound["stories"][0]["moments"][0]["at"])
    assert re.search(rf"^ +{announced}  service +Redeploy of web-0 is announced$", ran.stderr, re.MULTILINE)
    crashed = [moment["what"] for moment in killed["stories"][0]["moments"]]
    assert "the agent is killed, and started again" in crashed
    assert crashed[-1] == "recovered"
    # Nothing ran twice, although the agent was killed after the beginning.
    sides = [line.split()[0] for line in (tmp_path / "ran").read_text().splitlines()]
    assert sides == ["prepare", "recover"] * 2
    # A rehearsal does not touch the machine's own journal.
    assert not (tmp_path / "own.journal").exists()


def test_a_rehearsal_without_a_running_handler_does_not_report_a_kill(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, CONFIG.partition("[[handlers]]")[0])
    ran = run(tmp_path, "agent", "rehearse", "user-restart", "--speed", "600", "--config", path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "The agent was not killed, because no handler had started" in ran.stdout
    assert "With the agent killed" not in ran.stdout


def test_a_rehearsal_that_is_too_fast_for_the_agent_reports_it(tmp_path: Path) -> None:
    path = write(tmp_path, CONFIG.partition("[[handlers]]")[0])
    command = ("agent", "rehearse", "user-restart", "--speed", "9000", "--no-kill", "--config", path)
    # Sometimes the agent is fast enough, or sees a started event.
    missed = "web-0: the Reboot was over before it was seen"
    ran = until(
        lambda: missed in (ran := run(tmp_path, *command)).stdout and ran, what="a rehearsal that is too fast"
    )
    assert ran.returncode == 1
    assert "passes in 0.1 s at 9000 times the speed: a lower --speed shows whether it is enough" in ran.stdout


def before(*, notice: float, named: bool = True, began: float = 15.0) -> GuestEvent:
    times = {"announced": 10.0, "seen": 20.0, "approved": None, "started": began, "ended": 99.0, "used": None}
    seconds = {f"{name}_seconds": value for name, value in (times | {"notice": notice}).items()}
    return GuestEvent(id="A", type="Reboot", named=named, **seconds)


@pytest.mark.parametrize(
    ("shown", "seen", "remarked"),
    [
        (started(), before(notice=900.0), True),
        (event(), before(notice=900.0), False),
        (started(), before(notice=0.0), False),
        (
            started(),
            before(notice=0.4, began=10.0),
            False,
        ),  # it was Started from the beginning; the output has whole seconds
        (started(), before(notice=900.0, named=False), False),
    ],
)
def test_an_event_that_was_seen_after_its_start_gets_a_remark(
    shown: Event, seen: GuestEvent, remarked: bool
) -> None:
    found = list(remarks([TakenUp(event=shown, at=NOW)], seen, 600.0))
    assert [each.partition(".")[0] for each in found] == [
        "the Reboot was seen only after it had started"
    ] * remarked


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("--endpoint", "foo", "expected a URL that begins with http:// or https://"),
        ("--endpoint", "ftp://a", "expected a URL that begins with http:// or https://"),
        ("--endpoint", "http://a b", "'http://a b' is not the address of an endpoint"),
        (
            "--endpoint",
            "http://a/b",
            'expected http://HOST or http://HOST:PORT, without a path, got "http://a/b"',
        ),
        ("--endpoint", "http://a:70000", "expected a URL that begins with http:// or https://"),
        ("--machine", "a b", "expected a name"),
    ],
)
def test_a_wrong_flag_is_refused_at_once(tmp_path: Path, flag: str, value: str, said: str) -> None:
    ran = run(tmp_path, "agent", "run", "--config", write(tmp_path), flag, value)
    assert ran.returncode == 2
    assert ran.stderr.startswith(f"forewarn: {flag}: {said}")


def test_a_rehearsal_reports_a_failed_handler(tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "hook").write_text("#!/bin/sh\nexit 4\n")
    command = ("agent", "rehearse", "user-restart", "--speed", "600", "--no-kill", "--config", path)
    ran = run(tmp_path, *command)
    assert ran.returncode == 1
    assert "web-0: drain could not prepare: exit code 4" in ran.stdout
    undo = f"web-0: drain could not recover: exit code 4. Undo it by hand: its recovery runs {tmp_path}/hook"
    assert undo in ran.stdout
    assert "Not as expected." in ran.stdout


def test_a_rehearsal_names_what_it_leaves_behind_and_how_to_undo_it() -> None:
    config = parse(
        """
        [[handlers]]
        name = "drain"
        kind = "exec"
        recover = ["/etc/forewarn/undrain"]
        [[handlers]]
        name = "tell"
        kind = "log"
        """,
        environment={},
    )
    share = {"event": "A", "side": Side.PREPARE}
    entries: list[Entry] = [TakenUp(event=event(), at=NOW)]
    for name in ("drain", "tell"):
        entries.append(Begun(**share, handler=name, attempt=1, at=NOW))  # type: ignore[arg-type]
    back = {"event": "A", "side": Side.RECOVER, "handler": "tell"}
    entries += [
        Left(event="A", at=NOW, why="it is over"),
        Begun(**back, attempt=1, at=NOW),  # type: ignore[arg-type]
        Ended(**back, ending=Ending.READY, at=NOW),  # type: ignore[arg-type]
    ]
    assert list(failures_of(entries, config)) == [
        "it has not come back from the Reboot",
        "drain has prepared and not recovered. Undo it by hand: its recovery runs /etc/forewarn/undrain",
    ]


def test_a_rehearsal_does_not_ask_to_undo_notifications() -> None:
    config = parse('[[handlers]]\nname = "admin"\nkind = "notify"\nto = "root@localhost"\n', environment={})
    share = {"event": "A", "handler": "admin"}
    entries: list[Entry] = [TakenUp(event=event(), at=NOW)]
    for side, ending in ((Side.PREPARE, Ending.READY), (Side.RECOVER, Ending.NEVER)):
        entries.append(Begun(**share, side=side, attempt=1, at=NOW))  # type: ignore[arg-type]
        entries.append(Ended(**share, side=side, ending=ending, at=NOW, why="no mail"))  # type: ignore[arg-type]
    assert list(failures_of(entries, config)) == [
        "admin could not recover: no mail",
        "it has not come back from the Reboot",
    ]
    assert list(failures_of(entries[:3], config)) == ["it has not come back from the Reboot"]


def test_a_deleted_machine_need_not_recover(tmp_path: Path) -> None:
    config = parse(
        '[[handlers]]\nname = "drain"\nkind = "exec"\nrecover = ["/etc/forewarn/undrain"]\n', environment={}
    )
    entries: list[Entry] = [
        TakenUp(event=event(type=EventType.TERMINATE), at=NOW),
        Begun(event="A", side=Side.PREPARE, handler="drain", attempt=1, at=NOW),
    ]
    assert list(failures_of(entries, config)) == []
    assert list(leftovers(entries, config)) == [
        "drain has prepared and not recovered. Undo it by hand: its recovery runs /etc/forewarn/undrain"
    ]


@pytest.mark.parametrize(
    ("left_after", "ended", "again", "early"),
    [
        (60, 600.0, False, True),  # ten minutes of the scenario take one real minute
        (600, 600.0, False, False),
        (598, 600.0, False, False),  # the clocks may differ by a second
        (600, 600.0, True, True),
        (60, None, True, True),
        (60, None, False, False),
    ],
)
def test_an_early_recovery_is_a_failure(
    left_after: int, ended: float | None, again: bool, early: bool
) -> None:
    time = ScenarioTime(now=NOW, elapsed_seconds=700.0, speed=1.0)
    taken = TakenUp(event=event(), at=NOW)
    left = Left(event="A", at=NOW + timedelta(seconds=left_after - 700), why="it is over")
    entries: list[Entry] = [taken, left, *[taken] * again]
    sight = replace(before(notice=900.0), ended_seconds=ended)
    found = list(early_recoveries(entries, sight, time))
    assert [each.partition(" at ")[0] for each in found] == ["it recovered from the Reboot"] * early


# Real seconds pass between any two of these.
VANISHING = """
[scenario]
name = "vanishing"
clock = "x60"
[[steps]]
order = { machine = "web-0", action = "restart" }
[[steps]]
at = "4m"
fault = { kind = "vanished", for = "4m" }
[[steps]]
at = "11m"
cancel = true
"""


def test_a_rehearsal_fails_if_the_agent_recovers_during_the_event(tmp_path: Path) -> None:
    path = write(tmp_path, CONFIG.replace("[[handlers]]", 'approve = "never"\n[[handlers]]'))
    (tmp_path / "vanishing.toml").write_text(VANISHING)
    ran = run(tmp_path, "agent", "rehearse", "./vanishing.toml", "--no-kill", "--config", path)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "web-0: it recovered from the Reboot at" in " ".join(ran.stdout.split())


def test_a_rehearsal_of_a_deletion_passes(tmp_path: Path) -> None:
    ran = run(tmp_path, "agent", "rehearse", "terminate", "--no-kill", "--config", write(tmp_path))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "As expected." in ran.stdout


def test_a_second_machine_holds_work_that_is_cancelled_later() -> None:
    cancelled = with_neighbours(scenario_file.find("cancelled-maintenance"))
    *own, beside = cancelled.fleet.machines
    assert (beside.host, beside.group) == ("host-1", None)
    assert beside.name not in {each.name for each in own}
    assert beside.name not in cancelled.expect.machines
    redeploy = scenario_file.find("redeploy")
    assert with_neighbours(redeploy) is redeploy


def test_a_rehearsal_without_the_server_names_the_missing_package(tmp_path: Path) -> None:
    path = write(tmp_path)
    # Like a base install, without the server's dependencies.
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['uvloop'] = None\n")
    environment = {"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[3] / 'src'}"}
    ran = run(tmp_path, "agent", "rehearse", "redeploy", "--config", path, environment=environment)
    assert ran.returncode == 1
    assert "the server, which is not installed (uvloop is missing)" in ran.stderr
    assert "pip install 'forewarn[server]'" in ran.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is absent")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/usr/local/bin/forewarn", FOREWARN))
    ran = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False)
    complaints = [line for line in ran.stderr.splitlines() if UNIT.name in line]
    assert complaints == []
