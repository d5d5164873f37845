"""Every command of the how-to about rehearsals runs as printed."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from forewarn.rehearsal.reading import read_scenario
from forewarn.rehearsal.shipped import default_fleet
from tests.process import FOREWARN

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl, the guest of the how-to, is absent")
def test_the_how_to_runs_as_printed(tmp_path: Path) -> None:
    text = (DOCS / "how-to/rehearse-an-eviction.md").read_text()
    script = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f'forewarn() {{ {FOREWARN} "$@"; }}\n{script}'],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for name in ("spot-eviction", "host-update", "rough-eviction"):
        assert f"{name}: as expected" in ran.stdout


def test_the_scenario_of_the_reference_is_one() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", (DOCS / "reference/scenarios.md").read_text(), re.DOTALL)
    assert read_scenario(text, default_fleet=default_fleet()).name == "my-rehearsal"
