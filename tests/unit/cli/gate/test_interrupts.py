"""Interrupting signals: the gate raises them where it may stop, and delays them elsewhere."""

import signal
from collections.abc import Iterator

import pytest

from forewarn.cli.gate.interrupts import Interrupts


@pytest.fixture(autouse=True)
def restored_handlers() -> Iterator[None]:
    """Verify that the test restores the signal handlers."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        assert signal.getsignal(number) == handler
        signal.signal(number, handler)


def test_a_signal_in_a_raising_block_is_raised() -> None:
    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt), interrupts.raising():
        signal.raise_signal(signal.SIGTERM)


def test_a_signal_outside_a_raising_block_is_reported_and_raised_later(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGHUP)
        with pytest.raises(KeyboardInterrupt), interrupts.raising():
            pytest.fail("the block was entered")
    assert interrupts.first == signal.SIGHUP
    assert "interrupted" in capfd.readouterr().err


def test_later_signals_are_ignored() -> None:
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt), interrupts.raising():
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert interrupts.first == signal.SIGINT


def test_an_ignored_signal_stays_ignored() -> None:
    handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts, interrupts.raising():
            signal.raise_signal(signal.SIGHUP)
        assert interrupts.first is None
    finally:
        signal.signal(signal.SIGHUP, handler)
