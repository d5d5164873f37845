"""Groups and machines as the board has them."""

from collections.abc import Iterable, Sequence
from math import inf

from forewarn.core.copies import replace
from forewarn.core.guests.document import Document, document
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine
from forewarn.core.words import GroupKind, GroupName, MachineId
from forewarn.guest.board.rehearsal_state import RehearsalState
from forewarn.guest.rate_limit import Allowance
from forewarn.wire.azure import VERSIONS

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


def _ready(group: Group) -> float:
    if group.enabled_at is None:
        return inf
    return (group.ready_at or group.enabled_at).timestamp()
