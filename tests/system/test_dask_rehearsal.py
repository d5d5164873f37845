"""A rehearsal of a third-party client, unmodified: dask's worker plug-in for Azure's spot machines."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.helpers.programs.process import run

GUEST = str(Path(__file__).with_name("dask_guest.py"))
WATCHES = """
[scenario]
name = "watched-eviction"
clock = "x10"

[[steps]]
at = "10s"
order = { machine = "batch_0", action = "evict" }

[expect]
saw = true
approved = false
"""


def rehearsed(folder: Path, scenario: str) -> tuple[int, dict[str, Any], str]:
    ran = run(folder, "rehearse", scenario, "--json", "--", sys.executable, GUEST, "{endpoint}")
    return ran.returncode, json.loads(ran.stdout), ran.stderr


def test_a_dask_worker_sees_an_eviction_and_leaves_without_approving_it(tmp_path: Path) -> None:
    (tmp_path / "watched.toml").write_text(WATCHES)
    code, told, said = rehearsed(tmp_path, "watched.toml")
    assert code == 0, said
    (guest,) = told["guests"]
    (event,) = guest["events"]
    assert (event["type"], event["approved_seconds"]) == ("Preempt", None)
    assert event["announced_seconds"] <= event["seen_seconds"] < event["started_seconds"]
    assert "| left" in said
    assert "its program has ended with 0" in said


def test_the_shipped_eviction_reports_that_the_plug_in_does_not_approve(tmp_path: Path) -> None:
    code, told, _ = rehearsed(tmp_path, "spot-eviction")
    assert code == 1
    assert told["failures"] == ["the Preempt of batch_0 should have been approved, and was not"]
    (event,) = told["guests"][0]["events"]
    assert event["seen_seconds"] is not None
    assert event["used_seconds"] >= 30
