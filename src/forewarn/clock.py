"""The clocks of service time. No other module reads the time.

Notice, NotBefore, steps and records use service time. It may run faster than real time, or move only by hand.
It never goes back: every clock starts from the time that the store has reached.
"""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeAlias

from forewarn.core.errors import Invalid
from forewarn.core.model.clock_slew import pace

# Time daemons slew smaller differences. A larger jump has shortened the notice of guests.
JUMP = timedelta(seconds=60)

# A week in less than a second; a higher speed is probably a typing error.
FASTEST = 1_000_000

Reader: TypeAlias = Callable[[], float]


class Clock(Protocol):
    """A source of service time."""

    @property
    def kind(self) -> str:
        """The kind of the clock, in the format of `--clock`."""
        ...

    @property
    def speed(self) -> float:
        """Seconds of service time in each real second; 0 for a manual clock."""
        ...

    def now(self) -> datetime:
        """Return the current time, aware and UTC."""
        ...

    def seconds(self) -> float:
        """Return the current time as seconds since 1970."""
        ...

    @property
    def offset(self) -> timedelta:
        """How far the clock is ahead of the system clock; negative if it is behind."""
        ...

    def start_from(self, reached: datetime) -> None:
        """Never return an earlier time than this, which the store has reached."""
        ...


class _BaseClock:
    _wall: Reader

    def seconds(self) -> float:
        """Return the current time as seconds since 1970."""
        raise NotImplementedError

    def now(self) -> datetime:
        """Return the current time."""
        return datetime.fromtimestamp(self.seconds(), UTC)

    @property
    def offset(self) -> timedelta:
        """How far the clock is ahead of the system clock."""
        return timedelta(milliseconds=round((self.seconds() - self._wall()) * 1000))


class SystemClock(_BaseClock):
    """The system's time, but never going back.

    If the system clock is set back, service time runs at half speed until both are equal again.
    """

    kind = "system"

    def __init__(self, *, wall: Reader = time.time, monotonic: Reader = time.monotonic) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._lock = threading.Lock()  # any thread may read the time
        self._last = 0.0  # lock: self._lock
        self._last_monotonic = monotonic()  # lock: self._lock
        self._ahead = 0.0  # seconds ahead of the system clock; lock: self._lock
        self._mark = self._read()  # owner: the worker

    def start_from(self, reached: datetime) -> None:
        """Never return an earlier time than this."""
        with self._lock:
            self._last = max(self._last, reached.timestamp())
            self._last_monotonic = self._monotonic()
        self._mark = self._read()

    @property
    def speed(self) -> float:
        """Seconds of service time in each real second: less than 1 while it is ahead of the system clock."""
        self.seconds()
        return pace(timedelta(seconds=self._ahead))

    def seconds(self) -> float:
        """Return the current time as seconds since 1970."""
        return self._read()[0]

    def _read(self) -> tuple[float, float]:
        """Return service time and monotonic time of the same moment."""
        with self._lock:
            monotonic, wall = self._monotonic(), self._wall()
            passed = monotonic - self._last_monotonic
            self._last = max(wall, self._last + passed * pace(timedelta(seconds=self._last + passed - wall)))
            self._last_monotonic = monotonic
            self._ahead = self._last - wall
            return self._last, monotonic

    @property
    def offset(self) -> timedelta:
        """How far the clock is ahead of the system clock, which was set back in that case."""
        self.seconds()
        return timedelta(milliseconds=round(self._ahead * 1000))

    def jump(self) -> timedelta | None:
        """Return how far time has jumped forward since the last call, compared with monotonic time."""
        known, known_monotonic = self._mark
        self._mark = self._read()
        gained = (self._mark[0] - known) - (self._mark[1] - known_monotonic)
        jumped = timedelta(seconds=gained)
        return jumped if jumped > JUMP else None


class ScaledClock(_BaseClock):
    """Time that runs N times as fast as real time, up to the allowed end.

    The worker saves a future time and then allows the clock to run until then. While nothing can be saved the
    clock stands still, so that service time does not go back if the process is killed.
    """

    def __init__(self, speed: float, *, wall: Reader = time.time, monotonic: Reader = time.monotonic) -> None:
        self.speed = speed
        self.kind = f"x{speed:g}"
        self._wall = wall
        self._monotonic = monotonic
        # The start of the run, its monotonic time, and the allowed end; owner: the worker. It is one value,
        # because a reader with a new end and an old start would see time go back.
        self._run = (wall(), monotonic(), wall())

    def start_from(self, reached: datetime) -> None:
        """Continue from this time instead of the system's."""
        begun = reached.timestamp()
        self._run = (begun, self._monotonic(), begun)

    def allow(self, end: datetime) -> None:
        """Let the clock run until this time; if it has stopped, it continues from where it stands."""
        begun, at, known_end = self._run
        now = self._monotonic()
        if begun + (now - at) * self.speed > known_end:
            begun, at = known_end, now
        self._run = (begun, at, max(known_end, end.timestamp()))

    def seconds(self) -> float:
        """Return the current time as seconds since 1970."""
        begun, at, end = self._run
        return min(begun + (self._monotonic() - at) * self.speed, end)


class ManualClock(_BaseClock):
    """Time that moves only when an operator advances it.

    It starts on a whole second, so that an advance of 15 minutes reaches a NotBefore, which is rounded up.
    """

    kind = "manual"
    speed = 0.0

    def __init__(self, start: datetime | None = None, *, wall: Reader = time.time) -> None:
        self._wall = wall
        # Owner of both values: the worker, or the start before it. A reader reads only one of them.
        self.set(start or _whole_second(datetime.fromtimestamp(wall(), UTC)))

    def start_from(self, reached: datetime) -> None:
        """Continue from this time."""
        self.set(_whole_second(reached))

    def set(self, now: datetime) -> None:
        """Set the current time."""
        self._now, self._seconds = now, now.timestamp()

    def seconds(self) -> float:
        """Return the current time as seconds since 1970."""
        return self._seconds

    def now(self) -> datetime:
        """Return the current time."""
        return self._now


def _whole_second(moment: datetime) -> datetime:
    """Round up, because time must not go back."""
    whole = moment.replace(microsecond=0)
    return whole if whole == moment else whole + timedelta(seconds=1)


def monotonic() -> float:
    """Return monotonic real time in seconds, for rate limits, timeouts and retries."""
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
        raise Invalid(
            f"clock {kind!r}: expected system, manual or xN, where x60 runs a minute in each second"
        )
    return speed
