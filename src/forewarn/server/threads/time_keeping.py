"""Service time: its start, jumps of the system clock, absences of the server, and the manual clock.

Only the worker runs this code, and the start before the worker runs.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from forewarn.clock import JUMP, Clock, ManualClock, ScaledClock, SystemClock
from forewarn.control.engine.engine import Engine
from forewarn.control.fleet.declarations import FleetCommands
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.model.clock_slew import (
    LARGEST_SLEW,
    SLEWING,
    Absence,
    TimeKind,
    can_use_system_clock,
    clock_kind,
)
from forewarn.core.time_formats import format_offset, format_span, format_span_briefly
from forewarn.server.threads.batches import Batches
from forewarn.store.batch import Transact, Transaction
from forewarn.store.store import Store

log = logging.getLogger(__name__)

# Smaller offsets are not logged: a manual clock starts on the next whole second.
WORTH_LOGGING = timedelta(seconds=1)


def begin(clock: Clock, store: Store, *, name: str, system: datetime) -> None:
    """Continue service time from the time that the store has reached, and save the kind of the clock.

    Raise Conflict for the system clock if the store has simulated time that is ahead of it.
    """
    with store.read() as snapshot:
        reached, saved, slew = snapshot.time.reached(), snapshot.time.kind(), snapshot.time.slew()
    ahead = timedelta() if reached is None else reached - system
    kind = TimeKind.SYSTEM if isinstance(clock, SystemClock) else TimeKind.TURNED
    if kind is TimeKind.SYSTEM and not can_use_system_clock(clock_kind(saved, ahead=ahead), ahead=ahead):
        raise Conflict(
            f"{name} uses simulated time, {format_offset(ahead)} the system clock: "
            "restart with --clock x1 (make run CLOCK=x1) to continue in simulated time, "
            "or use another --database (FOREWARN_DATABASE=…)"
        )
    if reached is not None:
        # A server that was killed may have shown later times than it saved.
        shown = slew.to_service(system) if slew is not None and kind is TimeKind.SYSTEM else reached
        clock.start_from(max(reached, shown))
    if abs(clock.offset) >= WORTH_LOGGING:
        log.warning("service time is %s the system clock (clock %s)", format_offset(clock.offset), clock.kind)
    if saved is not kind:
        Batches(store).transact(lambda tx: tx.time.set_kind(kind))


def standing(store: Store) -> Clock:
    """Return a clock for a command that works on the store: simulated time stands still meanwhile."""
    system = SystemClock()
    with store.read() as snapshot:
        reached, saved = snapshot.time.reached(), snapshot.time.kind()
    if reached is None:
        return system
    turned = clock_kind(saved, ahead=reached - system.now()) is TimeKind.TURNED
    clock: Clock = ManualClock() if turned else system
    clock.start_from(reached)
    return clock


# How often a scaled clock saves its time, in real seconds.
SAVE_TIME_EVERY = 1.0
# A longer absence before a start has shortened the notice of guests. The store has the exact time at which a
# server was stopped; for a server that was killed, it is accurate to about five seconds.
RESTART = timedelta(seconds=2)
# A running server looks at the clock every five seconds. If not, the process was paused or the clock jumped.
PAUSE = timedelta(seconds=7)
# The shortest pause between two saves, in real seconds: every request looks at the time, and the saved time
# is much further ahead.
SAVED_LATELY = 0.25


class TimeWatch:
    """Reports jumps of the clock and absences to the engine. Owner of all its values: the worker."""

    def __init__(self, clock: Clock, engine: Engine, *, present_at: datetime | None) -> None:
        """Take the time at which a server last ran, if it is known."""
        self.clock = clock
        self._engine = engine
        self._present_at = present_at or clock.now()
        self._shortest_absence = RESTART
        self._unsaved_absences: list[Absence] = []
        self._jumped = timedelta()  # the part of the system clock's jumps that is not saved yet
        self._saved_until: datetime | None = None  # by a scaled clock
        self._set_back = clock.offset > JUMP  # whether the system clock is known to be behind

    def look(self) -> datetime:
        """Save what has happened to the clock; return the current time."""
        if isinstance(self.clock, SystemClock):
            self._watch_jumps(self.clock)
            self._watch_presence()
            self._watch_offset(self.clock)
        elif isinstance(self.clock, ScaledClock):
            self._save_ahead(self.clock)
        return self.clock.now()

    def ahead(self) -> timedelta:
        """Return how far service time is ahead of the system clock; zero for simulated clocks."""
        return self.clock.offset if isinstance(self.clock, SystemClock) else timedelta()

    def _save_ahead(self, clock: ScaledClock) -> None:
        """Save a future time, so that service time does not go back if this process is killed."""
        ahead = clock.now() + timedelta(seconds=2 * SAVE_TIME_EVERY * clock.speed)
        enough = timedelta(seconds=SAVED_LATELY * clock.speed)
        if self._saved_until is None or ahead - self._saved_until >= enough:
            self._engine.save_time(ahead)
            clock.allow(ahead)
            self._saved_until = ahead

    def _watch_jumps(self, clock: SystemClock) -> None:
        jump = clock.jump()
        if jump is not None:
            log.warning(
                "the system clock jumped forward by %s: unapproved starts are delayed by as much", jump
            )
            self._jumped += jump
        if self._jumped:
            # If the database is away after a suspend, this raises and the next look tries again.
            self._engine.grant_grace(self._jumped, clock.now())
            self._jumped = timedelta()

    def _watch_offset(self, clock: SystemClock) -> None:
        """Log when the system clock was set back, and when it has caught up with service time."""
        offset = clock.offset
        set_back = offset > JUMP
        if set_back != self._set_back:
            # The offset moves maintenance windows in service time, so save it before any decision.
            self._engine.save_presence(clock.now(), ahead=offset)
        if set_back and not self._set_back:
            log.warning(
                "the system clock was set back: service time is %s it, and %s",
                format_offset(offset),
                _catch_up_forecast(offset),
            )
        elif self._set_back and not set_back:
            log.info("service time equals the system clock again")
        self._set_back = set_back

    def _watch_presence(self) -> None:
        """Save an absence if the last look was too long ago: the process was paused, or time jumped."""
        now = self.clock.now()
        if now - self._present_at > self._shortest_absence:
            self._unsaved_absences.append(Absence(since=self._present_at, until=now))
        self._present_at, self._shortest_absence = now, PAUSE
        while self._unsaved_absences:  # if the database is away, this raises and the next look tries again
            self._engine.save_absence(self._unsaved_absences[0])
            self._unsaved_absences.pop(0)


def _catch_up_forecast(offset: timedelta) -> str:
    if offset > LARGEST_SLEW:
        return f"that is too far to slow down (more than {format_span(LARGEST_SLEW)}): check the system clock"
    left = format_span_briefly(offset.total_seconds() / (1 - SLEWING))
    return f"runs at half speed until they are equal in {left}"


# A longer advance is more likely a typing error.
LONGEST_ADVANCE = timedelta(days=400)


class Timekeeper:
    """Reads the clock, and advances a manual clock."""

    def __init__(
        self, clock: Clock, engine: Engine, fleet: FleetCommands, *, moved: Callable[[], None] = lambda: None
    ) -> None:
        """Take `moved`, which is called after each advance."""
        self._clock = clock
        self._engine = engine
        self._fleet = fleet
        self._moved = moved

    @property
    def kind(self) -> str:
        """The kind of the clock, in the format of `--clock`."""
        return self._clock.kind

    @property
    def speed(self) -> float:
        """Seconds of service time in each real second."""
        return self._clock.speed

    @property
    def offset(self) -> timedelta:
        """How far service time is ahead of the system clock."""
        return self._clock.offset

    def now(self) -> datetime:
        """Return the current service time."""
        return self._clock.now()

    def advance(self, transact: Transact, seconds: float, *, by: str) -> None:
        """Advance the clock, and do the work that becomes due."""
        self.run_to(transact(lambda tx: self.begin_advance(tx, seconds, by=by)))

    def begin_advance(self, tx: Transaction, seconds: float, *, by: str) -> datetime:
        """Record an advance and return its target for `run_to`."""
        if not isinstance(self._clock, ManualClock):
            raise Conflict(
                f"the clock is {self._clock.kind}: only a manual clock can be advanced (--clock manual)"
            )
        if seconds < 0:
            raise Invalid(f"seconds: the clock cannot go back, got {seconds:g} s")
        if not 0 <= seconds <= LONGEST_ADVANCE.total_seconds():
            most = format_span(LONGEST_ADVANCE)
            raise Invalid(f"seconds: expected at most {most}, got {format_span(seconds)}")
        now, span = self._clock.now(), timedelta(seconds=seconds)
        if span:
            self._fleet.clock_advanced(tx, span, by=by)
        return now + span

    def run_to(self, target: datetime) -> None:
        """Advance the clock to a target and do the work that becomes due; do nothing if it is in the past."""
        now = self._clock.now()
        if isinstance(self._clock, ManualClock) and now <= target:
            self._engine.run_until(target, now, reach=self._clock.set)
            self._moved()
