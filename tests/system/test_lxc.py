"""A command driver on real LXC containers: examples/drivers/lxc, called by a real server."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.programs.process import Program, ending, until
from tests.system.lxc_racks import Racks, lxc_racks

LXC = Path(__file__).parents[2] / "examples" / "drivers" / "lxc"

SETTINGS = """
[times]
unheard-notice = "0s"
preempt-notice = "0s"
terminate-notice = "0s"
linger = "0s"

[drivers.lxc]
kind = "command"
command = ["{lxc}", "{folder}/steps", "1"]
fences = true

[drivers.held]          # its freezes last until they are called off, or a test is over
kind = "command"
command = ["{lxc}", "{folder}/steps", "600"]

[drivers.slow]
kind = "command"
command = ["{lxc}", "{folder}/steps", "4"]

[drivers.unruly]
kind = "command"
command = ["/bin/sh", "{folder}/program"]
timeout = "2s"
"""

# Faults of a driver program, by the name of the machine, until the test creates the file `fixed`.
UNRULY = """
if test -e "$(dirname "$0")/fixed"; then
    echo '{"state": "done"}'
    exit
fi
case "$FOREWARN_MACHINE" in
liar) echo '{"state": "done", "host": "nowhere"}' ;;
talker) yes | head -c 200000000; sleep 600 ;;
sleeper)
    sleep 600 &
    echo $! > "$(dirname "$0")/child"
    wait ;;
esac
"""

DRIVERS = {"rack1": "lxc", "rack2": "lxc", "lost": "lxc", "held": "held", "slow": "slow", "unruly": "unruly"}
MACHINES = {
    "rack1": ("frozen", "restarted", "moved", "evicted", "ended", "hurried", "fileful"),
    "lost": ("saved",),
    "held": ("called-off",),
    "slow": ("survivor", "orphan"),
    "unruly": ("sleeper", "liar", "talker"),
}


def fleet(folder: Path) -> str:
    hosts = [
        f'[hosts.{name}]\ndriver = "{driver}"\nuri = "file://{folder}/{name}"\n'
        f'labels = {{driver = "{driver}"}}\n'
        for name, driver in DRIVERS.items()
    ]
    machines = [
        f'[[machines]]\nname = "{name}"\nhost = "{rack}"\npriority = "spot"\n'
        f'labels = {{driver = "{DRIVERS[rack]}"}}\n'
        for rack, names in MACHINES.items()
        for name in names
    ]
    return "\n".join([*hosts, *machines])


@pytest.fixture(scope="module")
def racks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Racks]:
    with lxc_racks(tmp_path_factory.mktemp("lxc"), *DRIVERS, "watched") as made:
        made.add("watched", "watched")
        for rack, names in MACHINES.items():
            if rack != "unruly":
                made.add(rack, *names)
        yield made


@pytest.fixture(scope="module")
def program(racks: Racks) -> Iterator[Program]:
    folder = racks.folder
    (folder / "forewarn.toml").write_text(SETTINGS.format(lxc=LXC, folder=folder))
    (folder / "fleet.toml").write_text(fleet(folder))
    (folder / "program").write_text(UNRULY)
    flags = ("--config", folder / "forewarn.toml", "--fleet", folder / "fleet.toml")
    database = f"sqlite:///{folder}/forewarn.db"  # absolute, because nsenter starts in another directory
    with Program(folder, *flags, "--database", database, clock="system", before=racks.inside) as program:
        yield program


def ordered(program: Program, machine: str, what: str) -> str:
    return str(program.post(f"/v1/machines/{machine}/{what}")["order"]["id"])


def order_of(program: Program, order: str) -> Any:
    return program.get(f"/v1/orders/{order}")["order"]


def step_of(program: Program, order: str) -> Any:
    (step,) = order_of(program, order)["steps"]
    return step


def done(program: Program, order: str) -> Any:
    """Wait until an order is done, and return its step."""
    until(lambda: order_of(program, order)["state"] not in ("queued", "announced", "started"), what="its end")
    found = order_of(program, order)
    assert found["state"] == "done", found
    return found["steps"][0] if found["steps"] else None


def begun(program: Program, order: str) -> list[str]:
    return [
        record["kind"]
        for record in program.history()
        if record["order"] == order and record["kind"].startswith("step-")
    ]


def test_a_frozen_container_pauses_for_a_second_and_the_order_reports_it(
    program: Program, racks: Racks
) -> None:
    step = done(program, ordered(program, "frozen", "freeze"))
    assert 1 <= step["impact_seconds"] < 30
    assert racks.state("rack1", "frozen") == "RUNNING"
    until(lambda: racks.pauses("rack1", "frozen", longer_than=0.9), what="the container to go on")
    assert racks.boots("rack1", "frozen") == 1


def test_a_container_is_restarted_once(program: Program, racks: Racks) -> None:
    done(program, ordered(program, "restarted", "restart"))
    until(lambda: racks.boots("rack1", "restarted") == 2, what="the second boot")


def test_a_container_moves_to_another_host_with_its_files(program: Program, racks: Racks) -> None:
    done(program, ordered(program, "moved", "redeploy"))
    assert program.get("/v1/machines/moved")["machine"]["host"] == "rack2"
    assert (racks.state("rack1", "moved"), racks.state("rack2", "moved")) == ("ABSENT", "RUNNING")
    until(lambda: racks.boots("rack2", "moved") == 2, what="the boot on the other host")
    assert racks.has_devices("rack2", "moved")
    assert os.stat("/dev/null").st_mode & 0o777 == 0o666


def test_a_container_with_a_file_as_its_null_device_is_not_started(program: Program, racks: Racks) -> None:
    null = racks.place("rack1") / "fileful" / "rootfs" / "dev" / "null"
    null.unlink()
    null.touch()
    order = ordered(program, "fileful", "redeploy")
    until(lambda: order_of(program, order)["state"] == "failed", what="the refusal")
    assert "is a file: remove it" in step_of(program, order)["why"]
    assert os.stat("/dev/null").st_mode & 0o777 == 0o666


def test_an_evicted_container_can_be_started(program: Program, racks: Racks) -> None:
    done(program, ordered(program, "evicted", "evict"))
    assert racks.state("rack1", "evicted") == "STOPPED"
    assert program.get("/v1/machines/evicted")["machine"]["state"] == "stopped"
    done(program, ordered(program, "evicted", "start"))
    host = program.get("/v1/machines/evicted")["machine"]["host"]
    assert racks.state(host, "evicted") == "RUNNING"


def test_a_terminated_container_leaves_its_files_under_another_name(program: Program, racks: Racks) -> None:
    done(program, ordered(program, "ended", "terminate"))
    assert racks.state("rack1", "ended") == "ABSENT"
    assert program.call("GET", "/v1/machines/ended").status_code == 404
    (aside,) = racks.place("rack1").glob(".ended.*")
    assert (aside / "rootfs" / "boots").exists()


def test_a_container_of_a_failed_host_restarts_elsewhere_once_the_host_is_fenced(
    program: Program, racks: Racks
) -> None:
    assert racks.state("lost", "saved") == "RUNNING"
    order = program.post("/v1/hosts/lost/fail", json={})["order"]["id"]
    done(program, order)
    host = program.get("/v1/machines/saved")["machine"]["host"]
    assert host in ("rack1", "rack2")
    assert (racks.state("lost", "saved"), racks.state(host, "saved")) == ("ABSENT", "RUNNING")
    (fence,) = order_of(program, order)["host_steps"]
    assert (fence["task"], fence["driver"], fence["state"]) == ("fence", "lxc", "done")


def test_a_cancelled_freeze_resumes_its_container(program: Program, racks: Racks) -> None:
    order = ordered(program, "called-off", "freeze")
    until(lambda: racks.state("held", "called-off") == "FROZEN", what="the freeze")
    program.post(f"/v1/orders/{order}/abandon", json={})
    until(lambda: order_of(program, order)["state"] == "failed", what="the order's end")
    assert "cancelled" in step_of(program, order)["why"]
    assert racks.state("held", "called-off") == "RUNNING"


def test_work_continues_while_the_server_is_dead_and_is_done_once(program: Program, racks: Racks) -> None:
    order = ordered(program, "survivor", "freeze")
    until(lambda: racks.state("slow", "survivor") == "FROZEN", what="the freeze")
    program.restart()
    assert done(program, order)["impact_seconds"] >= 4
    until(lambda: racks.pauses("slow", "survivor", longer_than=3.9), what="the container to go on")
    assert len(racks.pauses("slow", "survivor", longer_than=3.9)) == 1
    assert begun(program, order).count("step-done") == 1


def test_a_server_killed_during_begin_has_its_work_done_once(program: Program, racks: Racks) -> None:
    order = ordered(program, "hurried", "restart")
    program.restart()
    done(program, order)
    until(lambda: racks.boots("rack1", "hurried") == 2, what="the second boot")
    assert begun(program, order).count("step-done") == 1


def test_work_with_a_killed_process_is_resumed(program: Program, racks: Racks) -> None:
    order = ordered(program, "orphan", "freeze")
    until(lambda: racks.state("slow", "orphan") == "FROZEN", what="the freeze")
    for worker in workers(racks.folder / "steps"):
        os.kill(worker, signal.SIGKILL)
    done(program, order)
    assert racks.state("slow", "orphan") == "RUNNING"


def workers(steps: Path) -> list[int]:
    """Return the processes that carry out steps."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = each.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(steps).encode() in words and b"work" in words:
            found.append(int(each.parent.name))
    return found


def test_a_program_that_hangs_lies_or_floods_affects_no_other_machine(program: Program, racks: Racks) -> None:
    sleeper, liar, talker = (ordered(program, name, "restart") for name in MACHINES["unruly"])
    until(lambda: order_of(program, liar)["state"] == "failed", what="the lie to be found")
    assert "nowhere, which is not a host of the fleet" in step_of(program, liar)["why"]
    for each in (sleeper, talker):
        until(lambda each=each: step_of(program, each).get("why"), what="the time-out")
        assert "did not finish begin within 2 s and was stopped" in step_of(program, each)["why"]
    child = int((racks.folder / "child").read_text())
    until(lambda: not alive(child), what="the end of what it has started")
    (racks.folder / "fixed").touch()
    done(program, sleeper)
    done(program, talker)
    assert racks.state("rack1", "frozen") == "RUNNING"


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# A manager for high availability

# Starts the stopped container, unless the file `ignored` exists.
HA = """
while :; do
    if test ! -e {folder}/ignored && test "$(lxc-info -P {rack} -n watched -sH)" = STOPPED; then
        lxc-start -P {rack} -n watched && echo restarted >> {folder}/restarts
    fi
    echo looked >> {folder}/looks
    sleep 0.2
done
"""
# Hooks create and remove the file `ignored`. After an eviction it stays until the machine is started.
HOOK = """
case "$FOREWARN_HOOK/$FOREWARN_WORK/$FOREWARN_OUTCOME" in
machine-before/*) touch {folder}/ignored ;;
machine-after/evict/done) ;;
machine-after/*) rm -f {folder}/ignored ;;
esac
"""


def lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_hooks_keep_a_manager_from_starting_a_stopped_machine(racks: Racks, tmp_path: Path) -> None:
    rack = racks.place("watched")
    command = ["/bin/sh", "-c", HOOK.format(folder=tmp_path), "hook"]
    hooks = f"[hooks.machine]\nbefore = {json.dumps(command)}\nafter = {json.dumps(command)}\n"
    (tmp_path / "forewarn.toml").write_text(SETTINGS.format(lxc=LXC, folder=tmp_path) + hooks)
    (tmp_path / "fleet.toml").write_text(
        f'[hosts.watched]\ndriver = "lxc"\nuri = "file://{rack}"\n'
        '[[machines]]\nname = "watched"\nhost = "watched"\npriority = "spot"\n'
    )
    flags = ("--config", tmp_path / "forewarn.toml", "--fleet", tmp_path / "fleet.toml")
    database = f"sqlite:///{tmp_path}/forewarn.db"
    manager = subprocess.Popen([*racks.inside, "sh", "-c", HA.format(folder=tmp_path, rack=rack)])
    with (
        ending(manager),
        Program(tmp_path, *flags, "--database", database, clock="system", before=racks.inside) as hooked,
    ):
        done(hooked, ordered(hooked, "watched", "evict"))
        looks = lines(tmp_path / "looks")
        until(lambda: lines(tmp_path / "looks") > looks + 2, what="the manager to look")
        assert racks.state("watched", "watched") == "STOPPED"
        assert racks.boots("watched", "watched") == 1
        done(hooked, ordered(hooked, "watched", "start"))
        until(lambda: racks.boots("watched", "watched") == 2, what="the start")
        racks.kill("watched", "watched")
        until(lambda: lines(tmp_path / "restarts") == 1, what="the manager to start it again")
