"""Service time: the only reader of the time.

Notice, NotBefore, steps and records live in service time, which may run faster than the world or only when
turned. It never goes back: every clock starts from the time that the store says was reached.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeAlias

from forewarn.core.errors import Invalid

# Smaller differences are how time daemons slew a clock; a larger one has taken notice from the guests.
JUMP = timedelta(seconds=60)

# A week in less than a second; whatever is faster is a slip of the finger.
FASTEST = 1_000_000

Reader: TypeAlias = Callable[[], float]


class Clock(Protocol):
    """A source of service time."""

    @property
    def kind(self) -> str:
        """Its name, as `--clock` takes it."""
        ...

    @property
    def speed(self) -> float:
        """Seconds of service time for each second of the world; 0 if it is turned by hand."""
        ...

    def now(self) -> datetime:
        """Return the present moment, aware and UTC."""
        ...

    def seconds(self) -> float:
        """Return the present moment as seconds since 1970."""
        ...

    @property
    def offset(self) -> timedelta:
        """How far it is ahead of the system's time; less than nothing if it is behind."""
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

    def __init__(self, *, wall: Reader = time.time, monotonic: Reader = time.monotonic) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._last = 0.0
        self._last_monotonic = monotonic()
        self._mark = (self.seconds(), self._last_monotonic)

    def start_from(self, reached: datetime) -> None:
        """Never answer less than this."""
        self._last = max(self._last, reached.timestamp())
        self._mark = (self._last, self._monotonic())

    def seconds(self) -> float:
        """Return the present moment as seconds since 1970."""
        monotonic = self._monotonic()
        wall = self._wall()
        if wall < self._last:
            # Not less than nothing: another thread may have asked meanwhile.
            wall = self._last + max(0.0, monotonic - self._last_monotonic)
        self._last, self._last_monotonic = wall, monotonic
        return wall

    def now(self) -> datetime:
        """Return the present moment."""
        return datetime.fromtimestamp(self.seconds(), UTC)

    @property
    def offset(self) -> timedelta:
        """How far it is ahead of the system's time, which was set back then."""
        # Not less than nothing: the system's time has gone on between the two looks.
        return _rounded(max(0.0, self.seconds() - self._wall()))

    def jump(self) -> timedelta | None:
        """Return how far time has jumped forward against the monotonic clock since last asked, if it has.

        A system's clock that is put right after having been behind takes nothing from anybody: time has
        gone on meanwhile.
        """
        known, known_monotonic = self._mark
        self._mark = (self.seconds(), self._monotonic())
        gained = (self._mark[0] - known) - (self._mark[1] - known_monotonic)
        jumped = timedelta(seconds=gained)
        return jumped if jumped > JUMP else None


class ScaledClock:
    """Time that runs N times as fast as the world, as far as it has been allowed to.

    Whoever saves the time reached allows it to run that far; it stands still while nothing can be saved, so
    that it does not go back if the process is killed.
    """

    def __init__(self, speed: float, *, wall: Reader = time.time, monotonic: Reader = time.monotonic) -> None:
        self.speed = speed
        self.kind = f"x{speed:g}"
        self._wall = wall
        self._monotonic = monotonic
        self._end = wall()
        self._origin = (self._end, monotonic())

    def start_from(self, reached: datetime) -> None:
        """Go on from the time reached, not from the system's."""
        self._end = reached.timestamp()
        self._origin = (self._end, self._monotonic())

    def allow(self, end: datetime) -> None:
        """Let it run up to a moment; from where it stands, if it had to stop."""
        if self._running() > self._end:
            self._origin = (self._end, self._monotonic())
        self._end = max(self._end, end.timestamp())

    def seconds(self) -> float:
        """Return the present moment as seconds since 1970."""
        return min(self._running(), self._end)

    def now(self) -> datetime:
        """Return the present moment."""
        return datetime.fromtimestamp(self.seconds(), UTC)

    @property
    def offset(self) -> timedelta:
        """How far it is ahead of the system's time."""
        return _rounded(self.seconds() - self._wall())

    def _running(self) -> float:
        begun, monotonic = self._origin
        return begun + (self._monotonic() - monotonic) * self.speed


class ManualClock:
    """Time that moves only when it is turned.

    It starts on a whole second: NotBefore is rounded up to one, and fifteen minutes by hand should reach it.
    """

    kind = "manual"
    speed = 0.0

    def __init__(self, start: datetime | None = None, *, wall: Reader = time.time) -> None:
        self._wall = wall
        self.set(start or _whole_second(datetime.fromtimestamp(wall(), UTC)))

    def start_from(self, reached: datetime) -> None:
        """Go on from the time reached."""
        self.set(_whole_second(reached))

    def set(self, now: datetime) -> None:
        """Move to a moment."""
        self._now, self._seconds = now, now.timestamp()

    def seconds(self) -> float:
        """Return the present moment as seconds since 1970."""
        return self._seconds

    def now(self) -> datetime:
        """Return the present moment."""
        return self._now

    @property
    def offset(self) -> timedelta:
        """How far it is ahead of the system's time."""
        return _rounded(self._seconds - self._wall())


def _rounded(seconds: float) -> timedelta:
    return timedelta(milliseconds=round(seconds * 1000))


def _whole_second(moment: datetime) -> datetime:
    """Round up: time must not go back."""
    whole = moment.replace(microsecond=0)
    return whole if whole == moment else whole + timedelta(seconds=1)


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
    if not 0 < speed <= FASTEST:
        raise Invalid(f"clock {kind!r}: expected system, manual or xN, as x60 for a minute in each second")
    return speed
