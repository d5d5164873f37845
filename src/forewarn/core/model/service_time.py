"""The kind of time that a store lives in: the system's, or one that was turned."""

from datetime import timedelta
from enum import StrEnum

# How far turned time may be ahead where the system's takes over: guests are told whole minutes of notice.
TOLERANCE = timedelta(seconds=60)


class TimeKind(StrEnum):
    """Whose time it is."""

    SYSTEM = "system"
    TURNED = "turned"  # it ran at a speed of its own, or when it was told to


def kind_of(saved: TimeKind | None, *, ahead: timedelta) -> TimeKind:
    """Return the kind of time that a store lives in, by what it says and how far it is ahead of the system's.

    Older stores do not say it: what is ahead was turned.
    """
    if saved is not None:
        return saved
    return TimeKind.TURNED if ahead > TOLERANCE else TimeKind.SYSTEM


def can_be_the_systems(kind: TimeKind, *, ahead: timedelta) -> bool:
    """Return whether a store can go on in the system's time: not if guests would get times of the future.

    One that has lived in the system's time all along can, however far ahead it is: then the system's clock
    was set back, and time goes on by the monotonic one until that has caught up.
    """
    return kind is TimeKind.SYSTEM or ahead <= TOLERANCE
