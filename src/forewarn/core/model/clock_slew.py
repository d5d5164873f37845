"""Service time beside the system's clock: its kind, its slew, and when guests could not be heard."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

# How far turned time may be ahead where the system's takes over: guests are told whole minutes of notice.
TOLERANCE = timedelta(seconds=60)
# How fast service time goes on while it is ahead of the system's, until the two meet. Slower would bring them
# together sooner, but everything lasts longer meanwhile: at half speed fifteen minutes of notice are thirty.
SLEWING = 0.5
# Further ahead, the system's clock is more likely wrong than service time (without a battery it starts in
# 1970): service time goes on at full speed.
LARGEST_SLEW = timedelta(days=7)


def pace(ahead: timedelta) -> float:
    """Return how fast service time goes on when it is so far ahead of the system's."""
    return SLEWING if timedelta() < ahead <= LARGEST_SLEW else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Slew:
    """Service time that is ahead of the system's, and how the two go on until they meet."""

    at: datetime  # a moment of service time
    system: datetime  # what the system's clock showed then

    @property
    def ahead(self) -> timedelta:
        """How far service time was ahead."""
        return self.at - self.system

    def to_service(self, system: datetime) -> datetime:
        """Return the service time at which the system's clock shows a moment."""
        if system <= self.system:
            return system + self.ahead
        return max(system, self.at + (system - self.system) * pace(self.ahead))

    def to_system(self, service: datetime) -> datetime:
        """Return what the system's clock shows at a moment of service time."""
        if service <= self.at:
            return service - self.ahead
        return min(service, self.system + (service - self.at) / pace(self.ahead))


class TimeKind(StrEnum):
    """Whose time it is."""

    SYSTEM = "system"
    TURNED = "turned"  # it ran at a speed of its own, or when it was told to


def clock_kind(saved: TimeKind | None, *, ahead: timedelta) -> TimeKind:
    """Return the kind of time that a store lives in, by what it says and how far it is ahead of the system's.

    One that was never served does not say it: what is ahead was turned.
    """
    if saved is not None:
        return saved
    return TimeKind.TURNED if ahead > TOLERANCE else TimeKind.SYSTEM


def can_use_system_clock(kind: TimeKind, *, ahead: timedelta) -> bool:
    """Return whether a store can go on in the system's time: not if guests would get times of the future.

    One that has lived in the system's time all along can, however far ahead it is: then the system's clock
    was set back, and time goes on by the monotonic one until that has caught up.
    """
    return kind is TimeKind.SYSTEM or ahead <= TOLERANCE


# A restart takes that long at most. A client that gets no answer for so long, and retries, loses nothing.
BRIEF = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """The service was down or frozen, or its clock jumped: nothing follows from not hearing guests."""

    since: datetime
    until: datetime

    @property
    def brief(self) -> bool:
        """Whether it is too short to matter for silence; it still takes notice from guests."""
        return self.until - self.since <= BRIEF
