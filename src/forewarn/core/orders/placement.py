"""Where a machine goes that moves: to the emptiest host with room that leaves the waves of rollouts few."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from forewarn.core.admission import work_durations
from forewarn.core.basic_types import (
    SYNCHRONOUS_DRIVERS,
    Action,
    GroupName,
    HostName,
    HostState,
    MachineId,
    ServiceMode,
    StageKind,
    StageState,
    StepState,
    Work,
)
from forewarn.core.catalogue import WORKS
from forewarn.core.draft import Draft
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.host import RACK, Room, most_lack, no_room_for, unreached
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order, Step
from forewarn.core.model.slice import Slice
from forewarn.core.orders import bare_metal

# Those that have failed may be tried again elsewhere.
_TO_BE_PLACED = (StepState.WAITING, StepState.FAILED)


def machines_to_place(order: Order, carried: Iterable[Machine]) -> set[MachineId]:
    """Return the machines that an order may have to give another host, as it is now.

    `carried` are all on its host: they may have become more since the order was looked at.
    """
    if not _gives_hosts(order):
        return set()
    known = {step.machine: step for stage in order.stages for step in stage.steps if step.moves}
    found = {machine for machine, step in known.items() if step.state in _TO_BE_PLACED}
    if order.terms.returning:  # they come back when the host is done
        found |= known.keys()
    if order.machine is not None:
        return found if order.stages else {order.machine}
    if not _takes_no_more(order):
        there = (machine.id for machine in carried)
        found |= {each for each in there if each not in known or known[each].state is StepState.MOOT}
    return found


def most_placed_at_once(fleet: Slice, order: Order, machines: Collection[MachineId]) -> int:
    """Return how many of the machines that an order has to place it may place at one look."""
    host = fleet.hosts.get(order.host) if order.host else None
    # Those that ask for something have their place from the announcement on.
    asking = any(fleet.machines[id_].resources or fleet.machines[id_].labels for id_ in machines)
    in_turns = order.terms.mode is ServiceMode.EVACUATE and not asking
    most = work_durations.moves_at_once(order, host.at_once if host else None) if in_turns else None
    return len(machines) if most is None else min(most, len(machines))


def _gives_hosts(order: Order) -> bool:
    evacuated = order.terms.mode is ServiceMode.EVACUATE
    moves = order.work is not None and (evacuated or WORKS[order.work].moves)
    return order.open and (moves or order.action is Action.MOVE) and order.placed_here


def _takes_no_more(order: Order) -> bool:
    """Return whether nobody leaves a host any more, for the work on it is announced."""
    return any(
        stage.kind is StageKind.HOST and stage.state is not StageState.QUEUED for stage in order.stages
    )


def choose(
    draft: Draft,
    machine: Machine,
    *,
    but: Collection[HostName | None],
    order: Order | None = None,
    first: HostName | None = None,
) -> HostName | None:
    """Choose the best sound host for a machine, and count the machine there; None if there is no other.

    Its order, if one moves it, knows which machines it stands beside now, and which hosts are homes for it.
    `first` is chosen if it can be: its driver has agreed to that one.
    """
    free = first is not None and first not in but and is_usable(draft, first)
    agreed = free and first is not None and _has_room(draft, machine, first)
    chosen = first if agreed else best(draft, machine, but=but, order=order)
    if chosen in draft.room:
        draft.room[chosen] = draft.room[chosen].joined(machine)
    return chosen


def _has_room(draft: Draft, machine: Machine, name: HostName) -> bool:
    return name in draft.room and _is_sound(draft, name) and draft.room[name].why_not(machine) is None


def may_have_room(draft: Draft, step: Step, *, but: Collection[HostName | None]) -> bool:
    """Return whether a host that is full now could take a machine later, beside these."""
    labels = draft.machines[step.machine].labels.items()
    return any(
        name not in but and _is_sound(draft, name) and labels <= room.labels.items()
        for name, room in draft.room.items()
    )


def needs_room(draft: Draft, order: Order, step: Step) -> bool:
    """Return whether a machine of an order moves, and not just any host will do for it."""
    machine = draft.machines.get(step.machine)
    # What is done to a failed host waits for nothing, and others choose hosts by themselves.
    placed_here = step.moves and order.placed_here and step.work is not Work.RECOVER
    asks = machine is not None and bool(machine.resources or machine.labels or order.terms.to)
    return placed_here and asks


def without_room(draft: Draft, order: Order, affected: Iterable[Step]) -> tuple[Waiting, ...]:
    """Return the machines that would find no room if all of these were announced together."""
    needy = [step for step in affected if needs_room(draft, order, step)]
    if not needy:
        return ()
    before, waiting = dict(draft.room), []
    for step in needy:
        machine = draft.machines[step.machine]
        but = {machine.host}
        if not is_reserved(draft, step) and choose(draft, machine, but=but, order=order) is None:
            waiting.append(Waiting(what=step.name, reason=no_room(draft, order, machine), room=True))
    draft.room.clear()
    draft.room.update(before)
    return tuple(waiting)


def reserved(draft: Draft, order: Order, affected: Iterable[Step]) -> dict[MachineId, Step]:
    """Choose hosts for those machines that need room, and count them there from now on."""
    needy = [step for step in affected if needs_room(draft, order, step) and not is_reserved(draft, step)]
    return {step.machine: _reserve(draft, order, step) for step in needy}


def _reserve(draft: Draft, order: Order, step: Step) -> Step:
    machine = draft.machines[step.machine]
    first = step.precheck.target if step.precheck is not None else None
    target = choose(draft, machine, but={machine.host}, order=order, first=first)
    draft.put_machine(replace(machine, bound_for=target))
    return replace(step, target=target)


def is_reserved(draft: Draft, step: Step) -> bool:
    """Return whether the host that was chosen for a waiting machine still is a good one."""
    machine = draft.machines[step.machine]
    if step.state is not StepState.WAITING or step.target is None or machine.bound_for != step.target:
        return False
    room = draft.room.get(step.target)
    fits = room is None or (
        all(left >= 0 for left in room.free.values()) and machine.labels.items() <= room.labels.items()
    )
    refused = step.target in {each.host for each in step.refused}
    return is_usable(draft, step.target) and fits and not refused


def out_of_reach(draft: Draft, order: Order, affected: Iterable[Step]) -> tuple[Waiting, ...]:
    """Return the machines that wait because no host that could take them can be reached.

    A machine that no host could take does not wait for this.
    """
    if not order.placed_here or not _any_unreachable(draft):
        return ()
    waiting = []
    for step in affected:
        machine = draft.machines.get(step.machine)
        if machine is None or not step.moves or step.state is not StepState.WAITING:
            continue
        if bare_metal.host_of(draft, machine) is not None:
            continue
        # A machine whose host failed may come back there, if that has been restored since.
        own = None if step.work is Work.RECOVER else machine.host
        but = {own, *(refused.host for refused in step.refused)}
        if not is_reserved(draft, step) and (away := _out_of_reach(draft, machine, but=but, order=order)):
            waiting.append(Waiting(what=step.name, reason=away, room=True))
    return tuple(waiting)


def _any_unreachable(draft: Draft) -> bool:
    rooms, hosts = draft.known_room.values(), draft.hosts.values()
    away = any(room.unreachable_since is not None for room in rooms)
    return away or any(host.unreachable_since is not None for host in hosts)


def _out_of_reach(
    draft: Draft, machine: Machine, *, but: Collection[HostName | None], order: Order | None = None
) -> str:
    """Say which hosts could take a machine and cannot be reached; "" if one can be, or none could take it."""
    to = None if order is None else order.terms.to
    own = _kept_on(draft, machine) if to is None else to
    names = sorted(draft.known_room) if own is None else [own]
    away = [name for name in names if name not in but and _could_take(draft, name, machine)]
    if not away or best(draft, machine, but=but, order=order) is not None:
        return ""
    since = {name: at for name in away if (at := _unreachable_since(draft, name)) is not None}
    return f"finds no host: {unreached(since)}"


def _could_take(draft: Draft, name: HostName, machine: Machine) -> bool:
    """Return whether a host would take a machine if it could be reached."""
    room = draft.known_room.get(name)
    fits = room is None or room.why_not(machine) is None
    return fits and _is_sound(draft, name) and _unreachable_since(draft, name) is not None


def no_room(draft: Draft, order: Order, machine: Machine) -> str:
    """Say that a machine finds no host, and what it lacks."""
    there = "" if order.terms.to is None else why_not_there(draft, machine, order.terms.to)
    if there:
        return f"cannot go yet: {there}"
    away = _out_of_reach(draft, machine, but={machine.host}, order=order)
    return away or no_room_for(_usable_rooms(draft), machine)


def why_not_there(draft: Draft, machine: Machine, host: HostName) -> str:
    """Say why a host takes a machine not, or not now; nothing if it does."""
    known, room = draft.hosts.get(host), draft.room.get(host)
    if known is not None and known.bare_metal:
        return f"host {host} is bare metal, and carries itself alone"
    if known is not None and known.state is not HostState.OK:
        return f"host {host} is {known.state}"
    if room is None:
        return f"host {host} takes no machines"
    lack = room.why_not(machine)
    return "" if lack is None else f"host {host} lacks {lack}"


def asked_in_vain(draft: Draft, machine: Machine) -> str:
    """Say what a machine asks for that sound hosts do not have; nothing if it asks for nothing such."""
    return most_lack(_usable_rooms(draft), machine) if machine.labels or machine.resources else ""


def _usable_rooms(draft: Draft) -> Iterable[Room]:
    return (draft.room[name] for name in sorted(draft.room) if is_usable(draft, name))


def driver_where_chosen(draft: Draft, machine: Machine) -> str | None:
    """Return who does the work on the host that would be chosen; None if that is not said, or none can be."""
    chosen = best(draft, machine, but=(), reached=False)
    if chosen is None:
        return None
    host = draft.hosts.get(chosen)
    return host.driver if host is not None else draft.room[chosen].driver


def best(
    draft: Draft,
    machine: Machine,
    *,
    but: Collection[HostName | None],
    order: Order | None = None,
    reached: bool = True,
) -> HostName | None:
    """Return the best sound host for a machine, and count it nowhere; None if there is no other.

    Unless `reached`, it may be one that cannot be reached now.
    """
    may_go_to = is_usable if reached else _is_sound
    if order is not None and order.terms.to is not None:
        to = order.terms.to
        return None if to in but or why_not_there(draft, machine, to) or not may_go_to(draft, to) else to
    if (own := _kept_on(draft, machine)) is not None and own not in but:
        return own if may_go_to(draft, own) else None

    def fits(name: HostName) -> bool:
        return name not in but and may_go_to(draft, name) and _has_room(draft, machine, name)

    spare, source = _spare(draft, machine), _Source.of(draft, machine, order.steps if order else ())
    homes = [name for name in (order.terms.homes if order else ()) if name in draft.room and fits(name)]
    welcoming = {
        name: room
        for name in homes
        if not any(_drawbacks(room := draft.room[name], machine, spare, source)[:2])
        and source.strangeness(room, machine) < _UNLIKE
    }
    if welcoming:
        return min(welcoming, key=lambda name: _fullness(welcoming[name], machine, name))
    sound = [name for name in draft.room if fits(name)]
    if not sound:
        return None
    drawbacks = {name: _drawbacks(draft.room[name], machine, spare, source) for name in sound}
    fewest = min(drawbacks.values())
    rooms = {name: draft.room[name] for name in sound if drawbacks[name] == fewest}
    return _emptiest(rooms, machine, source)


def _kept_on(draft: Draft, machine: Machine) -> HostName | None:
    """Return the host that a machine is to come back to, for its hypervisor has it there and nowhere else.

    What is only simulated, or done outside, is at home anywhere.
    """
    host = draft.hosts.get(machine.last_host) if machine.last_host is not None else None
    if host is None or draft.defaults.driver_of(host.driver) in SYNCHRONOUS_DRIVERS:
        return None
    room = draft.room.get(host.name)  # which is loaded of few hosts alone
    fits = room is None or room.why_not(machine) is None
    return host.name if fits and _is_sound(draft, host.name) else None


def _drawbacks(room: Room, machine: Machine, spare: int | None, source: "_Source") -> tuple[bool, bool, bool]:
    """Return what speaks against a host before all else, the weightiest first.

    That its group could no longer spare what the host carries of one update domain: the host
    could not be maintained then. That it is being worked on: the machine would get an event again, and
    move again. That it carries far more than the host that the machine leaves.
    """
    crowded = spare is not None and room.of_domain(machine) >= spare
    return crowded, room.busy, room.carried >= source.enough


def _emptiest(rooms: Mapping[HostName, Room], machine: Machine, source: "_Source") -> HostName:
    """Choose among hosts by their waves, by how full they are, and by how many of the group they would lose.

    A rollout needs no more than that: hosts that it is done with are the emptiest. What is fuller than one
    that could not be better is not looked at.
    """
    emptiest = sorted(rooms, key=lambda each: rooms[each].carried)

    def judged(name: HostName) -> tuple[int, int, int, HostName]:
        return source.strangeness(rooms[name], machine), *_fullness(rooms[name], machine, name)

    best = judged(emptiest[0])
    for name in emptiest[1:]:
        if best[:2] < (_LIKE, rooms[name].carried):
            break
        best = min(best, judged(name))
    return best[-1]


def _fullness(room: Room, machine: Machine, name: HostName) -> tuple[int, int, HostName]:
    return room.carried, room.of_group(machine.group), name


@dataclass(frozen=True, slots=True)
class _Source:
    """The host that a machine leaves, as far as others are like it."""

    rack: str | None
    # The update domain that it has of each group with more than one; None: it has several.
    domains: Mapping[GroupName, int | None]
    enough: int  # what a host may carry before others are better, whatever their waves

    @classmethod
    def of(cls, draft: Draft, machine: Machine, beside: Iterable[Step]) -> "_Source":
        domains: dict[GroupName, int | None] = {}
        beside = tuple(beside)
        there = ((each.group, each.update_domain) for each in beside)
        for group, domain in ((machine.group, machine.update_domain), *there):
            if group not in draft.groups or draft.groups[group].update_domains == 1:
                continue
            if domains.setdefault(group, domain) != domain:
                domains[group] = None
        host = draft.hosts.get(machine.host) if machine.host is not None else None
        rack = None if host is None else host.labels.get(RACK)
        return cls(rack, domains, enough=_FAR_MORE * max(len(beside), 1))

    def strangeness(self, room: Room, machine: Machine) -> int:
        """Return how likely a machine makes more waves where it goes.

        It makes none on a host that is in waves with the source: that stands in the same rack, has the same
        update domain of some group, or is empty. Nothing may be known of a host. It makes more on one that
        has another domain of some group; most, if that is its own group, for then the host has two stages.
        """
        if machine.group not in self.domains:
            return _LIKE  # a machine that is its own group goes with any wave
        like = room.rack == self.rack if self.rack and room.rack else not room.carried
        for (group, domain), count in room.members.items():
            if not count or group not in self.domains:
                continue
            if group == machine.group and domain != machine.update_domain:
                return _DIVIDED
            if self.domains[group] is not None:
                if domain != self.domains[group]:
                    return _UNLIKE
                like = True
        return _LIKE if like else _UNKNOWN


# Half of a rack takes what the other half carries, and so twice as much as it did; hosts differ, too. A bound
# that some of them reach sends single machines elsewhere, and each of these makes one more wave.
_FAR_MORE = 4
# Whether a host belongs to the same waves as another.
_LIKE, _UNKNOWN, _UNLIKE, _DIVIDED = range(4)


def _spare(draft: Draft, machine: Machine) -> int | None:
    """Return how many machines its group can do without at best; None if it has no budget."""
    group = draft.groups[machine.group]
    budget = draft.base.budgets.get(group.name) if group.policy.budget else None
    return None if budget is None else budget.at_best


def _is_sound(draft: Draft, name: HostName) -> bool:
    """Return whether a host is sound; those that are not loaded are in `room` only if they are."""
    host = draft.hosts.get(name)
    return host is None or host.state is HostState.OK


def _unreachable_since(draft: Draft, name: HostName) -> datetime | None:
    host = draft.hosts.get(name)
    if host is not None:
        return host.unreachable_since
    room = draft.known_room.get(name)
    return None if room is None else room.unreachable_since


def is_usable(draft: Draft, name: HostName) -> bool:
    """Return whether a machine may be sent to a host: it is sound, and its driver reaches it."""
    return _is_sound(draft, name) and _unreachable_since(draft, name) is None
