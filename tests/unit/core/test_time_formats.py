"""Formatting and parsing of spans of time, the same everywhere."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from forewarn.agent.setup import agent_config
from forewarn.cli.options import Duration
from forewarn.config_reading import load
from forewarn.core.time_formats import (
    format_offset,
    format_span,
    format_span_briefly,
    parse_span,
    span_literal,
)
from forewarn.rehearsal.scenario_file import read_scenario
from forewarn.wire.fleet import read_fleet


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.5, "0.5 s"),
        (60, "1 m"),
        (90, "1 m 30 s"),
        (5400, "1 h 30 m"),
        (86400, "1 d"),
        (7 * 86400, "7 d"),
        (86401, "1 d 1 s"),
        (300.00025, "5 m"),
        (59.5, "59.5 s"),
        (119.7, "2 m"),
        (-1, "-1 s"),
        (1e300, "1e+300 s"),
        (float("inf"), "inf s"),
    ],
)
def test_a_span_is_formatted_in_units(seconds: float, words: str) -> None:
    assert format_span(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.4, "0 s"),
        (59.6, "1 m"),
        (872, "14 m 32 s"),
        (-90, "1 m 30 s"),
        (86460, "1 d"),
        (90061, "1 d 1 h"),
    ],
)
def test_a_brief_span_has_its_two_largest_units(seconds: float, words: str) -> None:
    assert format_span_briefly(seconds) == words


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        (timedelta(days=1, hours=2), "1 d 2 h ahead of"),
        (timedelta(minutes=-5), "5 m behind"),
        (timedelta(), "0 s ahead of"),
    ],
)
def test_an_offset_is_ahead_or_behind(offset: timedelta, words: str) -> None:
    assert format_offset(offset) == words


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (90, 90),
        (0, 0),
        (0.5, 0.5),
        ("90", 90),
        ("1.5", 1.5),
        ("90s", 90),
        ("15m", 900),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("7d", 604800),
        (" 15m ", 900),
    ],
)
def test_a_span_is_a_number_of_seconds_or_has_units(text: str | float, seconds: float) -> None:
    assert parse_span(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", "m", "15 m", "15min", "-5m", "1h 30m", "5M", True, None, [], "15m30", float("nan")]
)
def test_anything_else_is_not_a_span(text: Any) -> None:
    with pytest.raises(ValueError, match=r"expected a time such as|NaN"):
        parse_span(text)


@pytest.mark.parametrize("text", [float("inf"), 1e300, "999999999999d"])
def test_an_endless_span_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="expected a shorter time"):
        parse_span(text)


@pytest.mark.parametrize(("seconds", "text"), [(0, "0s"), (90, "1m30s"), (5400, "1h30m"), (604801, "7d1s")])
def test_every_written_span_can_be_parsed(seconds: float, text: str) -> None:
    assert span_literal(seconds) == text
    assert parse_span(text) == timedelta(seconds=seconds)


def in_fleet_file(text: str) -> float:
    group = {"kind": "scale-set", "policy": {"notice": text}}
    notice = read_fleet({"groups": {"web": group}}).groups[0].policy.notice
    assert notice is not None
    return notice.total_seconds()


def in_settings(text: str) -> float:
    return load(f"[times]\nlinger = '{text}'", {}, {}).times.linger.total_seconds()


def in_agent_config(text: str) -> float:
    file = f"[[handlers]]\nname = 'a'\nkind = 'log'\ntimeout = '{text}'"
    return agent_config.parse(file, environment={}).handlers[0].timeout


def in_scenario(text: str) -> float:
    fleet = {"hosts": {"a": {}}, "machines": [{"name": "m", "host": "a"}]}
    scenario = read_scenario(f"[scenario]\nname = 'a'\nlimit = '{text}'", default_fleet=fleet)
    return scenario.limit.total_seconds()


def in_command(text: str) -> float:
    return Duration().convert(text, None, None)


@pytest.mark.parametrize("place", [in_fleet_file, in_settings, in_agent_config, in_scenario, in_command])
@pytest.mark.parametrize("text", ["5400", "5400.0", "90m", "1h30m", "1.5h", " 1.5h "])
def test_spans_have_one_format_everywhere(place: Callable[[str], float], text: str) -> None:
    assert place(text) == 5400
