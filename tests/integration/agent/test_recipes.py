"""Every recipe of `examples/`: the files that `init` writes, the config, the programs and the README."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from forewarn.agent.setup import recipe
from tests.helpers.programs.process import run, until
from tests.helpers.programs.recipe_agents import EXAMPLES, installed, readme, rehearsed

INDEX = (EXAMPLES / "README.md").read_text()
HEADINGS = ["## Requirements", "## Install", "## Rehearse", "## Settings"]
# External programs of recipes; a check reports them if they are missing.
OTHER_PROJECTS_REASON = re.compile(
    r"(/run/haproxy/admin\.sock|systemctl) does not exist|systemd does not answer"
)

each_recipe = pytest.mark.parametrize("name", recipe.names())


@each_recipe
def test_init_writes_the_files_of_the_examples(name: str, tmp_path: Path) -> None:
    made = run(tmp_path, "agent", "init", "--recipe", name, "--json")
    assert made.returncode == 0, made.stderr
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    there = {each: (EXAMPLES / name / each).read_text() for each in written}
    for program in recipe.programs(name):
        there[recipe.CONFIG] = there[recipe.CONFIG].replace(
            f"{recipe.HOME}/{program}", f"{tmp_path}/{program}"
        )
    assert written == there
    assert json.loads(made.stdout)["programs"] == sorted(written.keys() - {recipe.CONFIG})
    assert all(os.access(tmp_path / program, os.X_OK) for program in recipe.programs(name))


@each_recipe
def test_its_installed_config_is_valid(name: str, tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(installed(name, tmp_path))
    checked = run(tmp_path, "agent", "check", "--config", "agent.toml", "--json")
    told = json.loads(checked.stdout)
    assert [problem for problem in told["problems"] if not OTHER_PROJECTS_REASON.search(problem)] == []
    assert checked.returncode == bool(told["problems"])


@each_recipe
def test_its_programs_exist_with_valid_syntax(name: str) -> None:
    wanted = re.findall(rf'"{recipe.HOME}/([\w-]+)"', recipe.text(name))
    programs = recipe.programs(name)
    assert sorted(set(wanted) - {"kubeconfig"}) == sorted(programs)
    for program, text in programs.items():
        if re.match(r"#!/bin/(ba)?sh\n", text):
            path = EXAMPLES / name / program
            checked = subprocess.run(["bash", "-n", path], capture_output=True, text=True, check=False)
            assert checked.returncode == 0, checked.stderr
        else:
            compile(text, program, "exec")


@each_recipe
def test_its_readme_covers_installing_rehearsing_and_changing_it(name: str) -> None:
    text = readme(name)
    assert re.findall(r"^## .*", text, re.MULTILINE) == HEADINGS
    install, rehearse = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    assert len(install.splitlines()) == 5
    assert f"forewarn agent init --recipe {name}\n" in install
    assert re.fullmatch(r"forewarn agent rehearse [\w-]+ --speed \d+ .*--config agent.toml\n", rehearse)
    assert f"[{name}]({name}/README.md)" in INDEX
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert (EXAMPLES / name / link).exists(), link


def test_the_index_lists_existing_recipes() -> None:
    assert sorted(re.findall(r"^\| \[([\w-]+)\]", INDEX, re.MULTILINE)) == recipe.names()


def test_an_existing_program_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "failover").write_text("mine")
    refused = run(tmp_path, "agent", "init", "--recipe", "redis")
    assert refused.returncode == 1
    assert "failover exists; --force overwrites it" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["failover"]


def test_the_written_config_finds_its_programs_in_any_folder(tmp_path: Path) -> None:
    folder = tmp_path / 'a "new" place'
    folder.mkdir(mode=0o755)
    made = run(tmp_path, "agent", "init", "--recipe", "checkpoint", folder / "mine.toml")
    assert made.returncode == 0, made.stderr
    assert (
        f"its programs {folder}/checkpoint, {folder}/primes, {folder}/restore, {folder}/running"
        in made.stdout
    )
    checked = run(tmp_path, "agent", "check", "--config", folder / "mine.toml", "--json")
    assert json.loads(checked.stdout)["problems"] == []


def test_init_onto_a_folder_is_refused(tmp_path: Path) -> None:
    for more in ([], ["--force"]):
        refused = run(tmp_path, "agent", "init", "--recipe", "redis", tmp_path, *more)
        assert refused.returncode == 1
        said = f"{tmp_path} is a folder; choose a file such as {tmp_path}/agent.toml"
        assert refused.stderr == f"forewarn: {said}\n"
    assert list(tmp_path.iterdir()) == []


# The programs of the checkpoint recipe alone


@dataclass(frozen=True)
class Computation:
    """A machine with a computation in any state."""

    folder: Path

    @property
    def pid_file(self) -> Path:
        return self.folder / "pid"

    @property
    def starts(self) -> Path:
        return self.folder / "starts"

    def write_pid(self, pid: int, *, ago: float = 0.0) -> None:
        self.pid_file.write_text(f"{pid}\n")
        then = self.pid_file.stat().st_mtime - ago
        os.utime(self.pid_file, (then, then))

    def run(self, program: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the recipe."""
        start = self.folder / "start"
        start.write_text(f"#!/bin/sh\necho started >> {self.starts}\n")
        start.chmod(0o755)
        own = {
            "COMPUTATION": str(start),
            "RUNNING": str(EXAMPLES / "checkpoint" / "running"),
            "PID_FILE": str(self.pid_file),
            "CHECKPOINT": str(self.folder / "saved"),
            "LOG": str(self.folder / "log"),
        }
        words = [EXAMPLES / "checkpoint" / program]
        return subprocess.run(words, env=os.environ | own, capture_output=True, text=True, check=False)


@pytest.fixture
def computation(tmp_path: Path) -> Computation:
    return Computation(tmp_path)


@pytest.fixture
def stranger() -> Iterator["subprocess.Popen[bytes]"]:
    """Run an unrelated process, which SIGUSR1 would end."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def test_a_computation_that_did_not_run_before_the_event_is_not_started_after_it(
    computation: Computation,
) -> None:
    saved = computation.run("checkpoint")
    assert (saved.returncode, saved.stdout) == (0, "the computation does not run: nothing to save\n")
    restored = computation.run("restore")
    assert (restored.returncode, restored.stdout) == (
        0,
        "the computation did not run before the event: not started\n",
    )
    assert not computation.starts.exists()


def test_a_computation_that_ran_is_started_once(computation: Computation) -> None:
    (computation.folder / "saved.ran").touch()
    assert computation.run("restore").stdout == "started\n"
    until(computation.starts.exists, what="the computation to be started")
    assert computation.run("restore").stdout == "the computation did not run before the event: not started\n"


def test_a_process_that_did_not_write_the_pid_file_gets_no_signal(
    computation: Computation, stranger: "subprocess.Popen[bytes]"
) -> None:
    computation.write_pid(stranger.pid, ago=3600)
    refused = computation.run("checkpoint")
    assert refused.returncode == 1
    assert "it is another process, so no signal was sent" in refused.stderr
    assert stranger.poll() is None


def test_a_process_that_wrote_the_pid_file_is_found(
    computation: Computation, stranger: "subprocess.Popen[bytes]"
) -> None:
    computation.write_pid(stranger.pid)
    assert computation.run("running").stdout == f"{stranger.pid}\n"


def test_a_process_with_the_pid_of_the_computation_does_not_prevent_its_start(
    computation: Computation, stranger: "subprocess.Popen[bytes]"
) -> None:
    (computation.folder / "saved.ran").touch()
    computation.write_pid(stranger.pid, ago=3600)
    assert computation.run("restore").stdout == "started\n"


@pytest.mark.parametrize("name", ["log", "leader"])
def test_its_rehearsal_matches_its_readme(name: str, tmp_path: Path) -> None:
    rehearsed(name, tmp_path)
