"""Calls between the guest loop, which owns the board, and the worker, which owns the store."""

import asyncio
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from forewarn.clock import Clock
from forewarn.control.interfaces import LastPolls, UntakenNotices
from forewarn.control.orders.guest_use_cases import GuestUseCases
from forewarn.core.basic_types import EventId, GroupName, MachineId, ProjectName
from forewarn.core.errors import NotFound, Unavailable, Uncertain
from forewarn.core.feed import Delta
from forewarn.core.model.slice import Sent
from forewarn.core.rehearsal_ledger import GuestAccount
from forewarn.core.rehearsal_rules import Fault
from forewarn.guest.board.board import Board
from forewarn.guest.board.members import BoardMachine
from forewarn.guest.rehearsal import RehearsalRegistry
from forewarn.guest.server import GuestServer
from forewarn.server.threads.jobs import Jobs, Turn
from forewarn.store.batch import Transaction

T = TypeVar("T")

# The guest loop is never busy for this long, in seconds. A longer wait is a bug and raises TimeoutError.
LOOP_TIMEOUT = 30.0
# Groups that one job enables: a few tens of milliseconds.
MOST_ENABLED = 200
# Events that one job approves: about ten milliseconds. A guest may name a hundred events of its group.
MOST_APPROVED = 8


class GuestLoop:
    """Runs functions on the guest loop for other threads."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def do(self, work: Callable[[], T]) -> T:
        """Run a function on the loop and return its result."""

        async def done() -> T:
            return work()

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result(LOOP_TIMEOUT)

    def publish(self, guest: GuestServer, deltas: Sequence[Delta]) -> None:
        """Apply changes to the board; return when guests can see them."""
        asyncio.run_coroutine_threadsafe(guest.apply(deltas), self._loop).result(LOOP_TIMEOUT)

    def soon(self, work: Callable[[], None]) -> None:
        """Schedule a function on the loop and return at once."""
        self._loop.call_soon_threadsafe(work)


class BoardActivity:
    """The polls and sent events that the board has collected, for other threads."""

    def __init__(self, board: Board, clock: Clock, loop: GuestLoop) -> None:
        self._board = board
        self._clock = clock
        self._loop = loop

    def pending(self) -> bool:
        """Whether machines have polled since the last `take`."""
        return self._board.unsaved()

    def take(self) -> tuple[Mapping[GroupName, datetime], Mapping[MachineId, datetime]]:
        """Return the groups and machines that have polled since the last call."""
        return self._loop.do(lambda: self._board.take(self._clock.now()))

    def has_notices(self) -> bool:
        """Whether a machine has been sent an event since the last `take_notices`."""
        return bool(self._board.sent)

    def take_notices(self) -> Sent:
        """Return the events that machines have been sent since the last call, and when first."""
        return self._loop.do(self._board.take_notices)

    def untaken_notices(self) -> UntakenNotices:
        """Return a view of the sent events that `take_notices` has not returned yet. Thread-safe."""
        return self._board.untaken_notices()

    def fresh(self) -> LastPolls:
        """Return the polls that `take` has not returned yet. Thread-safe."""
        return self._board.last_polls()


class RehearsalsOnLoop:
    """Lets the worker control the rehearsals at the guest endpoint."""

    def __init__(self, registry: RehearsalRegistry, loop: GuestLoop) -> None:
        self._registry = registry
        self._loop = loop

    def open(self, project: ProjectName, machines: Mapping[MachineId, str]) -> None:
        """Begin a rehearsal with these machines."""
        self._loop.do(lambda: self._registry.open(project, machines))

    def meet(self, project: ProjectName, faults: Sequence[Fault]) -> None:
        """Inject exactly these faults from now on."""
        self._loop.do(lambda: self._registry.meet(project, faults))

    def accounts(self, project: ProjectName) -> Sequence[GuestAccount]:
        """Return what guests have done so far."""
        return self._loop.do(lambda: self._registry.accounts(project))

    def close(self, project: ProjectName) -> None:
        """End a rehearsal."""
        self._loop.do(lambda: self._registry.close(project))


class WorkerCommands:
    """Runs the commands of guests on the worker."""

    def __init__(
        self, guests: GuestUseCases, jobs: Jobs, *, members: Mapping[str | int, BoardMachine]
    ) -> None:
        """Take all machines of the board: `members` gives the project whose queue a machine's job joins."""
        self._guests = guests
        self._members = members
        self._jobs = jobs
        self._enabling: _EnableJob | None = None  # owner: the guest loop

    async def enable(self, group: GroupName) -> None:
        """Enable notice for a group; groups that wait for the worker together share one job."""
        mine = self._enabling
        # A job can be done without having been taken: it timed out in the queue.
        if mine is None or mine.enabled.done() or not mine.add(group):
            mine = self._enabling = _EnableJob(self._guests, group)
            # One job serves several projects, so it joins no project's queue.
            mine.enabled = asyncio.ensure_future(self._jobs.run(Turn.GUESTS, "", mine.enable_all))
        # A caller that disconnects must not cancel the job of the others.
        if group not in await asyncio.shield(mine.enabled):
            raise NotFound("Not found")

    async def approve(self, machine: MachineId, events: Sequence[EventId], *, address: str) -> None:
        """Approve events: all of them, or none if one never belonged to the machine's group.

        A long list is split into several jobs, so that the guests of other projects have their turns in
        between.
        """
        if len(events) <= MOST_APPROVED:
            await self._approve(machine, events, address=address)
            return
        listed = await self._run(machine, lambda tx: self._guests.listed(tx, machine, events))
        for first in range(0, len(listed), MOST_APPROVED):
            try:
                await self._approve(machine, listed[first : first + MOST_APPROVED], address=address)
            except Unavailable as error:
                if first == 0 or isinstance(error, Uncertain):
                    raise
                raise Uncertain(f"{first} of {len(listed)} events are approved: {error}") from None

    async def _approve(self, machine: MachineId, events: Sequence[EventId], *, address: str) -> None:
        await self._run(machine, lambda tx: self._guests.approve(tx, machine, events, address=address))

    async def defer(self, machine: MachineId, events: Mapping[EventId, int], *, address: str) -> None:
        """Defer events."""
        await self._run(machine, lambda tx: self._guests.defer(tx, machine, events))

    async def record_impostor(self, machine: MachineId, *, mac: str, address: str) -> None:
        """Record a request from a machine's address with another MAC address."""
        await self._run(
            machine, lambda tx: self._guests.record_impostor(tx, machine, mac=mac, address=address)
        )

    async def _run(self, machine: MachineId, work: Callable[[Transaction], T]) -> T:
        member = self._members.get(machine)
        project = "" if member is None else member.machine.project
        return await self._jobs.run(Turn.GUESTS, project, work)


class _EnableJob:
    """Enables the groups whose first polls come before the worker takes the job."""

    enabled: "asyncio.Future[Collection[GroupName]]"

    def __init__(self, guests: GuestUseCases, group: GroupName) -> None:
        self._guests = guests
        self._lock = threading.Lock()
        self._groups: list[GroupName] | None = [group]  # None: the worker has taken them; lock: self._lock

    def add(self, group: GroupName) -> bool:
        """Add a group; return False if the worker has taken the job or the job is full."""
        with self._lock:
            if self._groups is None or len(self._groups) >= MOST_ENABLED:
                return False
            self._groups.append(group)
            return True

    def enable_all(self, tx: Transaction) -> Collection[GroupName]:
        """Enable the groups, on the worker; return the groups that exist."""
        with self._lock:
            groups, self._groups = self._groups or [], None
        return self._guests.enable(tx, *groups)
