"""Programs that the tests fork behave like programs that are started."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.helpers.programs import process
from tests.helpers.programs.forked import Forked, can_fork, plain_environment
from tests.helpers.programs.process import (
    FOREWARN,
    PATIENCE,
    Program,
    run,
    sample_fleet,
    shell_function,
    started,
)


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["machine", "list"], ["no-such-command"]])
def test_a_forked_program_has_the_same_output_and_exit_code(
    tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = {"FOREWARN_SERVER": "http://127.0.0.1:1", "COLUMNS": "70"}
    forked = run(tmp_path, *words, environment=nowhere)
    monkeypatch.setattr(process, "forking", False)
    assert vars(run(tmp_path, *words, environment=nowhere)) == vars(forked)


def test_a_forked_program_is_a_process_that_can_be_killed(tmp_path: Path) -> None:
    fleet = sample_fleet(tmp_path)
    with Program(tmp_path, "--fleet", fleet) as first, Program(tmp_path, "--database", "sqlite://") as second:
        assert isinstance(first.process, Forked)
        first.kill()
        assert first.process.returncode == -signal.SIGKILL
        assert second.get("/v1/machines") == {"machines": [], "next": None}
        assert second.stop() == 0


def test_a_timeout_raises_the_same_error_as_subprocess(tmp_path: Path) -> None:
    with process.ending(started([FOREWARN, "serve", "--guest", "127.0.0.1:0"], tmp_path)) as waiting:
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(0.01)
        waiting.terminate()
        waiting.communicate(PATIENCE)


def test_a_variable_that_python_reads_at_its_start_needs_a_start() -> None:
    plain = plain_environment()
    assert can_fork(plain | {"FOREWARN_SERVER": "http://127.0.0.1:1"})
    assert not can_fork(plain | {"PYTHONUTF8": "0"})


def test_a_script_has_its_exit_code_and_output(tmp_path: Path) -> None:
    script = f"{shell_function()}\nforewarn --version | tr a-z A-Z; forewarn no-such-command; exit $?"
    ran = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stdout.startswith("FOREWARN ")
    assert "no-such-command" in ran.stderr
