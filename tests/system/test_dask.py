"""A third-party client, unmodified: dask's worker plug-in for Azure's spot machines."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.helpers.programs.process import PATIENCE, Output, Program, ending, started, until
from tests.system.namespaces import HOST, METADATA, Network, network

FLEET = """
[defaults]
driver = "simulated"

[hosts.host-1]

[[machines]]
name = "spot-0"
host = "host-1"
priority = "spot"
address = "10.77.0.20"

[[machines]]
name = "spot-1"
host = "host-1"
priority = "spot"
address = "10.77.0.21"
"""
# The plug-in uses the system's time, so the test shortens the notice instead of speeding up the clock.
QUICK = {"FOREWARN_TIMES_PREEMPT_NOTICE": "3", "FOREWARN_SIMULATED_EVICT": "10"}
SCHEDULER = f"tcp://{HOST}:8786"
DASK = str(Path(sys.executable).with_name("dask"))
TENANT = str(Path(__file__).with_name("dask_tenant.py"))


@pytest.fixture
def site() -> Iterator[Network]:
    with network(spot_0=20, spot_1=21) as built:
        yield built


class Cluster:
    """A scheduler on the host and a worker in each guest, each in a process whose output is kept."""

    def __init__(self, site: Network, folder: Path, stack: ExitStack) -> None:
        self._site = site
        self._folder = folder
        self._stack = stack
        scheduler = ("scheduler", "--host", HOST, "--port", "8786", "--no-dashboard", "--no-show")
        self.start("host", DASK, *scheduler)
        self.workers = {name: self._worker(name)[0] for name in ("spot-0", "spot-1")}

    def start(self, where: str, *command: str) -> tuple[subprocess.Popen[str], Output]:
        inside = [*self._site.inside(where), *command]
        process = self._stack.enter_context(ending(started(inside, self._folder)))
        assert process.stdout is not None
        assert process.stderr is not None
        Output(process.stderr)
        return process, Output(process.stdout)

    def _worker(self, name: str) -> tuple[subprocess.Popen[str], Output]:
        space = self._folder / name
        space.mkdir()
        options = ("--name", name, "--nthreads", "1", "--no-dashboard", "--local-directory", str(space))
        return self.start(name, DASK, "worker", SCHEDULER, *options)


def test_a_dask_worker_leaves_gracefully_when_its_machine_is_evicted(site: Network, tmp_path: Path) -> None:
    assert shutil.which(DASK), "dask is installed by make test-system"
    (tmp_path / "fleet.toml").write_text(FLEET)
    program = Program(
        tmp_path,
        *("--fleet", "fleet.toml"),
        clock="system",
        listen=[f"{METADATA}:80"],
        environment=QUICK,
        before=site.inside("host"),
    )
    with program, ExitStack() as stack:
        cluster = Cluster(site, tmp_path, stack)
        _, tenant = cluster.start("host", sys.executable, TENANT, SCHEDULER)
        assert tenant.wait_for("made ") == "499500"
        until(lambda: polls(site, program) == {"spot-0", "spot-1"}, what="both workers to poll")

        event = site.forewarn(program.operators, "machine evict spot-0")["event"]
        assert (event["type"], event["resources"]) == ("Preempt", ["spot-0"])
        assert tenant.wait_for("left ") == "['spot-1']"
        assert tenant.wait_for("kept ") == "499500 499500"
        assert cluster.workers["spot-0"].wait(PATIENCE) == 0
        assert cluster.workers["spot-1"].poll() is None


def polls(site: Network, program: Program) -> set[str]:
    machines = site.forewarn(program.operators, "machine list")["machines"]
    return {machine["name"] for machine in machines if machine["last_seen"]}
