"""Every program refuses invalid TOML files with a reason."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from forewarn import config_reading
from forewarn.agent.setup import agent_config
from forewarn.config import Settings
from forewarn.control.driver import KnownDrivers
from forewarn.core.errors import Invalid
from forewarn.core.toml_text import DEEPEST, parse_toml
from forewarn.rehearsal.scenario_file import read_scenario
from forewarn.server.fleet_file import check_file

RUBBISH: Mapping[str, tuple[str, str]] = {
    "brackets": (f"x = {'[' * 5_000}", "levels deep"),
    "lists": (f"x = {'[' * DEEPEST}{']' * DEEPEST}", "levels deep"),
    "dots": (f"{'.'.join('a' * 5_000)} = 1", "levels deep"),
    "digits": (f"x = {'9' * 5_000}", "too many digits"),
    "hexadecimal": (f"x = 0x{'f' * 5_000}", "more than 64 bits"),
    "bits": (f"x = {2**63}", "more than 64 bits"),
    "bare": ("x", "not TOML"),
}


def names_of(settings: Any, prefix: str = "") -> list[str]:
    names = []
    for each in fields(settings):
        name, present = f"{prefix}{each.name}", getattr(settings, each.name)
        names += names_of(present, f"{name}.") if is_dataclass(present) else [name]
    return names


def read_settings(text: str, _: Path) -> None:
    config_reading.load(text, {}, {})


def read_agent_config(text: str, _: Path) -> None:
    agent_config.parse(text, environment={})


def read_a_scenario(text: str, _: Path) -> None:
    read_scenario(text, default_fleet={})


def read_a_fleet(text: str, folder: Path) -> None:
    (folder / "fleet.toml").write_text(text)
    check_file(str(folder / "fleet.toml"), KnownDrivers())


@pytest.mark.parametrize("read", [read_settings, read_agent_config, read_a_scenario, read_a_fleet])
@pytest.mark.parametrize("rubbish", RUBBISH)
def test_invalid_files_are_refused_with_a_reason(
    read: Callable[[str, Path], None], rubbish: str, tmp_path: Path
) -> None:
    text, why = RUBBISH[rubbish]
    with pytest.raises(Invalid, match=why):
        read(text, tmp_path)


def test_valid_files_are_read() -> None:
    text = f"a = [1, -{2**63}, 0.5, true]\n[b.c]\nd = 'e'\nat = 2026-01-05T10:00:00Z"
    parsed = parse_toml(text, name="it")
    assert parsed["a"] == [1, -(2**63), 0.5, True]
    assert parsed["b"]["c"]["d"] == "e"


@pytest.mark.parametrize("value", ["1e400", "nan", f"{2**63 - 1}", r'"a\u0000b"', "[1e400]", "{a = nan}"])
def test_no_value_of_a_setting_causes_a_traceback(value: str, tmp_path: Path) -> None:
    for name in names_of(Settings()):
        table, _, key = name.rpartition(".")
        text = f"[{table}]\n{key} = {value}" if table else f"{key} = {value}"
        with suppress(Invalid):
            read_settings(text, tmp_path)


@pytest.mark.parametrize("value", ["1e400", "-inf", "nan", "[{a = 1e400}]"])
def test_infinite_numbers_are_refused_if_numbers_must_be_finite(value: str) -> None:
    with pytest.raises(
        Invalid, match=r"it cannot be read: a number in it is (inf|-inf|nan), expected a finite"
    ):
        parse_toml(f"a = {value}\n", name="it", finite=True)


def test_finite_numbers_are_read_if_numbers_must_be_finite() -> None:
    assert parse_toml("a = 1.5", name="it", finite=True) == {"a": 1.5}
