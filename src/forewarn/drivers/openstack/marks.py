"""What the driver writes into a server's metadata before it has nova do anything: by that it is recognised.

The same text is the step's mark in forewarn's store. A tenant can change metadata: the store's counts then.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from forewarn.control.driver import DriverTask

KEY = "forewarn:step"  # of the metadata


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
    called_off: bool = False

    def __str__(self) -> str:
        """Write it: less than the 255 characters that nova allows."""
        said = {
            "order": self.order,
            "attempt": f"{self.attempt}",
            "how": f"{self.how}",
            "at": self.at.isoformat(),
            "after": self.after,
            "migration": f"{self.migration}",
            "called-off": "yes" if self.called_off else "",
        }
        return " ".join(f"{key}={value}" for key, value in said.items() if value)

    def is_of(self, task: DriverTask) -> bool:
        """Return whether it is that of an attempt."""
        return self.order == task.order and self.attempt == task.attempt

    def is_later_than(self, task: DriverTask) -> bool:
        """Return whether it is that of a later attempt of the same step."""
        return self.order == task.order and self.attempt > task.attempt


def read(text: str) -> Mark | None:
    """Read a mark; None if it is none, or nobody of ours has written it."""
    said = dict(word.split("=", 1) for word in text.split() if "=" in word)
    try:
        return Mark(
            order=said["order"],
            attempt=int(said["attempt"]),
            how=How(said["how"]),
            at=datetime.fromisoformat(said["at"]),
            after=said.get("after", ""),
            migration=int(said.get("migration", "0")),
            called_off="called-off" in said,
        )
    except (KeyError, ValueError):
        return None
