"""Service time as operators see and turn it."""

from collections.abc import Callable
from datetime import datetime, timedelta

from forewarn.clock import Clock, ManualClock
from forewarn.control.engine.engine import Engine
from forewarn.control.fleet.declaring import FleetCommands
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.moments import format_span
from forewarn.store.batch import Transact, Transaction

# A longer way is more likely a slip of the finger than a wish.
LONGEST_ADVANCE = timedelta(days=400)


class Timekeeper:
    """Reads the clock and, if it is a manual one, turns it."""

    def __init__(
        self, clock: Clock, engine: Engine, fleet: FleetCommands, *, moved: Callable[[], None] = lambda: None
    ) -> None:
        """Take what to call when the clock has been turned."""
        self._clock = clock
        self._engine = engine
        self._fleet = fleet
        self._moved = moved

    @property
    def kind(self) -> str:
        """The clock's name, as `--clock` takes it."""
        return self._clock.kind

    @property
    def speed(self) -> float:
        """Seconds of service time for each second of the world."""
        return self._clock.speed

    @property
    def offset(self) -> timedelta:
        """How far service time is ahead of the system's."""
        return self._clock.offset

    def now(self) -> datetime:
        """Return the present moment."""
        return self._clock.now()

    def advance(self, transact: Transact, seconds: float, *, by: str) -> None:
        """Turn the clock, and do all that falls due on the way."""
        self.run_to(transact(lambda tx: self.begin_advance(tx, seconds, by=by)))

    def begin_advance(self, tx: Transaction, seconds: float, *, by: str) -> datetime:
        """Record that the clock is turned, and return to where: `run_to` turns it."""
        if not isinstance(self._clock, ManualClock):
            raise Conflict(
                f"the clock is {self._clock.kind}: only a manual one can be advanced (--clock manual)"
            )
        if seconds < 0:
            raise Invalid(f"seconds: a clock is never turned back, got {seconds:g} s")
        if not 0 <= seconds <= LONGEST_ADVANCE.total_seconds():
            most = format_span(LONGEST_ADVANCE)
            raise Invalid(f"seconds: expected at most {most}, got {format_span(seconds)}")
        now, way = self._clock.now(), timedelta(seconds=seconds)
        if way:
            self._fleet.clock_advanced(tx, way, by=by)
        return now + way

    def run_to(self, target: datetime) -> None:
        """Turn the clock and do all that falls due; nothing if it has been there."""
        now = self._clock.now()
        if isinstance(self._clock, ManualClock) and now <= target:
            self._engine.run_until(target, now, reach=self._clock.set)
            self._moved()
