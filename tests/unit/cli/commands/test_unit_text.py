"""Units of systemd, with the paths of a machine in them."""

from pathlib import Path

import pytest

from forewarn.cli.commands.unit_commands import UNITS, unit_text, word
from forewarn.core.errors import Invalid


def made(service: str, **more: object) -> str:
    told = {
        "command": "forewarn unit install",
        "program": ["/opt/forewarn/bin/forewarn"],
        "config": Path("/srv/own.toml"),
        "kill": "/usr/bin/kill",
        "systemd": 255,
    }
    return unit_text(UNITS[service], **{**told, **more})  # type: ignore[arg-type]


def test_an_agent_is_run_by_the_program_and_with_the_config_that_there_are() -> None:
    lines = made("agent").splitlines()
    assert lines[:3] == ["# Written by `forewarn unit install`.", "", "[Unit]"]
    assert "ExecStart=/opt/forewarn/bin/forewarn agent --config /srv/own.toml" in lines
    assert "ExecReload=/usr/bin/kill -HUP $MAINPID" in lines
    assert "Type=notify" in lines


def test_without_a_program_to_send_signals_there_is_no_reload() -> None:
    assert "ExecReload" not in made("agent", kill=None)


def test_a_file_of_the_environment_is_no_command_line() -> None:
    text = made("filter", config=Path("/srv/my own%.env"))
    assert "\nEnvironmentFile=/srv/my own%%.env\n" in text
    assert "ExecStart=/opt/forewarn/bin/forewarn host filter %H --watch\n" in text


@pytest.mark.parametrize(
    ("version", "type_"), [(252, "notify"), (253, "notify-reload"), (None, "notify-reload")]
)
def test_an_older_systemd_is_told_how_to_reload(version: int | None, type_: str) -> None:
    text = made("server", systemd=version)
    assert f"Type={type_}\n" in text
    assert ("ExecReload=/usr/bin/kill -HUP $MAINPID" in text) == (type_ == "notify")


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("/opt/a/forewarn", "/opt/a/forewarn"),
        ("/opt/100%/x", "/opt/100%%/x"),
        ("/opt/my own/x", '"/opt/my own/x"'),
        ('/opt/"a"$b\\c', '"/opt/\\"a\\"$$b\\\\c"'),
    ],
)
def test_a_path_is_written_as_systemd_reads_it(path: str, written: str) -> None:
    assert word(path) == written


def test_a_path_that_would_be_another_line_is_refused() -> None:
    with pytest.raises(Invalid, match="control characters"):
        word("/opt/a\nUser=root")
