"""The way between threads: from the guest loop to the worker, and back to the board."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
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
from forewarn.server.threads.jobs import Jobs
from forewarn.store.batch import Transaction

T = TypeVar("T")

# Longer than the guest loop is ever busy; after that something is badly wrong, and it is better said.
PATIENCE = 30.0
# Groups that are enabled in one go: a few tens of milliseconds.
MOST_ENABLED = 200
# Events that one job approves: about ten milliseconds. A guest may name a hundred of its group.
MOST_APPROVED = 8


class GuestLoop:
    """The loop on which the board changes, as other threads reach it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def do(self, work: Callable[[], T]) -> T:
        """Do something on the loop, and wait for it."""

        async def done() -> T:
            return work()

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result(PATIENCE)

    def publish(self, guest: GuestServer, deltas: Sequence[Delta]) -> None:
        """Show changes to guests; returns when they are shown."""
        asyncio.run_coroutine_threadsafe(guest.apply(deltas), self._loop).result(PATIENCE)

    def soon(self, work: Callable[[], None]) -> None:
        """Do something on the loop, and do not wait for it."""
        self._loop.call_soon_threadsafe(work)


class BoardActivity:
    """What guests have done, as other threads ask the board."""

    def __init__(self, board: Board, clock: Clock, loop: GuestLoop) -> None:
        self._board = board
        self._clock = clock
        self._loop = loop

    def pending(self) -> bool:
        """Return whether machines have polled since the last `take`."""
        return self._board.unsaved()

    def take(self) -> tuple[Mapping[GroupName, datetime], Mapping[MachineId, datetime]]:
        """Hand over which groups and machines have polled since the last call."""
        return self._loop.do(lambda: self._board.take(self._clock.now()))

    def has_notices(self) -> bool:
        """Return whether a machine has been sent an event since the last `take_notices`."""
        return bool(self._board.sent)

    def take_notices(self) -> Sent:
        """Hand over which events machines have been sent since the last call, and when first."""
        return self._loop.do(self._board.take_notices)

    def untaken_notices(self) -> UntakenNotices:
        """Return what tells of events that are not handed over yet. Any thread may ask."""
        return self._board.untaken_notices()

    def fresh(self) -> LastPolls:
        """Return the polls that are not handed over by now. Any thread may ask."""
        return self._board.last_polls()


class RehearsalsOnLoop:
    """The rehearsals at the guest endpoint, as the worker's thread reaches them."""

    def __init__(self, registry: RehearsalRegistry, loop: GuestLoop) -> None:
        self._registry = registry
        self._loop = loop

    def open(self, project: ProjectName, machines: Mapping[MachineId, str]) -> None:
        """Begin a rehearsal with machines."""
        self._loop.do(lambda: self._registry.open(project, machines))

    def meet(self, project: ProjectName, faults: Sequence[Fault]) -> None:
        """Let guests meet these faults from now on, and no others."""
        self._loop.do(lambda: self._registry.meet(project, faults))

    def accounts(self, project: ProjectName) -> Sequence[GuestAccount]:
        """Return what guests have done so far."""
        return self._loop.do(lambda: self._registry.accounts(project))

    def close(self, project: ProjectName) -> None:
        """End a rehearsal."""
        self._loop.do(lambda: self._registry.close(project))


class WorkerCommands:
    """What guests change, done by the worker."""

    def __init__(
        self, guests: GuestUseCases, jobs: Jobs, *, members: Mapping[str | int, BoardMachine]
    ) -> None:
        """Take all machines, by which it knows whose guests take turns."""
        self._guests = guests
        self._members = members
        self._jobs = jobs
        self._enabling: _Enabling | None = None  # owner: the guest loop

    async def enable(self, group: GroupName) -> None:
        """Turn the feature on for a group; those that wait for the worker together are one job."""
        mine = self._enabling
        # One that is over may never have been taken: it had waited too long.
        if mine is None or mine.enabled.done() or not mine.add(group):
            mine = self._enabling = _Enabling(self._guests, group)
            mine.enabled = asyncio.ensure_future(self._run(None, mine.run))
        # One of those who wait may go.
        if group not in await asyncio.shield(mine.enabled):
            raise NotFound("Not found")

    async def approve(self, machine: MachineId, events: Sequence[EventId], *, address: str) -> None:
        """Let events start early: all of them, or none if one never was of the machine's group.

        Many take several jobs, so that other projects' guests have their turns in between.
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
        """Record that somebody used a machine's address."""
        await self._run(
            machine, lambda tx: self._guests.record_impostor(tx, machine, mac=mac, address=address)
        )

    def _run(self, machine: MachineId | None, work: Callable[[Transaction], T]) -> Awaitable[T]:
        """Run a use case when it is the turn of the machine's project; None: of several projects."""
        member = None if machine is None else self._members.get(machine)
        return self._jobs.run_for_guests("" if member is None else member.machine.project)(work)


class _Enabling:
    """Groups that are enabled together: all whose first poll comes before the worker takes the job."""

    enabled: "asyncio.Future[Collection[GroupName]]"

    def __init__(self, guests: GuestUseCases, group: GroupName) -> None:
        self._guests = guests
        self._lock = threading.Lock()
        self._groups: list[GroupName] | None = [group]  # None: they have been taken; lock: self._lock

    def add(self, group: GroupName) -> bool:
        """Enable one more with them; False if it is too late, or they are enough."""
        with self._lock:
            if self._groups is None or len(self._groups) >= MOST_ENABLED:
                return False
            self._groups.append(group)
            return True

    def run(self, tx: Transaction) -> Collection[GroupName]:
        """Enable them, on the worker; return those that there are."""
        with self._lock:
            groups, self._groups = self._groups or [], None
        return self._guests.enable(tx, *groups)
