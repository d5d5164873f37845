"""What nova says of a server, and the mark by which the driver recognises an attempt.

Values are read from nova's answers, and know nothing of how they were asked for. forewarn's store keeps a
mark before nova is asked for anything. A note of it stands in the server's metadata, for people. Tenants
write there too, so it is never read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from itertools import takewhile
from typing import Any

from forewarn.control.driver import DriverTask
from forewarn.wire.codec import Codec

MARK_KEY = "forewarn:step"  # of the metadata
_FOR_STORE = frozenset({"user", "token"})
_MARKS = Codec({datetime: (datetime.isoformat, datetime.fromisoformat)})
# What nova calls a failure in the list of a server's actions, and in its events.
ERROR = "Error"


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


def kept_mark(task: DriverTask) -> Mark | None:
    """Return the mark of an attempt that the store has; None: it has none yet."""
    mark = read_mark(task.mark)
    is_its_own = mark is not None and (mark.order, mark.attempt) == (task.order, task.attempt)
    return mark if is_its_own else None


def read_mark(text: str) -> Mark | None:
    """Read a mark; None if it is none."""
    said = dict(word.split("=", 1) for word in text.split() if "=" in word)
    try:
        return _MARKS.read(Mark, said)
    except (KeyError, ValueError):
        return None


def _words(said: Mapping[str, object]) -> str:
    return " ".join(f"{key}={value}" for key, value in said.items() if value != "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server, as it is now."""

    id: str
    name: str = ""
    status: str  # as people see it: ACTIVE, SHUTOFF, PAUSED, VERIFY_RESIZE, ERROR, …
    task_state: str | None = None  # what nova is doing to it; None: nothing
    host: str | None  # None: none has it
    host_status: str = ""  # of its compute service: UP, DOWN, UNKNOWN, MAINTENANCE
    metadata: Mapping[str, str] = field(default_factory=dict)
    fault: str = ""  # what nova says was wrong with it last

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> "Server":
        """Read it as nova writes it."""
        return cls(
            id=said["id"],
            name=said.get("name", ""),
            status=said["status"],
            task_state=said.get("OS-EXT-STS:task_state"),
            host=said.get("OS-EXT-SRV-ATTR:host"),
            host_status=said.get("host_status", ""),
            metadata=said.get("metadata", {}),
            fault=said.get("fault", {}).get("message", ""),
        )

    @property
    def host_is_down(self) -> bool:
        """Whether nova has not heard of its host."""
        return self.host_status == "DOWN"

    @property
    def idle(self) -> bool:
        """Whether nova is doing nothing to it."""
        return self.task_state is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAction:
    """Something that somebody had nova do to a server."""

    request: str  # the id of the request: actions have no other
    name: str
    user: str | None = None  # who has asked for it, by keystone's id
    started: datetime | None = None
    finished: datetime | None = None  # when the last part of it ended; None: it goes on, or was not looked at
    failed: bool = False
    why: str = ""  # what nova says of that

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> "ServerAction":
        """Read it as nova writes it; with its events it has ended once each of them has."""
        events = said.get("events") or []
        ended = [event["finish_time"] for event in events]
        return cls(
            request=said["request_id"],
            name=said["action"],
            user=said.get("user_id"),
            started=read_time(said["start_time"]) if said.get("start_time") else None,
            finished=max(map(read_time, ended)) if ended and all(ended) else None,
            failed=said.get("message") == ERROR or any(event["result"] == ERROR for event in events),
            why=next((event["details"] for event in events if event.get("details")), ""),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A move of a server."""

    id: int
    type: str  # live-migration, migration, evacuation, resize
    status: str
    dest: str | None  # None: nova has not chosen yet

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> "Migration":
        """Read it as nova writes it."""
        return cls(
            id=said["id"],
            type=said["migration_type"],
            status=said["status"],
            dest=said.get("dest_compute"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """A server, and what was done to it since a mark."""

    server: Server | None  # None: there is none any more
    now: datetime  # by nova's clock
    actions: tuple[ServerAction, ...] = ()  # newest first; those of interest with how they ended
    migrations: tuple[Migration, ...] = ()  # newest first
    progress: float | None = None  # of the last one, if nova says so
    target: str | None = None  # the host that the machine is to go to; None: nova chooses

    def last(self, *names: str) -> ServerAction | None:
        """Return the last action of these names."""
        return next((action for action in self.actions if action.name in names), None)

    def succeeded(self, name: str) -> bool:
        """Return whether such an action has ended well."""
        return any(each.name == name and each.finished and not each.failed for each in self.actions)

    def count(self, name: str) -> int:
        """Return how often an action was asked for."""
        return sum(action.name == name for action in self.actions)

    def migration(self, *types: str) -> Migration | None:
        """Return the last migration of these types."""
        return next((move for move in self.migrations if move.type in types), None)


def actions_since(
    mark: Mark, actions: Iterable[ServerAction], *, user: str | None = None
) -> tuple[ServerAction, ...]:
    """Return the actions after a mark, newest first, as nova lists them.

    Of a user, if there are any, only theirs, and of who has begun the step: what a tenant does to a server
    meanwhile is not what the step has asked for.
    """
    since = takewhile(lambda action: action.request != mark.after, actions)
    return tuple(action for action in since if user is None or action.user in (user, mark.user))


def read_time(text: str) -> datetime:
    """Read a time of nova's, which is UTC and seldom says so."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
