"""The format of the fields of an answer."""

import pytest

from forewarn.cli import terminal


def test_times_in_sentences_have_the_usual_format() -> None:
    text = terminal.readable("guests are notified at 2026-01-05T12:00:00Z")
    assert text == "guests are notified at 2026-01-05 12:00:00 UTC"


def test_amounts_have_no_unnecessary_decimals(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.details([("resources", {"memory": 16.0, "vcpus": 0.5}), ("labels", {"rack": "a"})])
    shown = capsys.readouterr().out
    assert "memory=16, vcpus=0.5" in shown
    assert "rack=a" in shown
