"""Where a machine goes that moves: to the emptiest host that does not carry too much of its group."""

from collections.abc import Collection

from forewarn.core.catalogue import WORKS
from forewarn.core.draft import Draft
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order
from forewarn.core.model.room import Room
from forewarn.core.words import EXTERNAL, HostName, HostState, ServiceMode, StepState

# Those that failed may be retried.
_UNPLACED = (StepState.WAITING, StepState.FAILED)


def may_be_placed(order: Order) -> bool:
    """Return whether machines of an order may yet have to be given another host."""
    evacuated = order.terms.mode is ServiceMode.EVACUATE
    moves = order.work is not None and (evacuated or WORKS[order.work].moves)
    if not order.open or not moves or order.driver == EXTERNAL:
        return False
    # The machines of a host may become more; that of an order on a machine is placed once.
    return order.machine is None or not order.stages or any(step.state in _UNPLACED for step in order.steps)


def choose(draft: Draft, machine: Machine, *, but: Collection[HostName | None]) -> HostName | None:
    """Choose the best sound host for a machine, and count the machine there; None if there is no other."""
    chosen = _best(draft, machine, but=but)
    if chosen is not None:
        draft.room[chosen] = draft.room[chosen].joined(machine)
    return chosen


def driver_where_chosen(draft: Draft, machine: Machine) -> str | None:
    """Return who does the work on the host that would be chosen; None if that is not said, or none can be."""
    chosen = _best(draft, machine, but=())
    if chosen is None:
        return None
    host = draft.hosts.get(chosen)
    return host.driver if host is not None else draft.room[chosen].driver


def _best(draft: Draft, machine: Machine, *, but: Collection[HostName | None]) -> HostName | None:
    sound = [name for name in draft.room if name not in but and _is_sound(draft, name)]
    if not sound:
        return None
    spare = _spare(draft, machine)
    return min(sound, key=lambda name: _badness(draft.room[name], machine, spare, name))


def _badness(
    room: Room, machine: Machine, spare: int | None, name: HostName
) -> tuple[bool, bool, int, int, HostName]:
    """Return what speaks against a host, the weightiest first.

    That its group could no longer spare what the host carries of one update domain: the host
    could not be maintained then. That it is being worked on: the machine would get an event again, and
    move again. Then how full it
    is, and how many of the group would be lost with it. A rollout needs no more than that: hosts that it
    is done with are the emptiest.
    """
    crowded = spare is not None and room.of_domain(machine) >= spare
    return crowded, room.busy, room.carried, room.of_group(machine.group), name


def _spare(draft: Draft, machine: Machine) -> int | None:
    """Return how many machines its group can do without at best; None if it has no budget."""
    group = draft.groups[machine.group]
    budget = draft.base.budgets.get(group.name) if group.policy.budget else None
    return None if budget is None else budget.at_best


def _is_sound(draft: Draft, name: HostName) -> bool:
    """Return whether a host is sound; those that are not loaded are in `room` only if they are."""
    host = draft.hosts.get(name)
    return host is None or host.state is HostState.OK
