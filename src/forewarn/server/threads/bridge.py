"""The way between threads: from the two loops to the worker, and back to the boards."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from forewarn.control.plane import Plane
from forewarn.control.ports.store import Delta
from forewarn.control.rehearsals.ledger import Account
from forewarn.core.errors import Unavailable
from forewarn.core.model.slice import Sent
from forewarn.core.rehearsal.faults import Fault
from forewarn.core.words import EventId, GroupName, MachineId, ProjectName
from forewarn.guest.board.board import Board
from forewarn.guest.rehearsal.registry import Playhouse
from forewarn.guest.server import GuestServer
from forewarn.server.threads.worker import Worker

T = TypeVar("T")

# Longer than the guest loop is ever busy; after that something is badly wrong, and it is better said.
PATIENCE = 30.0


class Boards:
    """The boards, as the worker's thread reaches them: they change on the guest loop only."""

    def __init__(self, board: Board, guest: GuestServer, loop: asyncio.AbstractEventLoop) -> None:
        self._board = board
        self._guest = guest
        self._loop = loop

    def publish(self, delta: Delta) -> None:
        """Show a change; returns when guests are told."""
        asyncio.run_coroutine_threadsafe(self._guest.apply(delta), self._loop).result(PATIENCE)

    def time_moved(self) -> None:
        """Let those look again who wait for service time."""
        self._loop.call_soon_threadsafe(self._guest.time_moved)

    def pending(self) -> bool:
        """Say whether somebody has polled since the last `take`."""
        return self._board.unsaved()

    def take(self) -> tuple[Mapping[GroupName, datetime], Mapping[MachineId, datetime]]:
        """Hand over who has polled since the last call."""

        async def taken() -> tuple[Mapping[GroupName, datetime], Mapping[MachineId, datetime]]:
            return self._guest.take()

        return asyncio.run_coroutine_threadsafe(taken(), self._loop).result(PATIENCE)

    def has_sent(self) -> bool:
        """Say whether a machine has been sent an event since the last `take_sent`."""
        return bool(self._board.sent)

    def take_sent(self) -> Sent:
        """Hand over which events machines have been sent since the last call, and when first."""

        async def taken() -> Sent:
            return self._guest.take_sent()

        return asyncio.run_coroutine_threadsafe(taken(), self._loop).result(PATIENCE)

    def fresh(self, machines: Sequence[MachineId]) -> Mapping[MachineId, datetime]:
        """Say when these machines were last seen, as far as that is not handed over yet."""
        found = ((machine, self._board.last_seen(machine)) for machine in machines)
        return {machine: at for machine, at in found if at is not None}


class Plays:
    """The rehearsals at the guest endpoint, as the worker's thread reaches them."""

    def __init__(self, playhouse: Playhouse, loop: asyncio.AbstractEventLoop) -> None:
        self._playhouse = playhouse
        self._loop = loop

    def open(self, project: ProjectName, machines: Mapping[MachineId, str]) -> None:
        """Give machines a part."""
        self._do(lambda: self._playhouse.open(project, machines))

    def meet(self, project: ProjectName, faults: Sequence[Fault]) -> None:
        """Let guests meet these faults from now on, and no others."""
        self._do(lambda: self._playhouse.meet(project, faults))

    def accounts(self, project: ProjectName) -> Sequence[Account]:
        """Say what guests have done so far."""
        return self._do(lambda: self._playhouse.accounts(project))

    def close(self, project: ProjectName) -> None:
        """Let everybody be answered as ever."""
        self._do(lambda: self._playhouse.close(project))

    def _do(self, work: Callable[[], T]) -> T:
        async def done() -> T:
            return work()

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result(PATIENCE)


class FrontDesk:
    """The guest endpoint's desk: takes what guests bring to the worker."""

    def __init__(self) -> None:
        self._plane: Plane | None = None
        self._worker: Worker | None = None

    def open(self, plane: Plane, worker: Worker) -> None:
        """Begin to take things; before that everything is turned away."""
        self._plane, self._worker = plane, worker

    async def enable(self, group: GroupName) -> None:
        """Turn the feature on for a group."""
        plane, run = self._ready()
        await run(lambda: plane.enable(group))

    async def approve(self, machine: MachineId, events: Sequence[EventId], *, address: str) -> None:
        """Let events start early."""
        plane, run = self._ready()
        await run(lambda: plane.approve(machine, events, address=address))

    async def defer(self, machine: MachineId, events: Mapping[EventId, int], *, address: str) -> None:
        """Put events off."""
        plane, run = self._ready()
        await run(lambda: plane.defer(machine, events))

    def _ready(self) -> tuple[Plane, "Runner"]:
        if self._plane is None or self._worker is None:
            raise Unavailable("starting: try again in a moment")
        return self._plane, Runner(self._worker)


class Runner:
    """Runs a use case on the worker, for a loop that waits."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    async def __call__(self, job: Callable[[], T], /) -> T:
        """Return the job's answer once its effect can be seen."""
        return await asyncio.wrap_future(self._worker.submit(job))
