"""The recipe for a long computation: it is killed with its machine, and continues from its checkpoint."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from forewarn.agent.handling import Side
from forewarn.agent.journal.entries import Approved, Ended, Ending, Over
from forewarn.platform import system
from tests.helpers.programs.agent_program import AgentProgram, lines_of, serving
from tests.helpers.programs.process import Program, running, until
from tests.helpers.programs.recipe_agents import EXAMPLES, agent_with, rehearsed


@dataclass
class Computation:
    """The program of the recipe, and its files."""

    folder: Path

    @property
    def pid_file(self) -> Path:
        return self.folder / "computation.pid"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "computation.json"

    @property
    def log(self) -> Path:
        return self.folder / "computation.log"

    @property
    def places(self) -> dict[str, str]:
        return {
            "/run/computation.pid": str(self.pid_file),
            "/var/lib/forewarn/computation.json": str(self.checkpoint),
            "/var/log/computation.log": str(self.log),
        }

    def pid(self) -> int | None:
        """Return the id of the running process, or None."""
        pid = int(self.pid_file.read_text() or 0) if self.pid_file.exists() else 0
        return pid if pid and system.process_started(pid) is not None else None

    def saved(self) -> tuple[int, int]:
        found = json.loads(self.checkpoint.read_text())
        return found["candidate"], found["found"]

    def save(self) -> tuple[int, int]:
        """Make it save, and return the saved state."""
        before, pid = self.saved(), self.pid()
        assert pid is not None
        os.kill(pid, signal.SIGUSR1)
        until(lambda: self.saved() != before, what="another checkpoint")
        return self.saved()


@pytest.fixture
def computation(tmp_path: Path) -> Iterator[Computation]:
    """Run the computation, as if an administrator had started it earlier."""
    made = Computation(tmp_path)
    environment = [f"CHECKPOINT={made.checkpoint}", f"PID_FILE={made.pid_file}"]
    with running(["env", *environment, str(EXAMPLES / "checkpoint" / "primes")], tmp_path):
        until(made.pid, what="the computation to run")
        yield made
    if pid := made.pid():
        os.kill(pid, signal.SIGKILL)


def switch_off(computation: Computation, agent: AgentProgram) -> None:
    """Kill all processes of the machine, and empty /run."""
    if pid := computation.pid():
        os.kill(pid, signal.SIGKILL)
        until(lambda: is_gone(pid), what="the computation to end")
    agent.kill()
    computation.pid_file.unlink(missing_ok=True)


def is_gone(pid: int) -> bool:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # reaps it if it is a child of the test
    return system.process_started(pid) is None


def primes_below(limit: int) -> int:
    """Count primes with another algorithm."""
    sieve = bytearray([1]) * limit
    sieve[:2] = b"\0\0"[: min(2, limit)]
    for number in range(2, int(limit**0.5) + 1):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, limit, number)))
    return sum(sieve)


def agent_of(service: Program, computation: Computation) -> AgentProgram:
    return agent_with(
        "checkpoint",
        service=service,
        machine="batch_0",
        folder=computation.folder,
        places=computation.places,
    )


def test_saved_work_survives_the_restart_of_the_machine(tmp_path: Path, computation: Computation) -> None:
    with serving(tmp_path) as service, agent_of(service, computation) as agent:
        service.post("/v1/machines/batch_0/restart")
        agent.wait_for(Approved)
        saved = computation.saved()
        assert saved[1] == primes_below(saved[0]) > 0
        assert computation.pid() is not None, "it goes on until the machine is restarted"

        switch_off(computation, agent)
        service.advance(900)
        agent.start()
        agent.wait_for(Over)
        until(computation.pid, what="the computation to run again")
        assert computation.saved() == saved
        assert lines_of(computation.log) == [f"begins at {saved[0]}, {saved[1]} found before"]

        later = computation.save()
        assert later[0] > saved[0]
        assert later[1] == primes_below(later[0])


def test_a_cancelled_event_leaves_it_running(tmp_path: Path, computation: Computation) -> None:
    with serving(tmp_path) as service, agent_of(service, computation) as agent:
        agent.configure(agent.config.read_text().replace('"when-ready"', '"never"'))
        agent.stop()
        agent.start()
        before = computation.pid()
        order = service.post("/v1/machines/batch_0/restart")["order"]["id"]
        agent.wait_for(Ended, side=Side.PREPARE, ending=Ending.READY)
        service.post(f"/v1/orders/{order}/cancel")
        agent.wait_for(Over)
        assert computation.pid() == before
        agent.out.wait_for("checkpoint | the computation runs already")


def test_an_event_does_not_start_a_computation_that_did_not_run(tmp_path: Path) -> None:
    computation = Computation(tmp_path)
    with serving(tmp_path) as service, agent_of(service, computation) as agent:
        service.post("/v1/machines/batch_0/restart")
        agent.wait_for(Approved)
        service.advance(900)
        agent.wait_for(Over)
        agent.out.wait_for("checkpoint | the computation did not run before the event: not started")
    assert not computation.log.exists()


def test_the_rehearsal_of_the_readme_succeeds(tmp_path: Path, computation: Computation) -> None:
    before = computation.pid()
    rehearsed("checkpoint", tmp_path, computation.places)
    saved = computation.saved()
    assert saved[1] == primes_below(saved[0]) > 0
    assert computation.pid() == before
