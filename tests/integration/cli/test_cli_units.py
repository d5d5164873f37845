"""`forewarn unit install` writes systemd units and overwrites no changed file."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.programs.process import FOREWARN, run


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "agent.toml"
    path.write_text('[agent]\napprove = "never"\n')
    return path


def test_the_unit_names_paths_that_exist(tmp_path: Path, config: Path) -> None:
    made = run(tmp_path, "unit", "install", "agent", "--config", "agent.toml", "--to", "own.service")
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("Wrote own.service.\n")
    assert "systemctl daemon-reload && systemctl enable --now forewarn-agent" in made.stdout
    (started,) = [line for line in (tmp_path / "own.service").read_text().splitlines() if "ExecStart" in line]
    program, *words = started.removeprefix("ExecStart=").split()
    assert Path(program).samefile(FOREWARN)
    assert words == ["agent", "--config", str(config)]


def test_a_changed_unit_is_not_overwritten(tmp_path: Path, config: Path) -> None:
    command = ("unit", "install", "agent", "--config", config, "--to", "own.service")
    (tmp_path / "own.service").write_text("[Unit]\n")
    refused = run(tmp_path, *command)
    assert refused.returncode == 1
    assert "own.service exists and differs; --force overwrites it" in refused.stderr
    assert (tmp_path / "own.service").read_text() == "[Unit]\n"
    assert run(tmp_path, *command, "--force").returncode == 0
    again = run(tmp_path, *command, "--json")
    assert (again.returncode, json.loads(again.stdout)["written"]) == (0, False)


def test_a_config_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    refused = run(tmp_path, "unit", "install", "agent", "--config", "no.toml", "--print")
    assert refused.returncode == 1
    assert "config no.toml does not exist; `" in refused.stderr
    assert "agent init no.toml` writes one, or choose another with --config" in refused.stderr


@pytest.mark.parametrize(
    ("program", "default"),
    [
        ("agent", "agent.toml"),
        ("server", "forewarn.toml"),
        ("filter", "filter.env"),
        ("import", "import.env"),
    ],
)
def test_a_unit_without_a_config_is_refused_with_the_next_step(
    tmp_path: Path, program: str, default: str
) -> None:
    if Path("/etc/forewarn", default).exists():
        pytest.skip("this machine has a config of forewarn")
    refused = run(tmp_path, "unit", "install", program, "--to", tmp_path)
    assert refused.returncode == 1
    assert f"config /etc/forewarn/{default} does not exist; " in refused.stderr
    assert "or choose another with --config" in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_unit_is_written_into_a_folder_under_its_default_name(tmp_path: Path, config: Path) -> None:
    made = run(tmp_path, "unit", "install", "agent", "--config", config, "--to", tmp_path)
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "forewarn-agent.service").is_file()


def test_a_missing_folder_is_reported(tmp_path: Path, config: Path) -> None:
    refused = run(tmp_path, "unit", "install", "agent", "--config", config, "--to", "no/own.service")
    assert refused.returncode == 1
    assert "folder no does not exist; choose another with --to" in refused.stderr


def test_a_filter_unit_needs_a_host(tmp_path: Path, config: Path) -> None:
    made = run(tmp_path, "unit", "install", "filter", "--config", config, "--host", "kvm04", "--print")
    assert made.returncode == 0, made.stderr
    assert f"\nEnvironmentFile={config}\n" in made.stdout
    assert " host filter kvm04 --watch\n" in made.stdout
    refused = run(tmp_path, "unit", "install", "agent", "--config", config, "--host", "kvm04", "--print")
    assert refused.returncode == 2


def test_an_unknown_program_has_no_unit(tmp_path: Path) -> None:
    refused = run(tmp_path, "unit", "install", "relay")
    assert refused.returncode == 2
    assert "expected agent, server, filter, import, got" in refused.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is absent")
@pytest.mark.parametrize("program", ["agent", "server", "filter", "import"])
def test_systemd_accepts_every_unit(tmp_path: Path, config: Path, program: str) -> None:
    unit = tmp_path / "own.service"
    assert run(tmp_path, "unit", "install", program, "--config", config, "--to", unit).returncode == 0
    ran = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert [line for line in ran.stderr.splitlines() if "own.service" in line] == []
