"""Service time: the only reader of the time.

Notice, NotBefore, steps and records live in service time, which may run faster than the world or only when
turned. It never goes back: every clock starts from the time that the store says was reached.
"""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeAlias

from forewarn.core.errors import Invalid
from forewarn.core.model.clock_slew import pace

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

    If the system's clock is set back, service time goes on at half speed until the two meet.
    """

    kind = "system"

    def __init__(self, *, wall: Reader = time.time, monotonic: Reader = time.monotonic) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._lock = threading.Lock()  # for the three below: any thread may read the time
        self._last = 0.0
        self._last_monotonic = monotonic()
        self._ahead = 0.0  # of the system's time, in seconds
        self._mark = self._look()  # the worker's

    def start_from(self, reached: datetime) -> None:
        """Never answer less than this."""
        with self._lock:
            self._last = max(self._last, reached.timestamp())
            self._last_monotonic = self._monotonic()
        self._mark = self._look()

    @property
    def speed(self) -> float:
        """Seconds of service time for each second of the world: less than 1 until the two times meet."""
        self.seconds()
        return pace(timedelta(seconds=self._ahead))

    def seconds(self) -> float:
        """Return the present moment as seconds since 1970."""
        return self._look()[0]

    def _look(self) -> tuple[float, float]:
        """Return service time and monotonic time of one moment."""
        with self._lock:
            monotonic, wall = self._monotonic(), self._wall()
            passed = monotonic - self._last_monotonic
            self._last = max(wall, self._last + passed * pace(timedelta(seconds=self._last + passed - wall)))
            self._last_monotonic = monotonic
            self._ahead = self._last - wall
            return self._last, monotonic

    def now(self) -> datetime:
        """Return the present moment."""
        return datetime.fromtimestamp(self.seconds(), UTC)

    @property
    def offset(self) -> timedelta:
        """How far it is ahead of the system's time, which was set back then."""
        self.seconds()
        return _rounded(self._ahead)

    def jump(self) -> timedelta | None:
        """Return how far time has jumped forward against the monotonic clock since last asked, if it has."""
        known, known_monotonic = self._mark
        self._mark = self._look()
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
