"""The groups and machines of the board, their rate limits, and the requests that wait."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf

from forewarn.core.basic_types import GroupKind, GroupName, MachineId
from forewarn.core.guests.document import GroupDocument, document
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine
from forewarn.guest.board.rehearsal_state import RehearsalState
from forewarn.wire.azure import VERSIONS

# Compensates rounding errors, which would otherwise refuse the last token of a burst.
ROUNDING = 1e-9


class Allowance:
    """The usage of a machine, or of all unknown callers together, that limits apply to."""

    __slots__ = ("connections", "due", "held")

    def __init__(self) -> None:
        self.connections = 0
        self.held = 0
        self.due = 0.0  # the real time at which the token bucket is full again


class Rate:
    """A rate limit: a token bucket that allows a burst of two seconds.

    The bucket is full again at `due`. Each request moves `due` by one interval, if it is at most one burst
    ahead of now. Without a limit the interval is zero.
    """

    __slots__ = ("interval", "slack")

    def __init__(self, per_second: float) -> None:
        burst = max(1.0, 2 * per_second)
        self.interval = 1 / per_second if per_second > 0 else 0.0
        self.slack = (burst - 1) * self.interval + ROUNDING

    def admit(self, budget: Allowance, now: float) -> bool:
        """Take a token; return False if there is none."""
        due = max(budget.due, now)
        if due - now > self.slack:
            return False
        budget.due = due + self.interval
        return True


NO_RESTS: tuple[None, ...] = (None,) * len(VERSIONS)
# The document of all new groups.
NOTHING_YET = GroupDocument(incarnation=1, kind=GroupKind.STANDALONE, born=0, events=())
# The `news` of a document without events; incarnations begin with 1.
NO_NEWS = 0


class BoardGroup:
    """A group: its document, and when its guests are answered."""

    __slots__ = ("_named", "document", "etag", "name", "news", "ready", "rests", "unmodified")

    def __init__(self, name: GroupName) -> None:
        self.name = name
        self.ready = inf  # the service time from which polls are answered; inf while not enabled
        self.document = NOTHING_YET
        self.etag = b""
        self.unmodified = b""  # a 304 without the common headers
        self.rests: tuple[bytes | None, ...] = NO_RESTS  # answers by version, without the common headers
        self.news = NO_NEWS  # identifies the current events
        self._named: dict[MachineId, list[Event]] | None = None

    @property
    def enabled(self) -> bool:
        """Whether notice is enabled."""
        return self.ready != inf

    def update(self, group: Group, events: Iterable[Event]) -> None:
        """Set the state of the group; drop prepared answers if the document has changed."""
        self.ready = _ready(group)
        shown = document(group, events)
        if shown != self.document:
            self.document = shown
            self.etag = self.unmodified = b""
            self.rests = NO_RESTS
            self.news = shown.incarnation if shown.events else NO_NEWS
            self._named = None

    def merged(self, changed: Iterable[Event]) -> Iterable[Event]:
        """Return the listed events with these changes."""
        known = {event.id: event for event in self.document.events}
        return (known | {event.id: event for event in changed}).values()

    def keep(self, changed: Iterable[Event]) -> None:
        """Store changed events whose changes guests cannot see."""
        listed = tuple(event for event in self.merged(changed) if event.listed)
        self.document = replace(self.document, events=listed)
        self._named = None

    def naming(self, machine: MachineId) -> Sequence[Event]:
        """List the events that name a machine."""
        if self._named is None:
            self._named = {}
            for event in self.document.events:
                for resource in event.resources:
                    self._named.setdefault(resource.machine, []).append(event)
        return self._named.get(machine, ())


class BoardMachine(Allowance):
    """A machine: its group, its rehearsal, and the events that it was sent."""

    __slots__ = ("group", "last_sent", "machine", "rehearsal")

    def __init__(self, machine: Machine, group: BoardGroup) -> None:
        super().__init__()
        self.machine = machine
        self.group = group
        self.last_sent = NO_NEWS  # the `news` of its group when it was last sent events
        self.rehearsal: RehearsalState | None = None


class Waiters:
    """The requests that wait, by group. A request that is woken checks its condition and may wait again."""

    def __init__(self) -> None:
        self._waiters: dict[GroupName, dict[asyncio.Future[None], BoardMachine]] = {}

    def __len__(self) -> int:
        return sum(len(waiters) for waiters in self._waiters.values())

    def __bool__(self) -> bool:
        return bool(self._waiters)

    def members(self) -> Iterator[BoardMachine]:
        """Yield the machine of each request that waits."""
        for waiters in self._waiters.values():
            yield from waiters.values()

    def add(self, group: GroupName, machine: BoardMachine) -> asyncio.Future[None]:
        """Add a request that waits for a change of a group."""
        future = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(group, {})[future] = machine
        return future

    def remove(self, group: GroupName, future: asyncio.Future[None]) -> None:
        """Remove a request."""
        waiters = self._waiters.get(group)
        if waiters is not None:
            waiters.pop(future, None)
            if not waiters:
                del self._waiters[group]

    def wake(self, groups: Iterable[GroupName]) -> None:
        """Wake the requests of these groups."""
        for group in groups:
            for future in self._waiters.get(group, ()):
                end(future)

    def wake_all(self) -> None:
        """Wake all requests."""
        self.wake(tuple(self._waiters))


def end(future: asyncio.Future[None]) -> None:
    """Wake the request that waits on a future, if it still waits."""
    if not future.done():
        future.set_result(None)


def _ready(group: Group) -> float:
    if group.enabled_at is None:
        return inf
    return (group.ready_at or group.enabled_at).timestamp()
