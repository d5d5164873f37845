"""Drivers in separate processes: a crash makes their calls unknown, and affects nothing else."""

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from forewarn.config import Settings
from forewarn.control.driver import Done, NotBegun, Unknown
from forewarn.control.engine.driver_calls import Answer, DriverCall, Verb, perform
from forewarn.core.basic_types import EXTERNAL, HostName
from forewarn.core.errors import Conflict, Invalid, Unavailable
from forewarn.core.model.host import Host
from forewarn.drivers.isolation import driver_process
from forewarn.drivers.isolation.driver_process import DriverBroke
from forewarn.drivers.registry import ENTRY_POINTS, Drivers
from tests.helpers.programs.process import until
from tests.helpers.service.crashing_driver import begun, calls, crash_in
from tests.helpers.service.driver_calls import begin, cancel, check, task

KVM = Host(name=HostName("kvm04"), uri="crash://kvm04")
NAME = "crashing"
CRASHING = EntryPoint(NAME, "tests.helpers.service.crashing_driver:make", ENTRY_POINTS)
OWN = EntryPoint(EXTERNAL, "forewarn.drivers.external:make", ENTRY_POINTS)


def long_lives() -> Callable[[], float]:
    """Return a clock with which every process seems to live long, so that the next one starts immediately."""
    seconds = count(step=1000.0)
    return lambda: next(seconds)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[..., Drivers]]:
    """Create drivers, whose processes end with the test."""
    known: list[Drivers] = []

    def make(*, monotonic: Callable[[], float] | None = None, **options: Any) -> Drivers:
        settings = Settings(drivers={NAME: {"folder": str(tmp_path), **options}})
        known.append(Drivers(settings, monotonic=monotonic or long_lives(), found=[OWN, CRASHING]))
        return known[-1]

    yield make
    for each in known:
        each.stop()


def pid_of(driver: Any) -> int:
    return int(driver.inventory([KVM]).unreachable["pid"])


CALLS: Mapping[str, Callable[[Any], Answer | None]] = {
    "begin": lambda driver: perform(driver, begin()),
    "check": lambda driver: perform(driver, check()),
    "cancel": lambda driver: perform(driver, cancel()),
    "precheck": lambda driver: perform(driver, begin(target=KVM)),
}


def test_a_crash_is_unknown_for_the_call_and_the_next_call_has_another_process(
    made: Callable[..., Drivers], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    drivers = made()
    driver: Any = drivers.by_name[NAME]
    pids = [pid_of(driver)]
    for (verb, call), how, said in zip(
        CALLS.items(),
        ("segfault", "abort", "kill", "exit"),
        (
            "was killed by SIGSEGV",
            "was killed by SIGABRT",
            "was killed by SIGKILL",
            "exited with code 7",
        ),
        strict=True,
    ):
        crash_in(tmp_path, verb, how)
        answer = call(driver)
        assert isinstance(answer, Unknown), verb
        assert f"the process of driver crashing {said}" in answer.why
        pids.append(pid_of(driver))
    assert len(set(pids)) == len(pids) == 5
    assert begun(tmp_path) == []
    assert drivers.crashes() == {NAME: 4}
    logged = [line.getMessage() for line in caplog.records if line.levelno == logging.ERROR]
    assert logged[0] == "the process of driver crashing was killed by SIGSEGV during 1 call and restarts now"
    assert len(logged) == 4


@pytest.mark.parametrize("sent", ["rubbish", "flood"])
def test_a_process_that_sends_an_invalid_message_is_killed(
    made: Callable[..., Drivers], tmp_path: Path, sent: str
) -> None:
    driver: Any = made().by_name[NAME]
    crash_in(tmp_path, "check", sent)
    answer = perform(driver, check())
    assert isinstance(answer, Unknown)
    assert "the process of driver crashing has sent an invalid message" in answer.why
    assert perform(driver, check()) == NotBegun()


def test_a_crash_during_a_connection_test_does_not_change_the_host(
    made: Callable[..., Drivers], tmp_path: Path
) -> None:
    driver: Any = made().by_name[NAME]
    why = "the process of driver crashing was killed by SIGSEGV"
    crash_in(tmp_path, "reach")
    answer = perform(driver, DriverCall(verb=Verb.REACH, task=task()))
    assert isinstance(answer, Unknown)
    assert why in answer.why
    crash_in(tmp_path, "inventory")
    with pytest.raises(Unavailable, match=why):
        driver.inventory([KVM])
    assert driver.reach(KVM) is None


def test_a_begun_step_is_found_by_check_and_not_begun_again(
    made: Callable[..., Drivers], tmp_path: Path
) -> None:
    driver: Any = made().by_name[NAME]
    crash_in(tmp_path, "begun")
    assert isinstance(perform(driver, begin()), Unknown)
    assert perform(driver, check()) == Done()
    assert perform(driver, check(attempt=2)) == NotBegun()
    assert begun(tmp_path) == ["ORDER/1"]
    assert calls(tmp_path) == ["begin", "begun", "check", "check"]


def test_a_crash_makes_all_open_calls_unknown(made: Callable[..., Drivers], tmp_path: Path) -> None:
    driver: Any = made().by_name[NAME]
    with ThreadPoolExecutor(3) as pool:
        hanging = [pool.submit(driver.reach, Host(name=HostName("hangs"))) for _ in range(3)]
        until(lambda: len(lines(tmp_path / "hanging")) == 3, what="calls that hang")
        crash_in(tmp_path, "check")
        assert isinstance(perform(driver, check()), Unknown)
        for each in hanging:
            with pytest.raises(Unavailable, match="was killed by SIGSEGV"):
                each.result()


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def test_a_process_that_crashes_repeatedly_is_restarted_later_and_calls_fail_fast_meanwhile(
    made: Callable[..., Drivers], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_process, "FIRST_PAUSE", 30.0)  # however long this test takes
    driver: Any = made(monotonic=lambda: 0.0).by_name[NAME]
    for _ in range(2):
        crash_in(tmp_path, "check")
        assert isinstance(perform(driver, check()), Unknown)
    again = "was killed by SIGSEGV during 1 call and restarts in 30 s"
    answer = perform(driver, begin())
    assert isinstance(answer, Unknown)
    assert again in answer.why
    assert begun(tmp_path) == []


def test_listeners_are_notified_of_a_restart_so_that_hosts_are_watched_again(
    made: Callable[..., Drivers], tmp_path: Path
) -> None:
    drivers, told = made(), threading.Event()
    drivers.restarted_by(told.set)
    driver: Any = drivers.by_name[NAME]
    assert driver.reach(KVM) is None
    assert not told.is_set()
    crash_in(tmp_path, "ended")
    driver.ended(task())  # which does not wait
    assert told.wait(60)


def test_events_of_machines_are_forwarded(made: Callable[..., Drivers]) -> None:
    drivers, woken = made(), threading.Event()
    names: list[str] = []
    drivers.wake_by(lambda machine: (names.append(machine), woken.set())[1])
    driver: Any = drivers.by_name[NAME]
    assert driver.reach(Host(name=HostName("has-news"))) is None
    assert woken.wait(60)
    assert names == ["web-0"]


def test_an_exception_of_the_driver_is_no_crash(
    made: Callable[..., Drivers], caplog: pytest.LogCaptureFixture
) -> None:
    drivers = made()
    driver: Any = drivers.by_name[NAME]
    with pytest.raises(DriverBroke, match="its cable is torn") as broke:
        driver.reach(Host(name=HostName("broken")))
    assert any("ValueError: its cable is torn" in note for note in broke.value.__notes__)
    with pytest.raises(Conflict, match="another program manages it"):
        driver.reach(Host(name=HostName("refused")))
    with pytest.raises(DriverBroke, match="the answer is too long"):
        driver.reach(Host(name=HostName("long")))
    with pytest.raises(Exception, match=r"pathlib.PosixPath is not allowed in an answer"):
        driver.reach(Host(name=HostName("strange")))
    assert driver.reach(Host(name=HostName("has-news"))) is None
    assert (
        "tests.helpers.service.crashing_driver",
        logging.WARNING,
        "seen from afar",
    ) in caplog.record_tuples
    assert drivers.crashes() == {NAME: 0}


def test_it_has_the_capabilities_of_the_driver(made: Callable[..., Drivers]) -> None:
    drivers = made(timeout="7s")
    assert NAME in drivers.fencing & drivers.reaching & drivers.listing
    assert NAME not in drivers.cordoning | drivers.working_on_hosts | drivers.choosing_hosts
    limits = drivers.by_name[NAME].limits
    assert limits is not None
    assert limits.timeout.total_seconds() == 7
    assert drivers.by_name[NAME].fences is True  # type: ignore[attr-defined]


def test_the_process_inherits_only_one_socket(made: Callable[..., Drivers], tmp_path: Path) -> None:
    driver: Any = made().by_name[NAME]
    with socket.create_server(("127.0.0.1", 0)) as listener, (tmp_path / "f.db").open("w") as database:
        for each in (listener.fileno(), database.fileno()):
            os.set_inheritable(each, True)
        found = driver.inventory([KVM])
        ours = {os.readlink(f"/proc/self/fd/{each.fileno()}") for each in (listener, database)}
    theirs = [each for each in found.notes if not each.startswith(("/proc", "/dev/null"))]
    assert not ours & set(theirs)
    assert sum(each.startswith("socket:") for each in theirs) == 1
    # The only other one is the log.
    log_files = {os.readlink("/proc/self/fd/2")}
    assert {each for each in theirs if not each.startswith("socket:")} <= log_files
    assert found.unreachable["session"] == found.unreachable["pid"]  # it ignores a Ctrl-C of the terminal


def test_signals_for_the_server_do_not_end_the_process(made: Callable[..., Drivers]) -> None:
    drivers = made()
    driver: Any = drivers.by_name[NAME]
    pid = pid_of(driver)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(pid, number)
        assert pid_of(driver) == pid
    assert drivers.crashes() == {NAME: 0}


def test_a_process_that_hangs_as_a_whole_is_ended(
    made: Callable[..., Drivers], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_process, "PING_SECONDS", 0.25)
    monkeypatch.setattr(driver_process, "MAX_UNANSWERED_PINGS", 1_000_000)
    driver: Any = made().by_name[NAME]
    pid = pid_of(driver)
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(driver_process, "MAX_UNANSWERED_PINGS", 3)
    with pytest.raises(Unavailable, match=r"has not answered for 0\.75 s"):
        driver.reach(KVM)
    monkeypatch.setattr(driver_process, "MAX_UNANSWERED_PINGS", 1_000_000)
    assert pid_of(driver) != pid


def test_an_open_call_ends_with_the_server(made: Callable[..., Drivers], tmp_path: Path) -> None:
    drivers = made()
    driver: Any = drivers.by_name[NAME]
    pid = pid_of(driver)
    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(driver.reach, Host(name=HostName("hangs")))
        until(lambda: lines(tmp_path / "hanging"), what="a call that hangs")
        drivers.stop()
        with pytest.raises(Unavailable):
            hanging.result()
    assert not Path(f"/proc/{pid}").exists()
    with pytest.raises(Unavailable, match="the server is stopping"):
        driver.reach(KVM)
    assert drivers.crashes() == {NAME: 0}


SERVER = """
import sys
from tests.integration.service import test_isolated_drivers as t
settings = t.Settings(drivers={t.NAME: {"folder": sys.argv[1]}})
drivers = t.Drivers(settings, monotonic=lambda: 0.0, found=[t.OWN, t.CRASHING])
driver = drivers.by_name[t.NAME]
print(t.pid_of(driver), flush=True)
driver.reach(t.Host(name="hangs-in-c"))
"""


def test_the_process_ends_with_a_killed_server_even_if_c_code_blocks_its_threads(tmp_path: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with server:
        assert server.stdout is not None
        pid = int(server.stdout.readline())
        until(lambda: lines(tmp_path / "hanging"), what="a call that hangs in C")
        server.kill()
    until(lambda: not is_alive(pid), what="a process that has ended with its server")


def is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_driver_that_cannot_be_created_in_its_process_has_a_reason(made: Callable[..., Drivers]) -> None:
    driver: Any = made(monotonic=lambda: 0.0, unmakeable=True).by_name[NAME]
    with pytest.raises(Unavailable, match=r"cannot create the driver \(OSError: no hypervisor here\)"):
        driver.reach(KVM)


# Declared and set


def test_the_settings_can_isolate_any_driver(tmp_path: Path) -> None:
    rack = EntryPoint("rack", "tests.helpers.service.crashing_driver:make_in_server", ENTRY_POINTS)
    for isolated, pids in ((True, 2), (False, 1)):
        settings = Settings(drivers={"rack": {"folder": str(tmp_path), "isolated": isolated}})
        drivers = Drivers(settings, monotonic=lambda: 0.0, found=[OWN, rack])
        assert len({os.getpid(), pid_of(drivers.by_name["rack"])}) == pids
        drivers.stop()


@pytest.mark.parametrize(
    ("name", "isolated", "said"),
    [
        (
            NAME,
            False,
            "expected true, got false: crashing loads C code, and a crash there would end the server",
        ),
        (NAME, "yes", 'expected true or false, got "yes"'),
        (EXTERNAL, True, '"external" is part of the server'),
    ],
)
def test_invalid_settings_are_refused(name: str, isolated: object, said: str) -> None:
    settings = Settings(drivers={name: {"isolated": isolated}})
    with pytest.raises(Invalid) as refused:
        Drivers(settings, monotonic=lambda: 0.0, found=[OWN, CRASHING])
    assert str(refused.value) == f"[drivers.{name}] isolated: {said}"


LIBVIRT = """
import ctypes
libvirtError = RuntimeError
registerErrorHandler = lambda *_: None
virEventRegisterDefaultImpl = lambda: None
virEventRunDefaultImpl = lambda: ctypes.CDLL(None).sleep(1000)
open = lambda uri: ctypes.string_at(0)
"""


def test_libvirt_is_never_loaded_in_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "libvirt.py").write_text(LIBVIRT)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "libvirt", raising=False)
    libvirt = EntryPoint("libvirt", "forewarn.drivers.libvirt.driver:make", ENTRY_POINTS)
    drivers = Drivers(Settings(), monotonic=long_lives(), found=[OWN, libvirt])
    try:
        driver: Any = drivers.by_name["libvirt"]
        with pytest.raises(Unavailable, match="driver libvirt was killed by SIGSEGV"):
            driver.reach(KVM)
        with pytest.raises(Unavailable, match="driver libvirt was killed by SIGSEGV"):
            driver.inventory([KVM])
        assert "libvirt" not in sys.modules
    finally:
        drivers.stop()
