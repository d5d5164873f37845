"""How the command writes the fields of an answer."""

import pytest

from forewarn.cli import terminal


def test_times_in_sentences_are_written_as_everywhere() -> None:
    said = terminal.readable("guests are notified at 2026-01-05T12:00:00Z")
    assert said == "guests are notified at 2026-01-05 12:00:00 UTC"


def test_amounts_are_written_as_people_do(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.details([("resources", {"memory": 16.0, "vcpus": 0.5}), ("labels", {"rack": "a"})])
    shown = capsys.readouterr().out
    assert "memory=16, vcpus=0.5" in shown
    assert "rack=a" in shown
