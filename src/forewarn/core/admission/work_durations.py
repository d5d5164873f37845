"""Expected durations of work, for windows, slots and forecasts."""

from collections.abc import Iterable
from datetime import timedelta

from forewarn.core.basic_types import EXTERNAL, Mobility, Work
from forewarn.core.model.footprint import NO_MOVES, DomainShare, MovePace
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.model.order import Order

# The work that moves a machine off its host, by its mobility.
MOVES = {
    Mobility.LIVE: Work.FREEZE,
    Mobility.LIVE_ONLY: Work.FREEZE,
    Mobility.COLD: Work.REDEPLOY,
}

# The name of the resource that holds a machine's memory in GiB.
MEMORY = "memory"
# A machine without a declared size: longer than a live migration of 32 GiB takes.
MOVE = timedelta(minutes=4)
# The time of a move apart from copying memory: preparing the target, and the calls of the hypervisor.
LEAST_MOVE = timedelta(seconds=30)
# Half of a link of 10 Gbit/s is free, and some pages must be copied twice.
PER_GIB = timedelta(seconds=3.5)
# More than any machine has. A memory declared in other units must not block a host for years.
MOST_MEMORY = 24 * 1024.0
# How many machines leave a host at the same time, unless the host declares another number.
MOVES_AT_ONCE = 2


def move_time(machine: Machine | None, pace: MovePace = NO_MOVES) -> timedelta:
    """Return the expected time to move a machine, from its memory and from past moves."""
    memory = None if machine is None else machine.resources.get(MEMORY)
    return (MOVE if memory is None else LEAST_MOVE + min(memory, MOST_MEMORY) * PER_GIB) * pace.factor


def moves_time(machines: Iterable[Machine | None], at_once: int | None, pace: MovePace) -> timedelta:
    """Return the expected time to move machines, `at_once` at a time; None: all together."""
    times = [move_time(machine, pace) for machine in machines]
    longest = max(times, default=timedelta())
    return longest if at_once is None else max(longest, sum(times, timedelta()) / at_once)


def shares_time(shares: Iterable[DomainShare], at_once: int | None, pace: MovePace = NO_MOVES) -> timedelta:
    """Return the expected time to move machines whose sizes are known only as sums."""
    longest, every = timedelta(), timedelta()
    for share in shares:
        sized = share.machines - share.unsized
        longest = max(longest, MOVE if share.unsized else longest)
        longest = max(longest, LEAST_MOVE + min(share.largest, MOST_MEMORY) * PER_GIB if sized else longest)
        memory = min(share.memory, sized * MOST_MEMORY)
        every += share.unsized * MOVE + sized * LEAST_MOVE + memory * PER_GIB
    return (longest if at_once is None else max(longest, every / at_once)) * pace.factor


def moves_at_once(order: Order, host: Host | None) -> int | None:
    """Return how many machines of the order's host move at the same time; None: no limit."""
    return at_once(host.at_once if host else None, outside=order.driver == EXTERNAL)


def at_once(declared: int | None, *, outside: bool) -> int | None:
    """Return how many machines of a host move at the same time. An external program has no limit."""
    return None if outside else declared or MOVES_AT_ONCE
