"""The board: what every machine would be sent, ready to send.

It changes on the guest loop only, by deltas, and answers from memory.
"""

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

Key: TypeAlias = str | int  # an address, or the port of a listener of the machine's own, or its id

NO_TAGS: Mapping[str, str] = MappingProxyType({})
# What follows the opening of a 304.
UNMODIFIED = b'ETag: "%b"\r\n\r\n'
JSON = b"Content-Type: application/json; charset=utf-8\r\n"


class Board:
    """All machines and groups; which have polled; which requests wait for a change."""

    def __init__(self, *, lineage: str) -> None:
        self._lineage = lineage
        self.groups: dict[GroupName, BoardGroup] = {}
        self._members: dict[Key, BoardMachine] = {}
        self.networks: dict[str, dict[Key, BoardMachine]] = {}
        self.ports: dict[Key, BoardMachine] = {}
        self.unknown_callers = Allowance()  # what all unknown callers share
        self.waiting = Waiters()
        self.polled: dict[BoardGroup, float] = {}
        self.seen: dict[BoardMachine, float] = {}
        self.sent: dict[EventId, dict[MachineId, float]] = {}
        self.number = 0

    def __len__(self) -> int:
        return len(self._members)

    def network(self, name: str) -> dict[Key, BoardMachine]:
        """Return the machines of a network by address: a view that stays up to date."""
        return self.networks.setdefault(name, {})

    def group(self, name: GroupName) -> BoardGroup | None:
        """Find a group."""
        return self.groups.get(name)

    @property
    def members(self) -> Mapping[Key, BoardMachine]:
        """All machines by id: a view that stays up to date."""
        return self._members

    # What changes.

    def set_rehearsal(self, machine: MachineId, state: RehearsalState | None) -> None:
        """Give a machine a part in a rehearsal, or take it; no matter if the machine is gone."""
        member = self._members.get(machine)
        if member is not None:
            member.rehearsal = state
            self.waiting.wake((member.group.name,))

    def wake_rehearsal(self, machine: MachineId, state: RehearsalState) -> None:
        """Let those look again who wait, if a machine still has this part."""
        member = self._members.get(machine)
        if member is not None and member.rehearsal is state:
            self.waiting.wake((member.group.name,))

    def apply(self, delta: Delta) -> None:
        """Bring the board up to date, and wake who waited for it."""
        removed_groups, removed_machines = self._gone(delta)
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
        for gone in removed_machines:
            touched |= self._remove(gone)
        for machine in delta.machines:
            touched |= self._place(machine)
        for name in removed_groups:
            self._dismiss(name)
        self.number = max(self.number, delta.number)
        self.waiting.wake(touched)

    def _gone(self, delta: Delta) -> tuple[Collection[GroupName], Collection[MachineId]]:
        """Return which groups and machines are gone: of a whole delta, those that it does not have."""
        if not delta.whole:
            return delta.removed_groups, delta.removed_machines
        groups = self.groups.keys() - {group.name for group in delta.groups}
        machines = self._members.keys() - {machine.id for machine in delta.machines}
        return groups, {MachineId(str(id_)) for id_ in machines}

    def _group(self, name: GroupName) -> BoardGroup:
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = BoardGroup(name)
        return group

    def _dismiss(self, name: GroupName) -> None:
        group = self.groups.pop(name, None)
        if group is not None:
            self.polled.pop(group, None)

    def _place(self, machine: Machine) -> set[GroupName]:
        """Add or change a machine; return the groups in which a caller may now be another machine."""
        group = self._group(machine.group)
        machine = _slimmed(machine, group)
        member = self._members.get(machine.id)
        if member is None:
            member = self._members[machine.id] = BoardMachine(machine, group)
            self._reach(member)
            return set()
        before = member.machine
        if before.mac != machine.mac:
            member = self._anew(member)  # whoever is connected as this machine is looked at again
        member.machine = machine
        if before.project != machine.project:
            member.rehearsal = None  # the other project may not be for rehearsals
        if _whereabouts(before) == _whereabouts(machine):
            return set()
        self._unreach(before, member)
        member.group = group
        member.last_sent = NO_NEWS
        self._reach(member)
        return {before.group, machine.group}

    def _anew(self, member: BoardMachine) -> BoardMachine:
        """Put another in the place of a machine, as it was."""
        machine = member.machine
        other = self._members[machine.id] = BoardMachine(machine, member.group)
        other.rehearsal = member.rehearsal
        self._unreach(machine, member)
        self._reach(other)
        if (seen := self.seen.pop(member, None)) is not None:
            self.seen[other] = seen
        return other

    def _remove(self, machine: MachineId) -> set[GroupName]:
        member = self._members.pop(machine, None)
        if member is None:
            return set()
        self._unreach(member.machine, member)
        self.seen.pop(member, None)
        return {member.machine.group}

    def _reach(self, member: BoardMachine) -> None:
        machine = member.machine
        if machine.address is not None:
            self.network(machine.network)[canonical(machine.address)] = member
        if machine.port is not None:
            self.ports[machine.port] = member

    def _unreach(self, machine: Machine, member: BoardMachine) -> None:
        """Remove a machine from where it was reached, unless another is reached there by now."""
        if machine.address is not None:
            _drop(self.network(machine.network), canonical(machine.address), member)
        if machine.port is not None:
            _drop(self.ports, machine.port, member)

    # What is sent.

    def rest(self, group: BoardGroup, version: int) -> bytes:
        """Return all of an answer after its opening: headers of its own and the document."""
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
        """Remember which events a machine is being sent: those that name it, and that its version knows."""
        group = member.group
        if self.note_events(member, version, group.naming(member.machine.id), seconds):
            member.last_sent = group.news

    def note_events(
        self, member: BoardMachine, version: int, events: Iterable[Event], seconds: float
    ) -> bool:
        """Remember that a machine is being sent events; says whether its version knows all of them."""
        machine, known = member.machine.id, VERSIONS[version].types
        whole = True
        for event in events:
            if event.type in known:
                self.sent.setdefault(event.id, {}).setdefault(machine, seconds)
            else:
                whole = False
        return whole

    # Who has asked.

    def note(self, member: BoardMachine, seconds: float) -> None:
        """Remember that a machine has polled."""
        self.seen[member] = seconds
        self.polled[member.group] = seconds

    def last_polls(self) -> Callable[[Sequence[MachineId]], Mapping[MachineId, datetime]]:
        """Return what tells when machines polled last, of all polls that are not handed over now.

        Any thread may ask: `take` puts another table in the place of one that others look at.
        """
        seen = self.seen

        def find(machines: Sequence[MachineId]) -> Mapping[MachineId, datetime]:
            members = ((machine, self._members.get(machine)) for machine in machines)
            found = ((machine, seen.get(member)) for machine, member in members if member is not None)
            return {machine: _moment(at) for machine, at in found if at is not None}

        return find

    def untaken_notices(self) -> Callable[[EventId], Mapping[MachineId, datetime]]:
        """Return what tells which machines have been sent an event since the last `take_notices`, and when.

        Any thread may ask.
        """
        sent = self.sent

        def find(event: EventId) -> Mapping[MachineId, datetime]:
            # A dictionary is copied in one go, whatever the loop adds to it meanwhile.
            return {machine: _moment(at) for machine, at in sent.get(event, {}).copy().items()}

        return find

    def unsaved(self) -> bool:
        """Return whether a machine has polled since the last `take`, or waits. Any thread may ask."""
        return bool(self.polled or self.waiting)

    def take(self, now: datetime) -> tuple[dict[GroupName, datetime], dict[MachineId, datetime]]:
        """Hand over whose polls are new since the last call; one that still waits is polling now."""
        # Polls that came together share their moment; a large fleet's are many.
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
        """Hand over which events machines have been sent since the last call, and when first."""
        sent, self.sent = self.sent, {}
        return {
            event: {machine: _moment(at) for machine, at in machines.items()}
            for event, machines in sent.items()
        }


def _slimmed(machine: Machine, group: BoardGroup) -> Machine:
    """Share what machines have in common, and leave out the host: there may be a hundred thousand."""
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


def _whereabouts(machine: Machine) -> tuple[object, ...]:
    """What decides who a caller is and whom it belongs to."""
    return (machine.group, machine.network, machine.address, machine.port, machine.mac)


def _drop(members: dict[Key, BoardMachine], key: Key, member: BoardMachine) -> None:
    if members.get(key) is member:
        del members[key]


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
