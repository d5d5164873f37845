"""The board: what every machine would be told, ready to send.

It changes on the guest loop only, by deltas, and answers from memory.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from sys import intern
from types import MappingProxyType
from typing import TypeAlias

from forewarn.control.ports.store import Delta
from forewarn.core.guests.document import Document, document, entity_tag, tag
from forewarn.core.model.event import Event
from forewarn.core.model.group import Group
from forewarn.core.model.machine import Machine
from forewarn.core.words import EventId, GroupKind, GroupName, MachineId, ProjectName
from forewarn.guest.board.rehearsal_state import Role
from forewarn.guest.board.waiting import Waiting
from forewarn.guest.canonical import canonical
from forewarn.guest.rate_limit import Budget
from forewarn.wire.azure import VERSIONS, write_document

Key: TypeAlias = str | int  # an address, or the port of a listener of the machine's own, or its id

NO_TAGS: Mapping[str, str] = MappingProxyType({})
NO_RESTS: tuple[None, ...] = (None,) * len(VERSIONS)
# What a group's document is until something happens to it: one value for all of them.
NOTHING_YET = Document(incarnation=1, kind=GroupKind.STANDALONE, born=0, events=())
# What there is to be told of while no event is listed; incarnations begin with 1.
NO_NEWS = 0
JSON = b"Content-Type: application/json; charset=utf-8\r\n"


class Audience:
    """A group as its guests see it: a document, and whether it is answered yet."""

    __slots__ = ("_named", "document", "etag", "name", "news", "ready", "rests")

    def __init__(self, name: GroupName) -> None:
        self.name = name
        self.ready = inf  # service seconds from which polls are answered; never, while not enabled
        self.document = NOTHING_YET
        self.etag = b""
        self.rests: tuple[bytes | None, ...] = NO_RESTS  # answers by version, after their opening
        self.news = NO_NEWS  # which state of the events there is to be told of
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
            self.etag = b""
            self.rests = NO_RESTS
            self.news = shown.incarnation if shown.events else NO_NEWS
            self._named = None

    def naming(self, machine: MachineId) -> Sequence[Event]:
        """List the events that name a machine."""
        if self._named is None:
            self._named = {}
            for event in self.document.events:
                for resource in event.resources:
                    self._named.setdefault(resource.machine, []).append(event)
        return self._named.get(machine, ())


class Seat(Budget):
    """A machine's place at the board."""

    __slots__ = ("audience", "machine", "role", "told")

    def __init__(self, machine: Machine, audience: Audience) -> None:
        super().__init__()
        self.machine = machine
        self.audience = audience
        self.told = NO_NEWS  # the state of the events that it was last sent
        self.role: Role | None = None  # its part in a rehearsal


class Board:
    """All seats and audiences; who has polled; who waits for a change."""

    def __init__(self, *, lineage: str) -> None:
        self._lineage = lineage
        self._audiences: dict[GroupName, Audience] = {}
        self._seats: dict[Key, Seat] = {}
        self._networks: dict[str, dict[Key, Seat]] = {}
        self.ports: dict[Key, Seat] = {}
        self.strangers = Budget()  # what all unknown callers share
        self.waiting: Waiting[Seat] = Waiting()
        self.polled: dict[Audience, float] = {}
        self.seen: dict[Seat, float] = {}
        self.sent: dict[EventId, dict[MachineId, float]] = {}
        self.number = 0

    def __len__(self) -> int:
        return len(self._seats)

    def network(self, name: str) -> dict[Key, Seat]:
        """Return the seats of a network by address: a view that stays up to date."""
        return self._networks.setdefault(name, {})

    def audience(self, name: GroupName) -> Audience | None:
        """Find a group's audience."""
        return self._audiences.get(name)

    @property
    def seats(self) -> Mapping[Key, Seat]:
        """All seats by their machine's id: a view that stays up to date."""
        return self._seats

    # What changes.

    def cast(self, machine: MachineId, role: Role | None) -> None:
        """Give a machine a part in a rehearsal, or take it; no matter if the machine is gone."""
        seat = self._seats.get(machine)
        if seat is not None:
            seat.role = role
            self.waiting.wake((seat.audience.name,))

    def stir(self, machine: MachineId, role: Role) -> None:
        """Let those look again who wait, if a machine still has this part."""
        seat = self._seats.get(machine)
        if seat is not None and seat.role is role:
            self.waiting.wake((seat.audience.name,))

    def apply(self, delta: Delta) -> None:
        """Bring the board up to date, and wake who waited for it."""
        touched: set[GroupName] = set(delta.removed_groups)
        for group in delta.groups:
            self._audience(group.name).update(group, delta.events.get(group.name, ()))
            touched.add(group.name)
        for gone in delta.removed_machines:
            touched |= self._remove(gone)
        for machine in delta.machines:
            touched |= self._place(machine)
        for name in delta.removed_groups:
            self._dismiss(name)
        self.number = max(self.number, delta.number)
        self.waiting.wake(touched)

    def _audience(self, name: GroupName) -> Audience:
        audience = self._audiences.get(name)
        if audience is None:
            audience = self._audiences[name] = Audience(name)
        return audience

    def _dismiss(self, name: GroupName) -> None:
        audience = self._audiences.pop(name, None)
        if audience is not None:
            self.polled.pop(audience, None)

    def _place(self, machine: Machine) -> set[GroupName]:
        """Give a machine its seat; returns the groups in which somebody may now be another caller."""
        audience = self._audience(machine.group)
        machine = _lean(machine, audience)
        seat = self._seats.get(machine.id)
        if seat is None:
            seat = self._seats[machine.id] = Seat(machine, audience)
            self._reach(seat)
            return set()
        before, seat.machine = seat.machine, machine
        if before.project != machine.project:
            seat.role = None  # the other project may not be for rehearsals
        if _whereabouts(before) == _whereabouts(machine):
            return set()
        self._unreach(before, seat)
        seat.audience = audience
        seat.told = NO_NEWS
        self._reach(seat)
        return {before.group, machine.group}

    def _remove(self, machine: MachineId) -> set[GroupName]:
        seat = self._seats.pop(machine, None)
        if seat is None:
            return set()
        self._unreach(seat.machine, seat)
        self.seen.pop(seat, None)
        return {seat.machine.group}

    def _reach(self, seat: Seat) -> None:
        machine = seat.machine
        if machine.address is not None:
            self.network(machine.network)[canonical(machine.address)] = seat
        if machine.port is not None:
            self.ports[machine.port] = seat

    def _unreach(self, machine: Machine, seat: Seat) -> None:
        """Take a seat from where it was, unless another has been given its place since."""
        if machine.address is not None:
            _drop(self.network(machine.network), canonical(machine.address), seat)
        if machine.port is not None:
            _drop(self.ports, machine.port, seat)

    # What is told.

    def rest(self, audience: Audience, version: int) -> bytes:
        """Return all of an answer after its opening: headers of its own and the document."""
        rest = audience.rests[version]
        if rest is None:
            body = write_document(audience.document, VERSIONS[version])
            head = b'ETag: "%b"\r\nContent-Length: %d\r\n\r\n' % (self.etag(audience), len(body))
            rest = JSON + head + body
            rests = audience.rests
            audience.rests = (*rests[:version], rest, *rests[version + 1 :])
        return rest

    def etag(self, audience: Audience) -> bytes:
        """Return the entity tag of an audience's document, without quotes."""
        if not audience.etag:
            group_tag = tag(audience.name, born=audience.document.born, lineage=self._lineage)
            audience.etag = entity_tag(audience.document.incarnation, group_tag).encode()
        return audience.etag

    def tell(self, seat: Seat, version: int, seconds: float) -> None:
        """Remember which events a machine is being sent: those that name it, and that its version knows."""
        audience = seat.audience
        if self.tell_of(seat, version, audience.naming(seat.machine.id), seconds):
            seat.told = audience.news

    def tell_of(self, seat: Seat, version: int, events: Iterable[Event], seconds: float) -> bool:
        """Remember that a machine is being sent events; says whether its version knows all of them."""
        machine, known = seat.machine.id, VERSIONS[version].types
        whole = True
        for event in events:
            if event.type in known:
                self.sent.setdefault(event.id, {}).setdefault(machine, seconds)
            else:
                whole = False
        return whole

    # Who has asked.

    def note(self, seat: Seat, seconds: float) -> None:
        """Remember that a machine has polled."""
        self.seen[seat] = seconds
        self.polled[seat.audience] = seconds

    def last_seen(self, machine: MachineId) -> datetime | None:
        """Say when a machine polled last, if that has not been handed over yet. Any thread may ask."""
        seat = self._seats.get(machine)
        at = None if seat is None else self.seen.get(seat)
        return None if at is None else _moment(at)

    def unsaved(self) -> bool:
        """Say whether somebody has polled since the last `take`, or waits. Any thread may ask."""
        return bool(self.polled or self.waiting)

    def take(self, now: datetime) -> tuple[dict[GroupName, datetime], dict[MachineId, datetime]]:
        """Hand over whose polls are new since the last call; one that still waits is polling now."""
        # Polls that came together share their moment; a large fleet's are many.
        moments = {at: _moment(at) for at in {*self.polled.values(), *self.seen.values()}}
        groups = {group.name: moments[at] for group, at in self.polled.items()}
        machines = {seat.machine.id: moments[at] for seat, at in self.seen.items()}
        self.polled.clear()
        self.seen.clear()
        for seat in self.waiting.seats():
            groups[seat.audience.name] = now
            machines[seat.machine.id] = now
        return groups, machines

    def take_sent(self) -> dict[EventId, dict[MachineId, datetime]]:
        """Hand over which events machines have been sent since the last call, and when first."""
        sent, self.sent = self.sent, {}
        return {
            event: {machine: _moment(at) for machine, at in machines.items()}
            for event, machines in sent.items()
        }


def _ready(group: Group) -> float:
    if group.enabled_at is None:
        return inf
    return (group.ready_at or group.enabled_at).timestamp()


def _lean(machine: Machine, audience: Audience) -> Machine:
    """Share what machines have in common, and leave out the host: there may be a hundred thousand."""
    return replace(
        machine,
        group=audience.name,
        project=ProjectName(intern(machine.project)),
        host=None,
        network=intern(machine.network),
        tags=machine.tags or NO_TAGS,
        location=intern(machine.location),
        zone=intern(machine.zone),
        size=intern(machine.size),
        os=intern(machine.os),
    )


def _whereabouts(machine: Machine) -> tuple[object, ...]:
    """What decides who a caller is and whom it belongs to."""
    return (machine.group, machine.network, machine.address, machine.port)


def _drop(seats: dict[Key, Seat], key: Key, seat: Seat) -> None:
    if seats.get(key) is seat:
        del seats[key]


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
