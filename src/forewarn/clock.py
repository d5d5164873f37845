"""Service time: the only reader of the time.

Notice, NotBefore, steps and records live in service time, which may run faster than the world or only when
told. It never goes back: every clock starts from the time that the store says was reached.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from forewarn.core.errors import Invalid

# Smaller differences are how time daemons slew a clock; a larger one has taken notice from the guests.
JUMP = timedelta(seconds=60)


class Clock(Protocol):
    """A source of service time."""

    @property
    def kind(self) -> str:
        """Its name, as `--clock` takes it."""
        ...

    @property
    def speed(self) -> float:
        """Seconds of service time for each second of the world; 0 if it only moves when told."""
        ...

    def now(self) -> datetime:
        """Return the present moment, aware and UTC."""
        ...

    def seconds(self) -> float:
        """Return the present moment as seconds since 1970."""
        ...

    def start_from(self, reached: datetime) -> None:
        """Never answer less than this: the store has been there."""
        ...


class SystemClock:
    """The system's time, never going back.

    While the system's clock is behind what was answered before, time goes on by the monotonic clock.
    """

    kind = "system"
    speed = 1.0

    def __init__(self) -> None:
        self._last = 0.0
        self._last_monotonic = time.monotonic()
        self._jump_mark = (time.time(), self._last_monotonic)

    def start_from(self, reached: datetime) -> None:
        """Never answer less than this."""
        self._last = max(self._last, reached.timestamp())

    def seconds(self) -> float:
        """Return the present moment as seconds since 1970."""
        monotonic = time.monotonic()
        wall = time.time()
        self._last = max(wall, self._last + (monotonic - self._last_monotonic if wall < self._last else 0.0))
        self._last_monotonic = monotonic
        return self._last

    def now(self) -> datetime:
        """Return the present moment."""
        return datetime.fromtimestamp(self.seconds(), UTC)

    def jump(self) -> timedelta | None:
        """Say how far the system's time has jumped forward against the monotonic one since last asked."""
        wall, monotonic = time.time(), time.monotonic()
        gained = (wall - self._jump_mark[0]) - (monotonic - self._jump_mark[1])
        self._jump_mark = (wall, monotonic)
        jumped = timedelta(seconds=gained)
        return jumped if jumped > JUMP else None


class ScaledClock:
    """Time that runs N times as fast as the world."""

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self.kind = f"x{speed:g}"
        self._origin = time.time()
        self._monotonic = time.monotonic()

    def start_from(self, reached: datetime) -> None:
        """Go on from the time reached, not from the system's."""
        self._origin, self._monotonic = reached.timestamp(), time.monotonic()

    def seconds(self) -> float:
        """Return the present moment as seconds since 1970."""
        return self._origin + (time.monotonic() - self._monotonic) * self.speed

    def now(self) -> datetime:
        """Return the present moment."""
        return datetime.fromtimestamp(self.seconds(), UTC)


class ManualClock:
    """Time that moves only when told."""

    kind = "manual"
    speed = 0.0

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or datetime.fromtimestamp(time.time(), UTC)
        self._seconds = self._now.timestamp()

    def start_from(self, reached: datetime) -> None:
        """Go on from the time reached."""
        self.set(reached)

    def set(self, now: datetime) -> None:
        """Move to a moment."""
        self._now, self._seconds = now, now.timestamp()

    def seconds(self) -> float:
        """Return the present moment as seconds since 1970."""
        return self._seconds

    def now(self) -> datetime:
        """Return the present moment."""
        return self._now


def monotonic() -> float:
    """Return real monotonic seconds, for rate limits, timeouts and retries."""
    return time.monotonic()


def clock_of(kind: str) -> SystemClock | ScaledClock | ManualClock:
    """Make the clock that `--clock` names: system, manual, or xN."""
    match kind:
        case "system":
            return SystemClock()
        case "manual":
            return ManualClock()
        case _:
            return ScaledClock(_speed(kind))


def _speed(kind: str) -> float:
    try:
        speed = float(kind.removeprefix("x")) if kind.startswith("x") else 0.0
    except ValueError:
        speed = 0.0
    if not 0 < speed <= 1_000_000:
        raise Invalid(f"clock {kind!r}: expected system, manual or xN, as x60 for a minute in each second")
    return speed
