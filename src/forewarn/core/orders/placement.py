"""Choose the host that a machine moves to: with room, few machines, and no extra waves for rollouts."""

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
from forewarn.core.model.host import RACK, Room, most_common_lack, no_room_for, unreached
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order, Step
from forewarn.core.model.slice import Slice
from forewarn.core.orders import bare_metal

# A failed step may be retried on another host.
_TO_BE_PLACED = (StepState.WAITING, StepState.FAILED)


def machines_to_place(order: Order, carried: Iterable[Machine]) -> set[MachineId]:
    """Return the machines for which an order may have to choose a host.

    `carried` are the machines on its host now, which may be more than the order knows.
    """
    evacuated = order.terms.mode is ServiceMode.EVACUATE
    moves = order.work is not None and (evacuated or WORKS[order.work].moves)
    if not (order.open and (moves or order.action is Action.MOVE) and order.placed_by_forewarn):
        return set()
    known = {step.machine: step for stage in order.stages for step in stage.steps if step.moves}
    found = {machine for machine, step in known.items() if step.state in _TO_BE_PLACED}
    if order.terms.returning:
        found |= known.keys()
    if order.machine is not None:
        return found if order.stages else {order.machine}
    # Once the work on the host is announced, no further machine leaves it.
    if not any(
        stage.kind is StageKind.HOST and stage.state is not StageState.QUEUED for stage in order.stages
    ):
        there = (machine.id for machine in carried)
        found |= {each for each in there if each not in known or known[each].state is StepState.MOOT}
    return found


def most_placed_at_once(fleet: Slice, order: Order, machines: Collection[MachineId]) -> int:
    """Return for how many of the given machines an order may choose hosts in one advance."""
    host = fleet.hosts.get(order.host) if order.host else None
    # Machines with labels or resources get their hosts with the announcement, all at once.
    asking = any(fleet.machines[id_].resources or fleet.machines[id_].labels for id_ in machines)
    in_turns = order.terms.mode is ServiceMode.EVACUATE and not asking
    most = work_durations.moves_at_once(order, host) if in_turns else None
    return len(machines) if most is None else min(most, len(machines))


def choose(
    draft: Draft,
    machine: Machine,
    *,
    excluded: Collection[HostName | None],
    order: Order | None = None,
    first: HostName | None = None,
) -> HostName | None:
    """Choose the best sound host for a machine and count the machine there; None if there is no such host.

    The order names the other machines that leave the host, and the preferred targets (homes). The driver has
    agreed to `first`, so that host comes before all others.
    """
    chosen = first
    if (
        first is None
        or first in excluded
        or not is_usable(draft, first)
        or not _has_room(draft, machine, first)
    ):
        chosen = best_host(draft, machine, excluded=excluded, order=order)
    if chosen in draft.room:
        draft.room[chosen] = draft.room[chosen].joined(machine)
    return chosen


def _has_room(draft: Draft, machine: Machine, name: HostName) -> bool:
    return name in draft.room and _is_sound(draft, name) and draft.room[name].why_not(machine) is None


def may_have_room(draft: Draft, step: Step, *, excluded: Collection[HostName | None]) -> bool:
    """Return whether a host that is full now could take a machine later."""
    labels = draft.machines[step.machine].labels.items()
    return any(
        name not in excluded and _is_sound(draft, name) and labels <= room.labels.items()
        for name, room in draft.room.items()
    )


def _needs_room(draft: Draft, order: Order, step: Step) -> bool:
    """Return whether a machine moves and has requirements that not every host meets."""
    machine = draft.machines.get(step.machine)
    # A recovery does not wait for room, and an external program chooses hosts by itself.
    placed_by_forewarn = step.moves and order.placed_by_forewarn and step.work is not Work.RECOVER
    asks = machine is not None and bool(machine.resources or machine.labels or order.terms.to)
    return placed_by_forewarn and asks


def machines_without_room(draft: Draft, order: Order, affected: Iterable[Step]) -> tuple[Waiting, ...]:
    """Return the machines that would find no room if all of these steps were announced together."""
    needy = [step for step in affected if _needs_room(draft, order, step)]
    if not needy:
        return ()
    before, waiting = dict(draft.room), []
    for step in needy:
        machine = draft.machines[step.machine]
        excluded = {machine.host}
        if not is_reserved(draft, step) and choose(draft, machine, excluded=excluded, order=order) is None:
            waiting.append(Waiting(what=step.name, reason=why_no_room(draft, order, machine), room=True))
    draft.room.clear()
    draft.room.update(before)
    return tuple(waiting)


def reserve_hosts(draft: Draft, order: Order, affected: Iterable[Step]) -> dict[MachineId, Step]:
    """Choose hosts for the machines that need room, and count them there from now on."""
    reserved: dict[MachineId, Step] = {}
    needy = [step for step in affected if _needs_room(draft, order, step) and not is_reserved(draft, step)]
    for step in needy:
        machine = draft.machines[step.machine]
        first = step.precheck.target if step.precheck is not None else None
        target = choose(draft, machine, excluded={machine.host}, order=order, first=first)
        draft.put_machine(replace(machine, bound_for=target))
        reserved[step.machine] = replace(step, target=target)
    return reserved


def is_reserved(draft: Draft, step: Step) -> bool:
    """Return whether a waiting machine has a reserved host that is still suitable."""
    machine = draft.machines[step.machine]
    if step.state is not StepState.WAITING or step.target is None or machine.bound_for != step.target:
        return False
    room = draft.room.get(step.target)
    fits = room is None or (
        all(left >= 0 for left in room.free.values()) and machine.labels.items() <= room.labels.items()
    )
    refused = step.target in {each.host for each in step.refused}
    return is_usable(draft, step.target) and fits and not refused


def waiting_for_reachable_host(draft: Draft, order: Order, affected: Iterable[Step]) -> tuple[Waiting, ...]:
    """Return the machines that wait because all hosts that could take them are unreachable.

    A machine that no host could take does not wait for this.
    """
    if not order.placed_by_forewarn or not _any_unreachable(draft):
        return ()
    waiting = []
    for step in affected:
        machine = draft.machines.get(step.machine)
        if machine is None or not step.moves or step.state is not StepState.WAITING:
            continue
        if bare_metal.host_of(draft, machine) is not None:
            continue
        # A recovered machine may return to its own host if that was restored in the meantime.
        own = None if step.work is Work.RECOVER else machine.host
        excluded = {own, *(refused.host for refused in step.refused)}
        away = "" if is_reserved(draft, step) else _all_unreachable(draft, machine, order, excluded=excluded)
        if away:
            waiting.append(Waiting(what=step.name, reason=away, room=True))
    return tuple(waiting)


def _any_unreachable(draft: Draft) -> bool:
    rooms, hosts = draft.known_room.values(), draft.hosts.values()
    away = any(room.unreachable_since is not None for room in rooms)
    return away or any(host.unreachable_since is not None for host in hosts)


def _all_unreachable(
    draft: Draft, machine: Machine, order: Order, *, excluded: Collection[HostName | None]
) -> str:
    """Name the unreachable hosts that could take a machine; "" if a reachable host can, or none could."""
    own = _kept_on(draft, machine) if order.terms.to is None else order.terms.to
    since: dict[HostName, datetime] = {}
    for name in sorted(draft.known_room) if own is None else [own]:
        room, at = draft.known_room.get(name), _unreachable_since(draft, name)
        fits = room is None or room.why_not(machine) is None
        if name not in excluded and fits and _is_sound(draft, name) and at is not None:
            since[name] = at
    if not since or best_host(draft, machine, excluded=excluded, order=order) is not None:
        return ""
    return f"finds no host: {unreached(since)}"


def why_no_room(draft: Draft, order: Order, machine: Machine) -> str:
    """Explain why a machine finds no host."""
    there = "" if order.terms.to is None else why_unsuitable(draft, machine, order.terms.to)
    if there:
        return f"cannot go yet: {there}"
    away = _all_unreachable(draft, machine, order, excluded={machine.host})
    return away or no_room_for(_usable_rooms(draft), machine)


def why_unsuitable(draft: Draft, machine: Machine, host: HostName) -> str:
    """Explain why a host cannot take a machine now, or return ""."""
    known, room = draft.hosts.get(host), draft.room.get(host)
    if known is not None and known.bare_metal:
        return f"host {host} is bare metal, and carries only itself"
    if known is not None and known.state is not HostState.OK:
        return f"host {host} is {known.state}"
    if room is None:
        return f"host {host} takes no machines"
    lack = room.why_not(machine)
    return "" if lack is None else f"host {host} lacks {lack}"


def unmet_requirement(draft: Draft, machine: Machine) -> str:
    """Name the requirement of a machine that most sound hosts do not meet, or return ""."""
    return most_common_lack(_usable_rooms(draft), machine) if machine.labels or machine.resources else ""


def _usable_rooms(draft: Draft) -> Iterable[Room]:
    return (draft.room[name] for name in sorted(draft.room) if is_usable(draft, name))


def driver_of_best_host(draft: Draft, machine: Machine) -> str | None:
    """Return the driver that the best host declares, or None."""
    chosen = best_host(draft, machine, excluded=(), reachable=False)
    if chosen is None:
        return None
    host = draft.hosts.get(chosen)
    return host.driver if host is not None else draft.room[chosen].driver


def best_host(
    draft: Draft,
    machine: Machine,
    *,
    excluded: Collection[HostName | None],
    order: Order | None = None,
    reachable: bool = True,
) -> HostName | None:
    """Return the best sound host for a machine without counting it there; None if there is no such host.

    With `reachable=False`, the host may be unreachable now.
    """
    may_go_to = is_usable if reachable else _is_sound
    if order is not None and order.terms.to is not None:
        to = order.terms.to
        unsuitable = to in excluded or why_unsuitable(draft, machine, to) or not may_go_to(draft, to)
        return None if unsuitable else to
    if (own := _kept_on(draft, machine)) is not None and own not in excluded:
        return own if may_go_to(draft, own) else None

    def fits(name: HostName) -> bool:
        return name not in excluded and may_go_to(draft, name) and _has_room(draft, machine, name)

    group = draft.groups[machine.group]
    budget = draft.base.budgets.get(group.name) if group.policy.budget else None
    spare = None if budget is None else budget.at_best
    source = _Source.of(draft, machine, order.steps if order else ())
    homes = [name for name in (order.terms.homes if order else ()) if name in draft.room and fits(name)]
    welcoming = {
        name: room
        for name in homes
        if not any(_drawbacks(room := draft.room[name], machine, spare, source)[:2])
        and source.mismatch(room, machine) < _UNLIKE
    }
    if welcoming:
        return min(welcoming, key=lambda name: _fullness(welcoming[name], machine, name))
    sound = [name for name in draft.room if fits(name)]
    if not sound:
        return None
    drawbacks = {name: _drawbacks(draft.room[name], machine, spare, source) for name in sound}
    fewest = min(drawbacks.values())
    rooms = {name: draft.room[name] for name in sound if drawbacks[name] == fewest}
    return _least_mismatch(rooms, machine, source)


def _kept_on(draft: Draft, machine: Machine) -> HostName | None:
    """Return the only host that can start a stopped machine: the hypervisor that still defines it.

    A simulated machine, or one of an external program, can start anywhere.
    """
    host = draft.hosts.get(machine.last_host) if machine.last_host is not None else None
    if host is None or draft.defaults.driver_of(host.driver) in SYNCHRONOUS_DRIVERS:
        return None
    room = draft.room.get(host.name)  # loaded for some hosts only
    fits = room is None or room.why_not(machine) is None
    return host.name if fits and _is_sound(draft, host.name) else None


def _drawbacks(room: Room, machine: Machine, spare: int | None, source: "_Source") -> tuple[bool, bool, bool]:
    """Return the main drawbacks of a host, the most serious first.

    1. The host would carry more machines of one update domain than their group can spare, so that it could
       no longer be maintained.
    2. The host has an open order, so that the machine would soon get another event and move again.
    3. The host carries far more machines than the one that the machine leaves.
    """
    crowded = spare is not None and room.of_domain(machine) >= spare
    return crowded, room.busy, room.carried >= source.enough


def _least_mismatch(rooms: Mapping[HostName, Room], machine: Machine, source: "_Source") -> HostName:
    """Choose the host with the least mismatch, then the emptiest, then the one with the fewest of the group.

    A rollout needs nothing else: the hosts that it has finished are the emptiest. The search stops at hosts
    that are fuller than a match.
    """
    emptiest = sorted(rooms, key=lambda each: rooms[each].carried)

    def judged(name: HostName) -> tuple[int, int, int, HostName]:
        return source.mismatch(rooms[name], machine), *_fullness(rooms[name], machine, name)

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
    """The host that a machine leaves, for comparison with other hosts."""

    rack: str | None
    # For each group with several update domains: the domain on this host, or None if it has several.
    domains: Mapping[GroupName, int | None]
    enough: int  # a host with this many machines is worse than any other

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

    def mismatch(self, room: Room, machine: Machine) -> int:
        """Return how likely a machine causes additional waves on a host.

        It causes none on a host that shares waves with the source. Such a host is in the same rack, has the
        same update domain of some group, or is empty. It causes some on a host with another domain of some
        group. It causes most if that group is its own: an order on that host then needs two stages.
        """
        if machine.group not in self.domains:
            return _LIKE  # a standalone machine fits into any wave
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


# Half of a rack takes the machines of the other half, so it carries twice as many; hosts also differ. A lower
# factor would send single machines to other hosts, and each of these causes one more wave.
_FAR_MORE = 4
# How well a host matches the source, best first.
_LIKE, _UNKNOWN, _UNLIKE, _DIVIDED = range(4)


def _is_sound(draft: Draft, name: HostName) -> bool:
    """Return whether a host is sound. Hosts that are not loaded are in `room` only if they are."""
    host = draft.hosts.get(name)
    return host is None or host.state is HostState.OK


def _unreachable_since(draft: Draft, name: HostName) -> datetime | None:
    host = draft.hosts.get(name)
    if host is not None:
        return host.unreachable_since
    room = draft.known_room.get(name)
    return None if room is None else room.unreachable_since


def is_usable(draft: Draft, name: HostName) -> bool:
    """Return whether a host is sound and reachable."""
    return _is_sound(draft, name) and _unreachable_since(draft, name) is None
