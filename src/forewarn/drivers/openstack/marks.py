"""What the driver recognises an attempt by: forewarn's store keeps it, before nova is asked for anything.

A note of it stands in the server's metadata, for people. Tenants write there too, so it is never read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from forewarn.control.driver import DriverTask
from forewarn.wire.codec import Codec

KEY = "forewarn:step"  # of the metadata
_FOR_STORE = frozenset({"user", "token"})
_MARKS = Codec({datetime: (datetime.isoformat, datetime.fromisoformat)})


class How(StrEnum):
    """What nova is asked to do."""

    LIVE = "live-migration"
    COLD = "migration"
    EVACUATE = "evacuation"
    PAUSE = "pause"
    REBOOT = "reboot"
    STOP = "stop"
    DELETE = "delete"
    START = "start"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One attempt of a step, and where nova's own records ended before it."""

    order: str
    attempt: int
    how: How
    at: datetime  # by nova's clock
    after: str = ""  # the request id of the server's last action before; "": it had none
    migration: int = 0  # the number of its last migration before; 0: it had none
    user: str = ""  # who has begun it, by keystone's id; "": there is no keystone
    token: str = ""  # by which it may be sent; "": of a version that had none

    def __str__(self) -> str:
        """Write it for the store."""
        return _words(_MARKS.write(self))

    @property
    def note(self) -> str:
        """As much of it as people need: less than the 255 characters that nova allows."""
        return _words({key: value for key, value in _MARKS.write(self).items() if key not in _FOR_STORE})


def kept(task: DriverTask) -> Mark | None:
    """Return the mark of an attempt that the store has; None: it has none yet."""
    mark = read(task.mark)
    is_its_own = mark is not None and (mark.order, mark.attempt) == (task.order, task.attempt)
    return mark if is_its_own else None


def read(text: str) -> Mark | None:
    """Read a mark; None if it is none."""
    said = dict(word.split("=", 1) for word in text.split() if "=" in word)
    try:
        return _MARKS.read(Mark, said)
    except (KeyError, ValueError):
        return None


def _words(said: Mapping[str, object]) -> str:
    return " ".join(f"{key}={value}" for key, value in said.items() if value != "")
