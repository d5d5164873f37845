"""The command `forewarn rehearse`."""

import json
import re
import sys
from pathlib import Path

from tests.helpers.programs.process import FOREWARN, Guest, Output, ending, free_port, run, started, until

QUICK = '[scenario]\nname = "quick"\nclock = "x600"\n'
RESTART = '[[steps]]\norder = { machine = "web-0", action = "restart" }\n'


def test_the_scenarios_are_listed(tmp_path: Path) -> None:
    told = json.loads(run(tmp_path, "rehearse", "--list", "--json").stdout)
    assert "spot-eviction" in [each["name"] for each in told["scenarios"]]


def test_a_failed_rehearsal_exits_with_1(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        QUICK + 'start = "now"\n[[steps]]\norder = {host="host-1", action="fail"}\n[expect]\nsaw = true\n'
    )
    ran = run(tmp_path, "rehearse", "mine.toml")
    assert ran.returncode == 1
    assert "web-0 should have seen the Reboot" in ran.stdout
    assert "quick: not as expected" in ran.stdout


def test_a_separate_guest_polls_the_shown_url(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(QUICK + RESTART + "[expect]\nsaw = true\napproved = false\n")
    command = [FOREWARN, "rehearse", "mine.toml"]
    with ending(started(command, tmp_path)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        out, _ = Output(process.stdout), Output(process.stderr)
        guest = Guest(out.wait_for("  web-0    ").partition("/metadata")[0])
        with guest.client:
            until(lambda: guest.document()["Events"], what="the event to be seen")
            until(lambda: not guest.document()["Events"], what="the event to be over")
            assert process.wait(60) == 0
        out.finish()
        assert "quick: as expected" in out.text


def test_a_fleet_sets_the_ports_where_its_machines_poll(tmp_path: Path) -> None:
    port = free_port()
    fleet = f'[fleet.hosts.h]\n[[fleet.machines]]\nname = "db"\nhost = "h"\nport = {port}\n'
    (tmp_path / "mine.toml").write_text(QUICK + 'start = "now"\n' + fleet)
    assert f"http://127.0.0.1:{port}/" in run(tmp_path, "rehearse", "mine.toml").stdout


def test_a_mistyped_scenario_is_wrong_usage_with_a_hint(tmp_path: Path) -> None:
    ran = run(tmp_path, "rehearse", "spot-evction")
    assert ran.returncode == 2
    assert ran.stderr.endswith("did you mean spot-eviction?\n")


def test_a_program_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    ran = run(tmp_path, "rehearse", "user-restart", "--", "no-such-agent")
    assert ran.returncode == 1
    assert "guest of web-0: 'no-such-agent' cannot be run: No such file or directory" in ran.stderr


def test_the_output_and_exit_code_of_a_program_are_shown(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(QUICK + 'start = "now"\n[[steps]]\nat = "30m"\ncancel = true\n')
    script = "echo here is $FOREWARN_MACHINE; exit 7"
    ran = run(tmp_path, "rehearse", "mine.toml", "--", "sh", "-c", script)
    assert "| here is web-0" in ran.stdout
    assert "its program has ended with 7" in ran.stdout


def test_a_cancellation_that_is_refused_is_a_failure(tmp_path: Path) -> None:
    # No guest polls, so the restart begins immediately.
    steps = (
        '[[steps]]\norder = { machine = "web-0", action = "restart" }\n[[steps]]\nat = "1m"\ncancel = true\n'
    )
    (tmp_path / "mine.toml").write_text(f'{QUICK}start = "now"\n{steps}')
    ran = run(tmp_path, "rehearse", "mine.toml")
    assert ran.returncode == 1
    assert "nothing was cancelled, so the cancellation is not rehearsed: order" in " ".join(
        ran.stdout.split()
    )


# A guest that prepares for an event, and recovers when the event is gone.
SLOW = """
import json, sys, time, urllib.request
from pathlib import Path
url, down = f"{sys.argv[1]}/metadata/scheduledevents?api-version=2020-07-01", Path("down")
def ask(body=None):
    asked = urllib.request.Request(url, data=body, headers={"Metadata": "true"})
    return urllib.request.urlopen(asked).read()
while True:
    events = json.loads(ask())["Events"]
    if events and not down.exists():
        down.touch()
        ask(json.dumps({"StartRequests": [{"EventId": events[0]["EventId"]}]}).encode())
    if down.exists() and not events:
        time.sleep(1)
        down.unlink()
    time.sleep(0.02)
"""
UP = '[[probe]]\nname = "up"\ncommand = ["test", "!", "-e", "down"]\nevery = 0.1\nback-within = 60\n'


def test_a_guest_is_stopped_after_its_recovery_and_its_workload_is_checked(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "one.toml").write_text(QUICK + RESTART + UP)
    (tmp_path / "two.toml").write_text(QUICK.replace("quick", "again") + 'start = "now"\n')
    scenarios = ("one.toml", "two.toml", "--junit", "report.xml")
    ran = run(tmp_path, "rehearse", *scenarios, "--", sys.executable, "-S", "slow.py", "{endpoint}")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert not (tmp_path / "down").exists()
    assert re.search(
        r"^  probe up: failed once, for \d+ s at most \(expected to be back within 1 m; ", ran.stdout, re.M
    )
    assert "quick: as expected" in ran.stdout
    assert "again: as expected" in ran.stdout
    assert '<testcase classname="forewarn.quick" name="probe up" />' in (tmp_path / "report.xml").read_text()


def test_a_workload_that_is_down_at_the_end_is_found_even_with_a_long_probe_interval(tmp_path: Path) -> None:
    once = '[[probe]]\nname = "up"\ncommand = ["mkdir", "looked"]\nevery = "10m"\n'
    (tmp_path / "mine.toml").write_text(QUICK + 'start = "now"\nrecovery = 0\n' + once)
    ran = run(tmp_path, "rehearse", "mine.toml")
    assert ran.returncode == 1, ran.stdout
    assert "probe up does not hold in the end: exit code 1" in ran.stdout


def test_a_command_without_dashes_is_treated_as_a_scenario_with_a_hint(tmp_path: Path) -> None:
    ran = run(tmp_path, "rehearse", "user-restart", "cat")
    assert ran.returncode == 2
    assert "a command goes after --" in ran.stderr


def test_a_bad_scenario_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('[scenario]\nname = "mine"\nclok = "x60"\n')
    ran = run(tmp_path, "rehearse", "mine.toml")
    assert ran.returncode == 2
    assert ran.stderr == ("forewarn: mine.toml: scenario.clok: there is no such field; did you mean clock?\n")


def test_a_program_that_ends_before_it_polls_ends_the_rehearsal(tmp_path: Path) -> None:
    ran = run(tmp_path, "rehearse", "user-restart", "--", "false")
    assert ran.returncode == 1
    assert "web-0 never polled: its program ended with 1" in ran.stdout


def test_a_rehearsal_without_polls_ends_and_names_the_url(tmp_path: Path) -> None:
    ran = run(tmp_path, "rehearse", "user-restart", "--wait", "0.2")
    assert ran.returncode == 1
    told = re.search(
        r"web-0 did not poll within 0\.2 s: its guest polls (http://127.0.0.1:\d+/metadata/sch\w+)",
        ran.stdout,
    )
    assert told is not None, ran.stdout
    assert f"  web-0    {told[1]}\n" in ran.stdout


def test_a_private_service_has_the_machines_of_the_scenario(tmp_path: Path) -> None:
    ran = run(tmp_path, "rehearse", "user-restart", "--machine", "web-0=front-0")
    assert ran.returncode == 2
    assert "use --project for others" in " ".join(ran.stderr.replace("│", " ").split())


TWO_PROJECTS = """
[fleet.projects.a]
[fleet.projects.b]
[fleet.hosts.h]
[fleet.hosts.spare]
[[fleet.machines]]
name = "one"
project = "a"
host = "h"
[[fleet.machines]]
name = "two"
project = "b"
host = "h"
"""
EMPTIED = """
[[steps]]
fault = { kind = "slow", machines = ["two"], delay = "0s", for = "1m" }
[[steps]]
order = { host = "h", action = "fail" }
[[steps]]
at = "10m"
order = { host = "h", action = "restore" }
"""


def test_in_a_private_service_all_machines_and_hosts_are_for_rehearsals(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(QUICK + 'start = "now"\n' + TWO_PROJECTS + EMPTIED)
    ran = run(tmp_path, "rehearse", "mine.toml")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "refused" not in ran.stdout
    assert "restore h" in ran.stdout
    assert re.search(r"^ +0 s  service +the scenario begins$", ran.stdout, re.MULTILINE)
