"""What the driver recognises an attempt by: forewarn's store keeps it, before nova is asked for anything.

A note of it stands in the server's metadata, for people. Tenants write there too, so it is never read.
"""

from collections.abc import Mapping
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
    user: str = ""  # who has begun it, by keystone's id; "": there is no keystone
    token: str = ""  # by which it may be sent; "": of a version that had none

    def __str__(self) -> str:
        """Write it for the store."""
        return " ".join((self.note, *_words({"user": self.user, "token": self.token})))

    @property
    def note(self) -> str:
        """As much of it as people need: less than the 255 characters that nova allows."""
        said = {
            "order": self.order,
            "attempt": f"{self.attempt}",
            "how": f"{self.how}",
            "at": self.at.isoformat(),
            "after": self.after,
            "migration": f"{self.migration}",
        }
        return " ".join(_words(said))


def kept(task: DriverTask) -> Mark | None:
    """Return the mark of an attempt that the store has; None: it has none yet."""
    mark = read(task.mark)
    is_its_own = mark is not None and (mark.order, mark.attempt) == (task.order, task.attempt)
    return mark if is_its_own else None


def read(text: str) -> Mark | None:
    """Read a mark; None if it is none."""
    said = dict(word.split("=", 1) for word in text.split() if "=" in word)
    try:
        return Mark(
            order=said["order"],
            attempt=int(said["attempt"]),
            how=How(said["how"]),
            at=datetime.fromisoformat(said["at"]),
            after=said.get("after", ""),
            migration=int(said.get("migration", "0")),
            user=said.get("user", ""),
            token=said.get("token", ""),
        )
    except (KeyError, ValueError):
        return None


def _words(said: Mapping[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in said.items() if value]
