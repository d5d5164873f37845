"""Groups and machines as the board has them, with their allowances and the requests that wait."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf

from forewarn.core.basic_types import GroupKind, GroupName, MachineId
from forewarn.core.guests.document import Document, document
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine
from forewarn.guest.board.rehearsal_state import RehearsalState
from forewarn.wire.azure import VERSIONS

# Additions of the interval must not turn the last token of a burst into one too many.
ROUNDING = 1e-9


class Allowance:
    """What a machine, or all unknown callers together, have taken of what they may take."""

    __slots__ = ("connections", "due", "held")

    def __init__(self) -> None:
        self.connections = 0
        self.held = 0
        self.due = 0.0  # when the bucket will be full again, in real time


class Rate:
    """So many requests a second, with a burst of twice as many.

    A bucket is full again at `due`; every request moves that by one interval, and may do so while it lies
    no further ahead than a burst lasts. Without a limit the interval is nothing, and so is what it moves.
    """

    __slots__ = ("interval", "slack")

    def __init__(self, per_second: float) -> None:
        burst = max(1.0, 2 * per_second)
        self.interval = 1 / per_second if per_second > 0 else 0.0
        self.slack = (burst - 1) * self.interval + ROUNDING

    def admit(self, budget: Allowance, now: float) -> bool:
        """Take a token if there is one."""
        due = max(budget.due, now)
        if due - now > self.slack:
            return False
        budget.due = due + self.interval
        return True


NO_RESTS: tuple[None, ...] = (None,) * len(VERSIONS)
# What a group's document is until something happens to it: one value for all of them.
NOTHING_YET = Document(incarnation=1, kind=GroupKind.STANDALONE, born=0, events=())
# The news of a document without events; incarnations begin with 1.
NO_NEWS = 0


class BoardGroup:
    """A group as its guests see it: its document, and whether it is answered yet."""

    __slots__ = ("_named", "document", "etag", "name", "news", "ready", "rests", "unmodified")

    def __init__(self, name: GroupName) -> None:
        self.name = name
        self.ready = inf  # service seconds from which polls are answered; never, while not enabled
        self.document = NOTHING_YET
        self.etag = b""
        self.unmodified = b""  # what says that a caller has the document, after its opening
        self.rests: tuple[bytes | None, ...] = NO_RESTS  # answers by version, after their opening
        self.news = NO_NEWS  # which state of the events machines are to be sent
        self._named: dict[MachineId, list[Event]] | None = None

    @property
    def enabled(self) -> bool:
        """Whether the feature is on."""
        return self.ready != inf

    def update(self, group: Group, events: Iterable[Event]) -> None:
        """Show another state of the group; what was built for the last one is dropped if it differs."""
        self.ready = _ready(group)
        shown = document(group, events)
        if shown != self.document:
            self.document = shown
            self.etag = self.unmodified = b""
            self.rests = NO_RESTS
            self.news = shown.incarnation if shown.events else NO_NEWS
            self._named = None

    def merged(self, changed: Iterable[Event]) -> Iterable[Event]:
        """Return the listed events once some have changed."""
        known = {event.id: event for event in self.document.events}
        return (known | {event.id: event for event in changed}).values()

    def keep(self, changed: Iterable[Event]) -> None:
        """Take events that look to guests as they did."""
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
    """A machine, as its requests are answered."""

    __slots__ = ("group", "last_sent", "machine", "rehearsal")

    def __init__(self, machine: Machine, group: BoardGroup) -> None:
        super().__init__()
        self.machine = machine
        self.group = group
        self.last_sent = NO_NEWS  # the state of the events that it was last sent
        self.rehearsal: RehearsalState | None = None  # while it takes part in one


class Waiters:
    """The requests that wait, by group. One that is woken looks again, and may wait on."""

    def __init__(self) -> None:
        self._waiters: dict[GroupName, dict[asyncio.Future[None], BoardMachine]] = {}

    def __len__(self) -> int:
        return sum(len(waiters) for waiters in self._waiters.values())

    def __bool__(self) -> bool:
        return bool(self._waiters)

    def members(self) -> Iterator[BoardMachine]:
        """List the machines whose requests wait."""
        for waiters in self._waiters.values():
            yield from waiters.values()

    def add(self, group: GroupName, machine: BoardMachine) -> asyncio.Future[None]:
        """Wait for something to happen to a group."""
        future = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(group, {})[future] = machine
        return future

    def remove(self, group: GroupName, future: asyncio.Future[None]) -> None:
        """Wait no longer."""
        waiters = self._waiters.get(group)
        if waiters is not None:
            waiters.pop(future, None)
            if not waiters:
                del self._waiters[group]

    def wake(self, groups: Iterable[GroupName]) -> None:
        """Let the requests that wait in these groups look again."""
        for group in groups:
            for future in self._waiters.get(group, ()):
                end(future)

    def wake_all(self) -> None:
        """Let all requests look again."""
        self.wake(tuple(self._waiters))


def end(future: asyncio.Future[None]) -> None:
    """Stop waiting for something that may have come already."""
    if not future.done():
        future.set_result(None)


def _ready(group: Group) -> float:
    if group.enabled_at is None:
        return inf
    return (group.ready_at or group.enabled_at).timestamp()
