"""How often the guest endpoint reads the clock: once for a burst of requests, if the result is the same."""

from types import SimpleNamespace
from typing import Any

from forewarn.clock import Clock, ScaledClock, SystemClock
from forewarn.guest.answers import TimeCache

START = 1_800_000_000.0
MILLISECOND = 0.001


class Time:
    """Real time that a test sets."""

    def __init__(self) -> None:
        self.passed = 0.0

    def wall(self) -> float:
        return START + self.passed

    def monotonic(self) -> float:
        return self.passed


def cache(clock: Clock) -> TimeCache:
    """Make a cache on a loop whose time does not change."""
    loop: Any = SimpleNamespace(time=lambda: 1.0)
    return TimeCache(loop, clock)


def test_within_a_millisecond_the_system_clock_is_read_once() -> None:
    time = Time()
    times = cache(SystemClock(wall=time.wall, monotonic=time.monotonic))
    time.passed = MILLISECOND
    times.refresh()
    assert times.seconds == START


def test_within_a_millisecond_a_fast_clock_is_read_again() -> None:
    """Otherwise a guest could see an earlier time than an operator saw before."""
    time = Time()
    clock = ScaledClock(3600, wall=time.wall, monotonic=time.monotonic)
    clock.allow(clock.now().replace(year=2100))
    times = cache(clock)
    time.passed = MILLISECOND
    times.refresh()
    assert times.seconds == START + 3600 * MILLISECOND
    assert b"Date: Fri, 15 Jan 2027 08:00:03 GMT" in times.ok
