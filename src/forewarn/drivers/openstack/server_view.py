"""The driver's view of a server, from nova's answers, and the mark that identifies an attempt.

forewarn's store saves the mark before the first request to nova. The server's metadata gets a note of it, for
people. The driver never reads the note, because tenants can write metadata too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from itertools import takewhile
from typing import Any

from forewarn.control.driver import DriverTask
from forewarn.wire.codec import Codec

MARK_KEY = "forewarn:step"  # in the metadata
_FOR_STORE = frozenset({"user", "token"})
_MARKS = Codec({datetime: (datetime.isoformat, datetime.fromisoformat)})
# nova's result of a failed action or event.
ERROR = "Error"


class ServerOperation(StrEnum):
    """An operation of nova; the values are stored in marks."""

    LIVE = "live-migration"
    COLD = "migration"
    EVACUATE = "evacuation"
    PAUSE = "pause"
    REBOOT = "reboot"
    STOP = "stop"
    DELETE = "delete"
    START = "start"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerMark:
    """One attempt of a step, and the end of nova's records before it."""

    order: str
    attempt: int
    how: ServerOperation
    at: datetime  # by nova's clock
    after: str = ""  # the request id of the server's last action before the attempt, if any
    migration: int = 0  # the id of its last migration before the attempt, if any
    user: str = ""  # keystone's id of the user that began the attempt; "": no keystone
    token: str = ""  # see attempts.py; "": written by a version without tokens

    def __str__(self) -> str:
        """Write the mark for the store."""
        return _as_text(_MARKS.write(self))

    @property
    def note(self) -> str:
        """The part for people, shorter than nova's limit of 255 characters."""
        return _as_text({key: value for key, value in _MARKS.write(self).items() if key not in _FOR_STORE})


def kept_mark(task: DriverTask) -> ServerMark | None:
    """Return the saved mark of a task's attempt; None if there is none."""
    mark = read_mark(task.mark)
    is_own = mark is not None and (mark.order, mark.attempt) == (task.order, task.attempt)
    return mark if is_own else None


def read_mark(text: str) -> ServerMark | None:
    """Read a mark; return None if the text is no mark."""
    fields = dict(word.split("=", 1) for word in text.split() if "=" in word)
    try:
        return _MARKS.read(ServerMark, fields)
    except (KeyError, ValueError):
        return None


def _as_text(fields: Mapping[str, object]) -> str:
    return " ".join(f"{key}={value}" for key, value in fields.items() if value != "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server in nova."""

    id: str
    name: str = ""
    status: str  # ACTIVE, SHUTOFF, PAUSED, VERIFY_RESIZE, ERROR, …
    task_state: str | None = None  # nova's current task; None: idle
    host: str | None
    host_status: str = ""  # of the compute service: UP, DOWN, UNKNOWN, MAINTENANCE
    metadata: Mapping[str, str] = field(default_factory=dict)
    fault: str = ""  # the message of the last fault

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> "Server":
        """Read nova's JSON."""
        return cls(
            id=fields["id"],
            name=fields.get("name", ""),
            status=fields["status"],
            task_state=fields.get("OS-EXT-STS:task_state"),
            host=fields.get("OS-EXT-SRV-ATTR:host"),
            host_status=fields.get("host_status", ""),
            metadata=fields.get("metadata", {}),
            fault=fields.get("fault", {}).get("message", ""),
        )

    @property
    def host_is_down(self) -> bool:
        """Whether nova considers its host down."""
        return self.host_status == "DOWN"

    @property
    def idle(self) -> bool:
        """Whether nova runs no task on it."""
        return self.task_state is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAction:
    """An action of nova on a server."""

    request: str  # the request id, which identifies the action
    name: str
    user: str | None = None  # keystone's id of the user
    started: datetime | None = None
    finished: datetime | None = None  # when its last event ended; None: in progress, or events were not read
    failed: bool = False
    why: str = ""

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> "ServerAction":
        """Read nova's JSON; an action with events is finished when all events are."""
        events = fields.get("events") or []
        ended = [event["finish_time"] for event in events]
        return cls(
            request=fields["request_id"],
            name=fields["action"],
            user=fields.get("user_id"),
            started=read_time(fields["start_time"]) if fields.get("start_time") else None,
            finished=max(map(read_time, ended)) if ended and all(ended) else None,
            failed=fields.get("message") == ERROR or any(event["result"] == ERROR for event in events),
            why=next((event["details"] for event in events if event.get("details")), ""),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A migration record of a server."""

    id: int
    type: str  # live-migration, migration, evacuation, resize
    status: str
    dest: str | None  # None: not chosen yet

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> "Migration":
        """Read nova's JSON."""
        return cls(
            id=fields["id"],
            type=fields["migration_type"],
            status=fields["status"],
            dest=fields.get("dest_compute"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerView:
    """A server, with its actions and migrations since a mark."""

    server: Server | None  # None: it does not exist any more
    now: datetime  # by nova's clock
    actions: tuple[ServerAction, ...] = ()  # newest first; the step's own with their results
    migrations: tuple[Migration, ...] = ()  # newest first
    progress: float | None = None  # of the last migration, if known
    target: str | None = None  # the host to move to; None: nova chooses

    def last(self, name: str) -> ServerAction | None:
        """Return the last action with a name."""
        return next((action for action in self.actions if action.name == name), None)

    def succeeded(self, name: str) -> bool:
        """Return whether an action with a name has succeeded."""
        return any(each.name == name and each.finished and not each.failed for each in self.actions)

    def count(self, name: str) -> int:
        """Count the actions with a name."""
        return sum(action.name == name for action in self.actions)

    def migration(self, *types: str) -> Migration | None:
        """Return the last migration of these types."""
        return next((move for move in self.migrations if move.type in types), None)

    def migration_status(self, *types: str) -> str | None:
        """Return the status of the last migration of these types."""
        move = self.migration(*types)
        return None if move is None else move.status


def actions_since(
    mark: ServerMark, actions: Iterable[ServerAction], *, user: str | None = None
) -> tuple[ServerAction, ...]:
    """Return the actions after a mark, newest first, as nova lists them.

    With a user, return only the actions of this user and of the mark's user: a tenant may act on the server
    too, and such actions are not part of the step.
    """
    since = takewhile(lambda action: action.request != mark.after, actions)
    return tuple(action for action in since if user is None or action.user in (user, mark.user))


def read_time(text: str) -> datetime:
    """Parse a time of nova, which is UTC and usually has no offset."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
