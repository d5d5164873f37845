"""Signals that end a program: heard where it may be ended, held back elsewhere."""

import signal
from collections.abc import Iterator

import pytest

from forewarn.cli.gate.interrupts import Interrupts


@pytest.fixture(autouse=True)
def former() -> Iterator[None]:
    """Leave the handlers of the tests' own program as they were."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in kept.items():
        assert signal.getsignal(number) == handler
        signal.signal(number, handler)


def test_one_that_comes_where_it_is_heeded_is_raised() -> None:
    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt), interrupts.raising():
        signal.raise_signal(signal.SIGTERM)


def test_one_that_comes_elsewhere_is_held_back_and_said(capfd: pytest.CaptureFixture[str]) -> None:
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGHUP)
        with pytest.raises(KeyboardInterrupt), interrupts.raising():
            pytest.fail("what is in the block was begun")
    assert interrupts.first == signal.SIGHUP
    assert "interrupted" in capfd.readouterr().err


def test_any_after_the_first_changes_nothing() -> None:
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt), interrupts.raising():
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert interrupts.first == signal.SIGINT


def test_what_was_to_be_ignored_stays_ignored() -> None:
    handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts, interrupts.raising():
            signal.raise_signal(signal.SIGHUP)
        assert interrupts.first is None
    finally:
        signal.signal(signal.SIGHUP, handler)
