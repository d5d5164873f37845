"""The service clock compared with the system clock: its kind, its slew, and absences of the server."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

# How far an advanced clock may be ahead when the system clock takes over: guests see whole minutes of notice.
TOLERANCE = timedelta(seconds=60)
# The speed of service time while it is ahead of the system clock, until the two meet. A lower speed would end
# the slew sooner, but it stretches everything: at half speed, fifteen minutes of notice take thirty.
SLEWING = 0.5
# Further ahead, the system clock is more likely wrong than service time (without a battery it starts in
# 1970), so service time runs at full speed.
LARGEST_SLEW = timedelta(days=7)


def pace(ahead: timedelta) -> float:
    """Return the speed of service time if it is this far ahead of the system clock."""
    return SLEWING if timedelta() < ahead <= LARGEST_SLEW else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Slew:
    """The relation between service time and the system clock while service time is ahead."""

    at: datetime  # in service time
    system: datetime  # the system clock at the same moment

    @property
    def ahead(self) -> timedelta:
        """How far service time was ahead."""
        return self.at - self.system

    def to_service(self, system: datetime) -> datetime:
        """Convert a time of the system clock to service time."""
        if system <= self.system:
            return system + self.ahead
        return max(system, self.at + (system - self.system) * pace(self.ahead))

    def to_system(self, service: datetime) -> datetime:
        """Convert service time to a time of the system clock."""
        if service <= self.at:
            return service - self.ahead
        return min(service, self.system + (service - self.at) / pace(self.ahead))


class TimeKind(StrEnum):
    """The clock that a store was served with."""

    SYSTEM = "system"
    TURNED = "turned"  # a clock with its own speed, or one that a person advanced


def clock_kind(saved: TimeKind | None, *, ahead: timedelta) -> TimeKind:
    """Return the clock that a store was served with.

    A store that was never served has none; if it is ahead of the system clock, a person advanced it.
    """
    if saved is not None:
        return saved
    return TimeKind.TURNED if ahead > TOLERANCE else TimeKind.SYSTEM


def can_use_system_clock(kind: TimeKind, *, ahead: timedelta) -> bool:
    """Whether a store can switch to the system clock without showing guests times in the future.

    A store that always used the system clock can, however far ahead it is. In that case the system clock was
    set back, and service time follows the monotonic clock until the system clock has caught up.
    """
    return kind is TimeKind.SYSTEM or ahead <= TOLERANCE


# A restart takes at most this long. A client that gets no answer for this long and retries loses nothing.
BRIEF = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A time in which the server was down or frozen, or its clock jumped, so it received no polls."""

    since: datetime
    until: datetime

    @property
    def brief(self) -> bool:
        """Whether it is too short to count for idle groups; it still reduces the notice of events."""
        return self.until - self.since <= BRIEF
