"""`forewarn driver try` calls a driver from this process, with settings and fleet in files."""

import json
from pathlib import Path

import pytest

from tests.helpers.programs.process import run

PROGRAM = """
case "$1" in
check) echo '{"state": "not-begun"}' ;;
begin) echo "{\\"state\\": \\"done\\", \\"host\\": \\"$FOREWARN_TARGET\\"}" ;;
esac
"""
FLEET = '[hosts.rack-1]\n[hosts.rack-2]\n[[machines]]\nname = "web-0"\nhost = "rack-1"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program").write_text(PROGRAM)
    words = json.dumps(["/bin/sh", str(tmp_path / "program")])
    (tmp_path / "forewarn.toml").write_text(f'[drivers.lab]\nkind = "command"\ncommand = {words}\n')
    (tmp_path / "fleet.toml").write_text(FLEET)
    return tmp_path


FILES = ("--config", "forewarn.toml", "--fleet", "fleet.toml")


def test_a_driver_is_tried_without_a_server(folder: Path) -> None:
    tried = run(folder, "driver", "try", "lab", *FILES, "--machine", "web-0")
    assert tried.returncode == 0, tried.stderr
    first, second = tried.stdout.splitlines()
    assert first.startswith("check  not-begun")
    assert second == "As expected: the driver knows no such step."
    moved = run(
        folder, "--json", "driver", "try", "lab", *FILES, "--machine=web-0", "--begin=redeploy", "--to=rack-2"
    )
    answer = json.loads(moved.stdout)
    assert answer["good"] is True
    assert [(each["call"], each["state"], each["says"]) for each in answer["answers"]] == [
        ("begin", "done", "on rack-2")
    ]


def test_a_broken_driver_exits_with_1(folder: Path) -> None:
    (folder / "program").write_text("echo well")
    tried = run(folder, "driver", "try", "lab", *FILES, "--machine", "web-0")
    assert tried.returncode == 1
    assert 'no JSON object that has a "state": well' in tried.stdout
    assert "Expected not-begun" in tried.stdout


def test_an_invalid_option_is_named(folder: Path) -> None:
    tried = run(folder, "driver", "try", "lab", *FILES, "--machine", "web-0", "--begin", "frezee")
    assert (tried.returncode, tried.stderr.split(":")[1].strip()) == (2, "--begin")
