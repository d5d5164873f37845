"""Everything a request may have to wait for: its group to be enabled and ready, its document to change."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from forewarn.core.basic_types import GroupName
from forewarn.core.errors import ForewarnError
from forewarn.guest.answers import TimeCache
from forewarn.guest.board.board import Board
from forewarn.guest.board.members import BoardMachine, end
from forewarn.guest.requests import Poll
from forewarn.guest.settings import GuestCommands, Limits

# A timer may fire a little early, or the clock stand still; looking again at once would be a busy loop.
SHORTEST_WAIT = 0.01


class CallerGone(ForewarnError):
    """The machine that asked is no longer known, or no longer this caller."""


class TryAgain(ForewarnError):
    """A request cannot be answered now, for a reason that its guest may read."""


class GuestCaller(Protocol):
    """The sender of a request, for as long as the answer takes."""

    address: str
    leaving: bool  # it has no time left: the connection or the service is about to end
    waits_on: asyncio.Future[None] | None

    @property
    def member(self) -> BoardMachine | None:
        """Who that is at this moment."""
        ...


class Waits:
    """Waits on behalf of callers; after a wait it is looked up anew which machine each is."""

    def __init__(self, board: Board, commands: GuestCommands, times: TimeCache, limits: Limits) -> None:
        self._board = board
        self._commands = commands
        self._times = times
        self._limits = limits
        self._enabling: dict[GroupName, asyncio.Task[None]] = {}

    async def enabled(self, caller: GuestCaller) -> BoardMachine:
        """Return the caller once the feature is on for its group."""
        member = member_of(caller)
        if member.group.enabled:
            return member
        await self._enable(member.group.name)
        member = member_of(caller)
        if not member.group.enabled:
            raise TryAgain("The group is not enabled yet")
        return member

    async def ready(self, caller: GuestCaller) -> BoardMachine:
        """Return the caller once its group is answered."""
        member = await self.enabled(caller)
        while member.group.ready > self._service_seconds():
            if caller.leaving:
                raise TryAgain("The group is not ready yet")
            await self.wait(caller, member, self._times.until(member.group.ready))
            member = await self.enabled(caller)
        return member

    async def change(self, caller: GuestCaller, poll: Poll) -> tuple[BoardMachine, Poll]:
        """Hold a poll until the document differs from the caller's, or its time is over."""
        member = await self.ready(caller)
        if poll.match_any:
            # It has the present document, and wants to hear of the next one.
            poll = replace(poll, match=frozenset((self._board.etag(member.group),)), match_any=False)
        if member.held >= self._limits.held:
            raise TryAgain("Too many requests of this machine wait already")
        holder = member
        holder.held += 1
        try:
            return await self._hold(caller, member, poll), poll
        finally:
            holder.held -= 1

    async def _hold(self, caller: GuestCaller, member: BoardMachine, poll: Poll) -> BoardMachine:
        loop = asyncio.get_running_loop()
        ends = loop.time() + (poll.wait or 0)
        while poll.has(self._board.etag(member.group)) and not caller.leaving and not self._spoiled(member):
            left = ends - loop.time()
            if left <= 0:
                break
            await self.wait(caller, member, min(left, self._until_spoiled(member, left)))
            member = await self.ready(caller)
        return member

    def _spoiled(self, member: BoardMachine) -> bool:
        """Whether a rehearsal wants the request to meet a fault."""
        return member.rehearsal is not None and member.rehearsal.spoils(self._now())

    def _until_spoiled(self, member: BoardMachine, otherwise: float) -> float:
        """Return how many real seconds it takes until a fault may begin."""
        moment = None if member.rehearsal is None else member.rehearsal.next_change(self._now())
        seconds = None if moment is None else self._times.until(moment.timestamp())
        return otherwise if seconds is None else seconds

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._service_seconds(), UTC)

    async def wait(self, caller: GuestCaller, member: BoardMachine, seconds: float | None) -> None:
        """Wait until something happens to the caller's group, the caller leaves, or time is over."""
        group = member.group.name
        future = self._board.waiting.add(group, member)
        timer = None
        if seconds is not None:
            timer = asyncio.get_running_loop().call_later(max(seconds, SHORTEST_WAIT), end, future)
        caller.waits_on = future
        try:
            await future
        finally:
            caller.waits_on = None
            self._board.waiting.remove(group, future)
            if caller.member is member:
                self._board.note(member, self._service_seconds())  # it was polling until now
            if timer is not None:
                timer.cancel()

    async def _enable(self, group: GroupName) -> None:
        """Have a group enabled, once for all who wait for it."""
        task = self._enabling.get(group)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._ask_to_enable(group))
            self._enabling[group] = task
        # A caller that goes away must not take the others' hope with it.
        await asyncio.shield(task)

    async def _ask_to_enable(self, group: GroupName) -> None:
        try:
            await self._commands.enable(group)
        finally:
            del self._enabling[group]

    def _service_seconds(self) -> float:
        self._times.refresh()
        return self._times.seconds


def member_of(caller: GuestCaller) -> BoardMachine:
    """Return which machine a caller is; CallerGone if it is none any more."""
    member = caller.member
    if member is None:
        raise CallerGone
    return member
