"""Service time: where it begins, what happens to it beside its passing, and how operators see and turn it.

The worker alone runs all this, or a start before it.
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

# Less is how a manual clock begins: on the next whole second.
WORTH_TELLING = timedelta(seconds=1)


def begin(clock: Clock, store: Store, *, name: str, system: datetime) -> None:
    """Let a clock go on from the time that a store has reached, and keep in the store which kind it is.

    Conflict if it is the system's clock, and the store's time was turned and is ahead of it.
    """
    with store.read() as snapshot:
        reached, saved, slew = snapshot.time.reached(), snapshot.time.kind(), snapshot.time.slew()
    ahead = timedelta() if reached is None else reached - system
    kind = TimeKind.SYSTEM if isinstance(clock, SystemClock) else TimeKind.TURNED
    if kind is TimeKind.SYSTEM and not can_use_system_clock(clock_kind(saved, ahead=ahead), ahead=ahead):
        raise Conflict(
            f"{name} lives in turned time, {format_offset(ahead)} the system's: "
            "--clock x1 (make run CLOCK=x1) goes on in turned time, "
            "another --database (FOREWARN_DATABASE=…) begins anew"
        )
    if reached is not None:
        # Since then service time was shown that is not saved, if the server was killed.
        shown = slew.to_service(system) if slew is not None and kind is TimeKind.SYSTEM else reached
        clock.start_from(max(reached, shown))
    if abs(clock.offset) >= WORTH_TELLING:
        log.warning("service time is %s the system's (clock %s)", format_offset(clock.offset), clock.kind)
    if saved is not kind:
        Batches(store).transact(lambda tx: tx.time.set_kind(kind))


def standing(store: Store) -> Clock:
    """Return a clock for what is done on a store that is not served: turned time does not go on by itself."""
    system = SystemClock()
    with store.read() as snapshot:
        reached, saved = snapshot.time.reached(), snapshot.time.kind()
    if reached is None:
        return system
    turned = clock_kind(saved, ahead=reached - system.now()) is TimeKind.TURNED
    clock: Clock = ManualClock() if turned else system
    clock.start_from(reached)
    return clock


# How often a clock that runs faster than the world saves where it is, in real seconds.
SAVE_TIME_EVERY = 1.0
# A server that was away for longer than this before its start has taken notice from guests. The store knows
# when a stopped server ended; of one that was killed it knows that to about five seconds.
RESTART = timedelta(seconds=2)
# A server that runs looks every five seconds. If it did not, its process was stopped or its clock jumped.
PAUSE = timedelta(seconds=7)
# Not again for so long, in real seconds: each request looks at the time, and what is ahead lasts much longer.
SAVED_LATELY = 0.25


class TimeWatch:
    """Tells the engine what time has done since the last look. Owner of all its values: the worker."""

    def __init__(self, clock: Clock, engine: Engine, *, present_at: datetime | None) -> None:
        """Take when the service last ran, if it is known."""
        self._clock = self.clock = clock
        self._engine = engine
        self._present_at = present_at or clock.now()
        self._shortest_absence = RESTART
        self._unsaved_absences: list[Absence] = []
        self._jumped = timedelta()  # of the system's clock, as far as it is not saved yet
        self._saved_until: datetime | None = None  # by a clock that runs faster than the world
        self._set_back = clock.offset > JUMP  # whether the system's clock is known to have been

    def look(self) -> datetime:
        """Return the present moment, once all is saved that must be known by then."""
        if isinstance(self._clock, SystemClock):
            self._watch_jumps(self._clock)
            self._watch_presence()
            self._watch_offset(self._clock)
        elif isinstance(self._clock, ScaledClock):
            self._save_ahead(self._clock)
        return self._clock.now()

    def ahead(self) -> timedelta:
        """Return how far service time is ahead of the system's clock; turned time is not measured by it."""
        return self._clock.offset if isinstance(self._clock, SystemClock) else timedelta()

    def _save_ahead(self, clock: ScaledClock) -> None:
        """Save the time ahead of itself, so that it does not go back if this process is killed."""
        ahead = clock.now() + timedelta(seconds=2 * SAVE_TIME_EVERY * clock.speed)
        enough = timedelta(seconds=SAVED_LATELY * clock.speed)
        if self._saved_until is None or ahead - self._saved_until >= enough:
            self._engine.save_time(ahead)
            clock.allow(ahead)
            self._saved_until = ahead

    def _watch_jumps(self, clock: SystemClock) -> None:
        jump = clock.jump()
        if jump is not None:
            log.warning("the system clock jumped forward by %s: unapproved starts wait as long", jump)
            self._jumped += jump
        if self._jumped:
            # A system that wakes up may find its database still away: then this is tried again.
            self._engine.grant_grace(self._jumped, clock.now())
            self._jumped = timedelta()

    def _watch_offset(self, clock: SystemClock) -> None:
        """Log when the system's clock was set back, and when service time has met it."""
        offset = clock.offset
        set_back = offset > JUMP
        if set_back != self._set_back:
            # Windows open at other times of the service now: that must be known before anything is decided.
            self._engine.save_presence(clock.now(), ahead=offset)
        if set_back and not self._set_back:
            log.warning(
                "the system clock was set back: service time is %s it, and %s",
                format_offset(offset),
                _prospect(offset),
            )
        elif self._set_back and not set_back:
            log.info("service time is the system clock's again")
        self._set_back = set_back

    def _watch_presence(self) -> None:
        """Save an absence if the last look is too long ago: the process was away, or time jumped."""
        now = self._clock.now()
        if now - self._present_at > self._shortest_absence:
            self._unsaved_absences.append(Absence(since=self._present_at, until=now))
        self._present_at, self._shortest_absence = now, PAUSE
        while self._unsaved_absences:  # if the database is away, the next look tries again
            self._engine.save_absence(self._unsaved_absences[0])
            self._unsaved_absences.pop(0)


def _prospect(offset: timedelta) -> str:
    if offset > LARGEST_SLEW:
        return (
            f"too far for it to slow down (more than {format_span(LARGEST_SLEW)}): is the system clock right?"
        )
    return (
        f"runs at half speed until they meet in {format_span_briefly(offset.total_seconds() / (1 - SLEWING))}"
    )


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
