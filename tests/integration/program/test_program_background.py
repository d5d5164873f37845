"""Background tasks that fail: each is restarted, probes and metrics show it, and SIGTERM ends all of them."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from forewarn.supervision import KEEPS_FAILING, BackgroundTask
from tests.helpers.programs import faulty_forewarn
from tests.helpers.programs.process import Program, sample_fleet, until
from tests.helpers.programs.receiver import Receiver, receiving

EACH = tuple(task for _, _, task in faulty_forewarn.FAILING)
# Started on demand, and tested in tests/unit/server/threads/test_lanes.py and test_deadlines.py.
ELSEWHERE = (BackgroundTask.LANE, BackgroundTask.LANE_TIMER, BackgroundTask.PROBER)
FOR_EVER = 1_000_000


class FaultyServer:
    """A server whose tasks fail a given number of times."""

    def __init__(self, program: Program, faults: Path) -> None:
        self.program = program
        self._faults = faults

    def fail(self, task: str, times: int) -> None:
        (self._faults / "sound").unlink(missing_ok=True)
        whole = self._faults / f".{task}"
        whole.write_text(str(times))
        whole.rename(self._faults / task)

    def be_sound(self) -> None:
        (self._faults / "sound").touch()

    def measured(self, what: str, task: str) -> float:
        text = self.program.call("GET", "/metrics").text
        found = re.search(rf'^forewarn_background_{what}{{task="{task}"}} (.+)$', text, re.MULTILINE)
        return 0.0 if found is None else float(found[1])

    @property
    def unready(self) -> str:
        answer = self.program.call("GET", "/readyz")
        return "" if answer.status_code == 200 else answer.json()["error"]["message"]


@contextmanager
def hearing() -> Iterator[str]:
    """Read the notifications to systemd, so that the server never blocks."""
    address = f"@forewarn-tests-background-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(f"\0{address[1:]}")

        def hear() -> None:
            while ear.recv(4096):
                pass

        thread = threading.Thread(target=hear)
        thread.start()
        try:
            yield address
        finally:
            ear.sendto(b"", f"\0{address[1:]}")
            thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FaultyServer]:
    faults = tmp_path / "faults"
    faults.mkdir()
    faulty = Path(faulty_forewarn.__file__)
    with hearing() as address:
        environment = {"FAULTS": str(faults), "NOTIFY_SOCKET": address, "WATCHDOG_USEC": "100000"}
        with Program(
            tmp_path,
            "--fleet",
            sample_fleet(tmp_path),
            environment=environment,
            before=[sys.executable, str(faulty)],
        ) as program:
            yield FaultyServer(program, faults)


def test_every_task_has_a_test() -> None:
    assert {*EACH, *ELSEWHERE} == set(BackgroundTask)


def test_failed_tasks_are_restarted_and_a_server_whose_tasks_all_fail_can_be_stopped(
    server: FaultyServer, receiver: Receiver
) -> None:
    program = server.program
    urge: dict[str, Callable[[], object]] = {
        "worker": lambda: program.post("/v1/hosts/host-1/cordon"),
        "webhooks": lambda: program.post("/v1/webhooks", json={"url": receiver.url}),
        "webhook": lambda: program.post("/v1/hosts/host-1/uncordon"),
        "reload": lambda: program.process.send_signal(signal.SIGHUP),
        "read": lambda: program.call("GET", "/v1/machines"),
    }
    urge["webhooks"]()
    for task in EACH:
        assert server.unready == ""
        # Of tasks with several instances, at least one keeps failing.
        times = KEEPS_FAILING * (20 if task in {"read", "webhook"} else 1)
        server.fail(task, times)

        def failed(task: str = task, times: int = times) -> bool:
            with suppress(httpx.TransportError):  # the operator port has just failed
                urge.get(task, lambda: None)()
                return server.measured("restarts_total", task) >= times
            return False

        until(failed, what=f"{task} to be started again")
        assert server.measured("failing", task) >= 1
        assert server.unready == f"background task {task} keeps failing; the log says why"
        server.be_sound()
        until(lambda: server.unready == "", what=f"{task} to be sound")
    before = len(receiver.numbers)
    program.post("/v1/hosts/host-1/cordon")
    until(lambda: len(receiver.numbers) > before, what="the webhook to be called")
    for task in EACH:
        server.fail(task, FOR_EVER)
    program.process.send_signal(signal.SIGHUP)
    assert program.stop() == 0
    assert "injected into lock" in program.err.text


def test_a_server_whose_operator_port_never_answers_can_be_stopped(tmp_path: Path) -> None:
    (tmp_path / "operator-start").write_text(str(FOR_EVER))
    words = [sys.executable, faulty_forewarn.__file__, "forewarn", "serve", "--fleet", sample_fleet(tmp_path)]
    words += ["--guest", "127.0.0.1:0", "--operator", "127.0.0.1:0"]
    environment = {**os.environ, "FAULTS": str(tmp_path)}
    with subprocess.Popen(
        words, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        try:
            for line in server.stderr:
                if "background task operator-port failed" in line:
                    break
            server.terminate()
            server.communicate(timeout=60)
            assert server.returncode == 0
        finally:
            server.kill()
