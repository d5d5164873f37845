"""Every command of the how-to page about rehearsals runs as printed."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from forewarn.rehearsal.scenario_file import default_fleet, read_scenario
from tests.helpers.programs.process import Program, free_port, shell_function

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl, the guest of the how-to, is absent")
def test_the_how_to_runs_as_printed(tmp_path: Path) -> None:
    text = (DOCS / "workloads/rehearse-an-eviction.md").read_text()
    script = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).replace("8301", str(free_port()))
    with Program(tmp_path, clock="x10") as program:
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"{shell_function()}\n{script}"],
            cwd=tmp_path,
            env={**os.environ, "FOREWARN_SERVER": program.operators},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        for name in ("spot-eviction", "host-update", "rough-eviction"):
            assert f"{name}: as expected" in ran.stdout
        # Once in a private service, and once on the running one.
        assert ran.stdout.count("spot-eviction: as expected") == 2
        assert "evict (rehearsal of spot-eviction)" in ran.stdout
        assert program.get("/v1/machines/spot-7")["machine"]["state"] == "running"


def test_the_scenario_of_the_reference_is_valid() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", (DOCS / "reference/scenarios.md").read_text(), re.DOTALL)
    assert read_scenario(text, default_fleet=default_fleet()).name == "my-rehearsal"
