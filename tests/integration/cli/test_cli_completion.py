"""Shell completion."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from forewarn.cli.main import app
from forewarn.core.basic_types import Action, Work
from tests.helpers.database.stores import sqlite_url
from tests.helpers.programs.process import FOREWARN, until
from tests.helpers.service.harness import Service
from tests.helpers.service.served import app_of, sample, serving


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(sample())
    yield service
    service.close()


@pytest.fixture
def server(service: Service) -> Iterator[str]:
    with serving(app_of(service)) as url:
        yield url


def completed(typed: str, *, server: str = "http://127.0.0.1:1", shell: str = "bash") -> list[str]:
    """Request completions in the same way as the script that --show-completion prints."""
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split(" ")) - 1)}
    environment = {
        **os.environ,
        **words,
        "_FOREWARN_COMPLETE": f"{shell}_complete",
        "FOREWARN_SERVER": server,
    }
    ran = subprocess.run([FOREWARN], env=environment, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    return [line.removeprefix("plain,") for line in ran.stdout.split()]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("forewarn mach", ["machine"]),
        ("forewarn machine re", ["restart", "redeploy", "recommend-rebalance"]),
        ("forewarn host maintenance host-1 --action fr", ["freeze"]),
        ("forewarn history ex", ["export"]),
    ],
)
def test_nouns_verbs_and_choices_need_no_server(typed: str, expected: list[str]) -> None:
    assert sorted(completed(typed)) == sorted(expected)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("forewarn machine restart web-", [f"web-{number}" for number in range(6)]),
        ("forewarn host maintenance host-", ["host-1", "host-2", "host-3"]),
        ("forewarn group show w", ["web"]),
        ("forewarn rollout start host-1 host-", ["host-1", "host-2", "host-3"]),
        ("forewarn watch --host host-", ["host-1", "host-2", "host-3"]),
    ],
)
def test_names_come_from_the_server(server: str, typed: str, expected: list[str]) -> None:
    # Completion does not wait for a busy server.
    until(lambda: completed(typed, server=server) == expected, what="the names")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("order show 0", ["00000000"]),
        ("event show 0", None),
    ],
)
def test_ids_come_from_the_server_as_short_as_they_are_unique(
    service: Service, server: str, words: str, expected: list[str] | None
) -> None:
    # Ids in tests are numbers. Two ids of a kind differ in the last character; a single id is short.
    events = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE).events
    service.roll("host-2")
    wanted = sorted(event.id for event in events) if expected is None else expected
    until(lambda: sorted(completed(f"forewarn {words}", server=server)) == wanted, what="the ids")


def test_the_server_in_the_typed_command_is_used(server: str) -> None:
    until(lambda: completed(f"forewarn group show --server {server} w") == ["web"], what="the name")
    until(lambda: completed(f"forewarn --server {server} group show w") == ["web"], what="the name")


def test_without_a_server_there_are_no_completions_and_no_errors() -> None:
    assert completed("forewarn machine restart w") == []
    assert completed("forewarn machine restart w", server="nonsense://x") == []


def test_zsh_is_supported(server: str) -> None:
    typed = "forewarn machine restart web-0"
    until(lambda: "web-0" in completed(typed, server=server, shell="zsh"), what="the name")


def test_the_script_for_bash_works_in_bash(server: str) -> None:
    script = f"""
        PATH={Path(FOREWARN).parent}:$PATH
        eval "$({FOREWARN} --show-completion)"
        COMP_WORDS=(forewarn machine restart web-) COMP_CWORD=3
        _forewarn_completion forewarn
        echo "${{COMPREPLY[@]}}"
    """
    environment = {**os.environ, "FOREWARN_SERVER": server}

    def completed_there() -> list[str]:
        ran = subprocess.run(
            ["bash", "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        return ran.stdout.split()

    until(lambda: completed_there() == [f"web-{number}" for number in range(6)], what="the names")


@pytest.mark.parametrize(
    ("shell", "script", "started_by"),
    [
        ("/bin/bash", ".bash_completions/forewarn.sh", ".bashrc"),
        ("/usr/bin/zsh", ".zfunc/_forewarn", ".zshrc"),
        ("/usr/bin/fish", ".config/fish/completions/forewarn.fish", None),
    ],
)
def test_the_script_is_installed_where_the_shell_finds_it(
    tmp_path: Path, shell: str, script: str, started_by: str | None
) -> None:
    for _ in range(2):  # a second installation changes nothing
        ran = CliRunner().invoke(app, ["--install-completion"], env={"HOME": str(tmp_path), "SHELL": shell})
        assert (ran.exit_code, ran.stderr) == (0, "")
    assert "_FOREWARN_COMPLETE" in (tmp_path / script).read_text()
    assert started_by is None or len((tmp_path / started_by).read_text().splitlines()) == 2


def test_a_shell_without_completion_is_refused() -> None:
    ran = CliRunner().invoke(app, ["--show-completion"], env={"SHELL": "/bin/tcsh"})
    assert ran.exit_code == 2
    assert "not tcsh" in ran.stderr
