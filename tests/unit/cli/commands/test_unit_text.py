"""The text of systemd units, with the paths of a machine."""

from pathlib import Path

import pytest

from forewarn.cli.commands.unit_commands import UNITS, unit_text, word
from forewarn.core.errors import Invalid


def made(service: str, **more: object) -> str:
    options = {
        "command": "forewarn unit install",
        "program": ["/opt/forewarn/bin/forewarn"],
        "config": Path("/srv/own.toml"),
        "kill": "/usr/bin/kill",
        "systemd": 255,
    }
    return unit_text(UNITS[service], **{**options, **more})  # type: ignore[arg-type]


def test_the_unit_has_the_paths_of_the_program_and_the_config() -> None:
    lines = made("agent").splitlines()
    assert lines[:3] == ["# Written by `forewarn unit install`.", "", "[Unit]"]
    assert "ExecStart=/opt/forewarn/bin/forewarn agent --config /srv/own.toml" in lines
    assert "ExecReload=/usr/bin/kill -HUP $MAINPID" in lines
    assert "Type=notify" in lines


def test_without_kill_the_unit_has_no_reload() -> None:
    assert "ExecReload" not in made("agent", kill=None)


def test_an_environment_file_is_not_in_the_command_line() -> None:
    text = made("filter", config=Path("/srv/my own%.env"))
    assert "\nEnvironmentFile=/srv/my own%%.env\n" in text
    assert "ExecStart=/opt/forewarn/bin/forewarn host filter %H --watch\n" in text


@pytest.mark.parametrize(
    ("version", "type_"), [(252, "notify"), (253, "notify-reload"), (None, "notify-reload")]
)
def test_a_unit_for_an_older_systemd_has_a_reload_command(version: int | None, type_: str) -> None:
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
def test_paths_are_quoted_for_systemd(path: str, written: str) -> None:
    assert word(path) == written


def test_a_path_with_a_line_break_is_refused() -> None:
    with pytest.raises(Invalid, match="control characters"):
        word("/opt/a\nUser=root")
