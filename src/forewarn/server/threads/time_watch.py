"""What happens to service time beside its passing: the system's clock jumps, this process is absent."""

import logging
from datetime import datetime, timedelta

from forewarn.clock import JUMP, Clock, ScaledClock, SystemClock
from forewarn.control.engine.engine import Engine
from forewarn.core.model.clock_slew import LARGEST_SLEW, SLEWING, Absence
from forewarn.core.moments import format_offset, format_span, format_span_briefly

log = logging.getLogger(__name__)

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
    """Tells the engine what time has done since the last look."""

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
            self._engine.keep_time(ahead)
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
            self._engine.prove_present(clock.now(), ahead=offset)
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
            self._engine.note_absence(self._unsaved_absences[0])
            self._unsaved_absences.pop(0)


def _prospect(offset: timedelta) -> str:
    if offset > LARGEST_SLEW:
        return (
            f"too far for it to slow down (more than {format_span(LARGEST_SLEW)}): is the system clock right?"
        )
    return (
        f"runs at half speed until they meet in {format_span_briefly(offset.total_seconds() / (1 - SLEWING))}"
    )
