"""How long work is expected to take: what windows, slots and forecasts are reckoned by."""

from collections.abc import Iterable
from datetime import timedelta

from forewarn.core.basic_types import EXTERNAL, Action, Mobility, Work
from forewarn.core.model.footprint import NO_MOVES, DomainShare, MovePace
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order, Step
from forewarn.core.policy import Policy

# What is done to machines that leave their host, by how they can.
MOVES = {
    Mobility.LIVE: Work.FREEZE,
    Mobility.LIVE_ONLY: Work.FREEZE,
    Mobility.COLD: Work.REDEPLOY,
}

# What a machine's resources call its memory, in GiB.
MEMORY = "memory"
# A machine of no declared size: what a live migration of 32 GiB takes, and then some.
MOVE = timedelta(minutes=4)
# What each move takes beside copying memory: preparing the target, and the hypervisor's own calls.
LEAST_MOVE = timedelta(seconds=30)
# Over a link of 10 Gbit/s, of which half is left, and with pages that must be copied twice.
PER_GIB = timedelta(seconds=3.5)
# More than any machine has: memory that is declared in other units must not keep a host for years.
MOST_MEMORY = 24 * 1024.0
# How many machines leave a host at the same time, unless the host says otherwise.
MOVES_AT_ONCE = 2


def move_time(machine: Machine | None, pace: MovePace = NO_MOVES) -> timedelta:
    """Return how long it takes to move a machine: by its memory, if that is declared, and by past moves."""
    memory = None if machine is None else machine.resources.get(MEMORY)
    return (MOVE if memory is None else LEAST_MOVE + min(memory, MOST_MEMORY) * PER_GIB) * pace.factor


def moves_time(machines: Iterable[Machine | None], at_once: int | None, pace: MovePace) -> timedelta:
    """Return how long it takes to move machines, so many at once; None: all of them."""
    times = [move_time(machine, pace) for machine in machines]
    longest = max(times, default=timedelta())
    return longest if at_once is None else max(longest, sum(times, timedelta()) / at_once)


def shares_time(shares: Iterable[DomainShare], at_once: int | None, pace: MovePace = NO_MOVES) -> timedelta:
    """Return how long it takes to move machines of which only sums are known, so many at once."""
    longest, every = timedelta(), timedelta()
    for share in shares:
        sized = share.machines - share.unsized
        longest = max(longest, MOVE if share.unsized else longest)
        longest = max(longest, LEAST_MOVE + min(share.largest, MOST_MEMORY) * PER_GIB if sized else longest)
        memory = min(share.memory, sized * MOST_MEMORY)
        every += share.unsized * MOVE + sized * LEAST_MOVE + memory * PER_GIB
    return (longest if at_once is None else max(longest, every / at_once)) * pace.factor


def moves_at_once(order: Order, declared: int | None) -> int | None:
    """Return how many machines of the host of an order move together."""
    return at_once(declared, outside=order.driver == EXTERNAL)


def at_once(declared: int | None, *, outside: bool) -> int | None:
    """Return how many machines of a host move together; those who work outside see to that themselves."""
    return None if outside else declared or MOVES_AT_ONCE


def host_time(order: Order, policy: Policy) -> timedelta:
    """Return how long the work itself takes: as its order says."""
    return order.terms.expected or policy.expected_work


def is_move(order: Order, affected: Iterable[Step]) -> bool:
    """Return whether these steps only make room on a host, or come back to it."""
    steps = tuple(affected)
    return order.action is Action.SERVICE and bool(steps) and all(step.moves for step in steps)
