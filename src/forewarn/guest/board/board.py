"""The board: the documents of all groups, ready to send. Only the guest loop changes it, by deltas."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from sys import intern
from types import MappingProxyType
from typing import TypeAlias

from forewarn.core.basic_types import EventId, GroupName, MachineId, ProjectName
from forewarn.core.feed import Delta
from forewarn.core.guests.document import entity_tag, tag
from forewarn.core.model.event import Event
from forewarn.core.model.machine import Machine
from forewarn.guest.board.members import NO_NEWS, Allowance, BoardGroup, BoardMachine, Waiters
from forewarn.guest.board.rehearsal_state import RehearsalState
from forewarn.wire.azure import VERSIONS, write_document
from forewarn.wire.texts import canonical

Key: TypeAlias = str | int  # an address, the port of a machine's own listener, or a machine's id

NO_TAGS: Mapping[str, str] = MappingProxyType({})
# The part of a 304 after the common headers.
UNMODIFIED = b'ETag: "%b"\r\n\r\n'
JSON = b"Content-Type: application/json; charset=utf-8\r\n"


class Board:
    """All groups and machines, their polls, and the requests that wait for a change."""

    def __init__(self, *, lineage: str) -> None:
        self._lineage = lineage
        self.groups: dict[GroupName, BoardGroup] = {}
        self.members: dict[Key, BoardMachine] = {}  # by id
        self.networks: dict[str, dict[Key, BoardMachine]] = {}
        self.ports: dict[Key, BoardMachine] = {}
        self.unknown_callers = Allowance()  # shared by all unknown callers
        self.waiting = Waiters()
        self.polled: dict[BoardGroup, float] = {}
        self.seen: dict[BoardMachine, float] = {}
        self.sent: dict[EventId, dict[MachineId, float]] = {}
        self.number = 0

    def __len__(self) -> int:
        return len(self.members)

    def network(self, name: str) -> dict[Key, BoardMachine]:
        """Return the machines of a network by address, as a live view."""
        return self.networks.setdefault(name, {})

    # Changes

    def set_rehearsal(self, machine: MachineId, state: RehearsalState | None) -> None:
        """Add a machine to a rehearsal, or remove it; ignore a machine that has been removed."""
        member = self.members.get(machine)
        if member is not None:
            member.rehearsal = state
            self.waiting.wake((member.group.name,))

    def wake_rehearsal(self, machine: MachineId, state: RehearsalState) -> None:
        """Wake the requests of a machine's group, if the machine is still in this rehearsal."""
        member = self.members.get(machine)
        if member is not None and member.rehearsal is state:
            self.waiting.wake((member.group.name,))

    def apply(self, delta: Delta) -> None:
        """Apply changes, and wake the requests that wait for them."""
        removed_groups, removed_machines = self._removed(delta)
        touched: set[GroupName] = set(removed_groups)
        changed: dict[GroupName, list[Event]] = {}
        for event in delta.changed_events:
            changed.setdefault(event.group, []).append(event)
        for group in delta.groups:
            member = self._group(group.name)
            member.update(group, delta.events.get(group.name, member.merged(changed.pop(group.name, ()))))
            touched.add(group.name)
        for name, events in changed.items():
            if (unseen := self.groups.get(name)) is not None:  # its guests see no difference
                unseen.keep(events)
        for removed in removed_machines:
            touched |= self._remove(removed)
        for machine in delta.machines:
            touched |= self._set_machine(machine)
        for name in removed_groups:
            self._remove_group(name)
        self.number = max(self.number, delta.number)
        self.waiting.wake(touched)

    def _removed(self, delta: Delta) -> tuple[Collection[GroupName], Collection[MachineId]]:
        """Return the removed groups and machines; those that a whole delta lacks are removed."""
        if not delta.whole:
            return delta.removed_groups, delta.removed_machines
        groups = self.groups.keys() - {group.name for group in delta.groups}
        machines = self.members.keys() - {machine.id for machine in delta.machines}
        return groups, {MachineId(str(id_)) for id_ in machines}

    def _group(self, name: GroupName) -> BoardGroup:
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = BoardGroup(name)
        return group

    def _remove_group(self, name: GroupName) -> None:
        group = self.groups.pop(name, None)
        if group is not None:
            self.polled.pop(group, None)

    def _set_machine(self, machine: Machine) -> set[GroupName]:
        """Add or change a machine; return the groups in which a caller may now be another machine."""
        group = self._group(machine.group)
        machine = _compacted(machine, group)
        member = self.members.get(machine.id)
        if member is None:
            member = self.members[machine.id] = BoardMachine(machine, group)
            self._add_routes(member)
            return set()
        before = member.machine
        if before.mac != machine.mac:
            member = self._replaced(member)  # so that open connections check the MAC again
        member.machine = machine
        if before.project != machine.project:
            member.rehearsal = None  # the new project may not allow rehearsals
        if _route(before) == _route(machine):
            return set()
        self._remove_routes(before, member)
        member.group = group
        member.last_sent = NO_NEWS
        self._add_routes(member)
        return {before.group, machine.group}

    def _replaced(self, member: BoardMachine) -> BoardMachine:
        """Replace the object of a machine by an equal one."""
        machine = member.machine
        other = self.members[machine.id] = BoardMachine(machine, member.group)
        other.rehearsal = member.rehearsal
        self._remove_routes(machine, member)
        self._add_routes(other)
        if (seen := self.seen.pop(member, None)) is not None:
            self.seen[other] = seen
        return other

    def _remove(self, machine: MachineId) -> set[GroupName]:
        member = self.members.pop(machine, None)
        if member is None:
            return set()
        self._remove_routes(member.machine, member)
        self.seen.pop(member, None)
        return {member.machine.group}

    def _add_routes(self, member: BoardMachine) -> None:
        machine = member.machine
        if machine.address is not None:
            self.network(machine.network)[canonical(machine.address)] = member
        if machine.port is not None:
            self.ports[machine.port] = member

    def _remove_routes(self, machine: Machine, member: BoardMachine) -> None:
        """Remove a machine's address and port, unless another machine has them now."""
        if machine.address is not None:
            _drop(self.network(machine.network), canonical(machine.address), member)
        if machine.port is not None:
            _drop(self.ports, machine.port, member)

    # Documents

    def rest(self, group: BoardGroup, version: int) -> bytes:
        """Return the document as an answer without the common headers."""
        rest = group.rests[version]
        if rest is None:
            body = write_document(group.document, VERSIONS[version])
            head = b'ETag: "%b"\r\nContent-Length: %d\r\n\r\n' % (self.etag(group), len(body))
            rest = JSON + head + body
            rests = group.rests
            group.rests = (*rests[:version], rest, *rests[version + 1 :])
        return rest

    def etag(self, group: BoardGroup) -> bytes:
        """Return the entity tag of a group's document, without quotes."""
        if not group.etag:
            group_tag = tag(group.name, born=group.document.born, lineage=self._lineage)
            group.etag = entity_tag(group.document.incarnation, group_tag).encode()
            group.unmodified = UNMODIFIED % group.etag
        return group.etag

    def note_sent(self, member: BoardMachine, version: int, seconds: float) -> None:
        """Record the events that a machine is sent: those that name it, in its api-version."""
        group = member.group
        if self.note_events(member, version, group.naming(member.machine.id), seconds):
            member.last_sent = group.news

    def note_events(
        self, member: BoardMachine, version: int, events: Iterable[Event], seconds: float
    ) -> bool:
        """Record events that a machine is sent; return whether its api-version has all their types."""
        machine, known = member.machine.id, VERSIONS[version].types
        whole = True
        for event in events:
            if event.type in known:
                self.sent.setdefault(event.id, {}).setdefault(machine, seconds)
            else:
                whole = False
        return whole

    # Polls

    def note(self, member: BoardMachine, seconds: float) -> None:
        """Record that a machine has polled."""
        self.seen[member] = seconds
        self.polled[member.group] = seconds

    def last_polls(self) -> Callable[[Sequence[MachineId]], Mapping[MachineId, datetime]]:
        """Return a function that looks up last polls which `take` has not returned yet.

        Thread-safe, because `take` replaces the table instead of changing it.
        """
        seen = self.seen

        def find(machines: Sequence[MachineId]) -> Mapping[MachineId, datetime]:
            members = ((machine, self.members.get(machine)) for machine in machines)
            found = ((machine, seen.get(member)) for machine, member in members if member is not None)
            return {machine: _moment(at) for machine, at in found if at is not None}

        return find

    def untaken_notices(self) -> Callable[[EventId], Mapping[MachineId, datetime]]:
        """Return a function that looks up which machines were sent an event since the last `take_notices`.

        Thread-safe.
        """
        sent = self.sent

        def find(event: EventId) -> Mapping[MachineId, datetime]:
            # Copying a dictionary is atomic, so the loop may add to it.
            return {machine: _moment(at) for machine, at in sent.get(event, {}).copy().items()}

        return find

    def unsaved(self) -> bool:
        """Whether a machine has polled since the last `take`, or waits. Thread-safe."""
        return bool(self.polled or self.waiting)

    def take(self, now: datetime) -> tuple[dict[GroupName, datetime], dict[MachineId, datetime]]:
        """Return the groups and machines that polled since the last call; one that waits polls now."""
        # Convert each moment once: many polls of a large fleet share it.
        moments = {at: _moment(at) for at in {*self.polled.values(), *self.seen.values()}}
        groups = {group.name: moments[at] for group, at in self.polled.items()}
        machines = {member.machine.id: moments[at] for member, at in self.seen.items()}
        self.polled.clear()
        self.seen = {}
        for member in self.waiting.members():
            groups[member.group.name] = now
            machines[member.machine.id] = now
        return groups, machines

    def take_notices(self) -> dict[EventId, dict[MachineId, datetime]]:
        """Return the events that machines were sent since the last call, and when first."""
        sent, self.sent = self.sent, {}
        return {
            event: {machine: _moment(at) for machine, at in machines.items()}
            for event, machines in sent.items()
        }


def _compacted(machine: Machine, group: BoardGroup) -> Machine:
    """Share equal values between machines and drop the host, to save memory in a large fleet."""
    return replace(
        machine,
        group=group.name,
        project=ProjectName(intern(machine.project)),
        host=None,
        network=intern(machine.network),
        tags=machine.tags or NO_TAGS,
        location=intern(machine.location),
        zone=intern(machine.zone),
        size=intern(machine.size),
        os=intern(machine.os),
    )


def _route(machine: Machine) -> tuple[object, ...]:
    """Return the values that map a caller to a machine and its group."""
    return (machine.group, machine.network, machine.address, machine.port, machine.mac)


def _drop(members: dict[Key, BoardMachine], key: Key, member: BoardMachine) -> None:
    if members.get(key) is member:
        del members[key]


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
