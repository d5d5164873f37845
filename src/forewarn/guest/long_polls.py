"""Requests that wait: for their group to be enabled and ready, or for a change of the document."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from forewarn.core.basic_types import GroupName
from forewarn.core.errors import ForewarnError
from forewarn.guest.answers import TimeCache
from forewarn.guest.board.board import Board
from forewarn.guest.board.members import BoardMachine, end
from forewarn.guest.guest_requests import Poll
from forewarn.guest.settings import GuestCommands, Limits

# Prevents a busy loop when a timer fires early or the clock stands still.
SHORTEST_WAIT = 0.01


class CallerGone(ForewarnError):
    """The machine was removed, or the caller's address belongs to another machine now."""


class TryAgain(ForewarnError):
    """The request cannot be answered now; guests may read the reason."""


class GuestCaller(Protocol):
    """The sender of a request."""

    address: str
    leaving: bool  # the connection or the server is about to end, so no request may wait
    waits_on: asyncio.Future[None] | None

    @property
    def member(self) -> BoardMachine | None:
        """The machine that the caller is now."""
        ...


class LongPolls:
    """Waits on behalf of callers, and looks up their machines again after each wait."""

    def __init__(self, board: Board, commands: GuestCommands, times: TimeCache, limits: Limits) -> None:
        self._board = board
        self._commands = commands
        self._times = times
        self._limits = limits
        self._enabling: dict[GroupName, asyncio.Task[None]] = {}

    async def enabled(self, caller: GuestCaller) -> BoardMachine:
        """Enable the caller's group if needed; return the caller's machine."""
        member = member_of(caller)
        if member.group.enabled:
            return member
        await self._enable(member.group.name)
        member = member_of(caller)
        if not member.group.enabled:
            raise TryAgain("The group is not enabled yet")
        return member

    async def ready(self, caller: GuestCaller) -> BoardMachine:
        """Wait until the caller's group may be answered; return the caller's machine."""
        member = await self.enabled(caller)
        while member.group.ready > self._service_seconds():
            if caller.leaving:
                raise TryAgain("The group is not ready yet")
            await self.wait(caller, member, self._times.until(member.group.ready))
            member = await self.enabled(caller)
        return member

    async def change(self, caller: GuestCaller, poll: Poll) -> tuple[BoardMachine, Poll]:
        """Hold a poll until the document differs from the caller's, or the wait is over."""
        member = await self.ready(caller)
        if poll.match_any:
            # With `*` the caller waits for any document after the current one.
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
        while poll.has(self._board.etag(member.group)) and not caller.leaving and not self._has_fault(member):
            left = ends - loop.time()
            if left <= 0:
                break
            await self.wait(caller, member, min(left, self._until_fault(member, left)))
            member = await self.ready(caller)
        return member

    def _has_fault(self, member: BoardMachine) -> bool:
        """Whether a rehearsal injects a fault into the request now."""
        return member.rehearsal is not None and member.rehearsal.has_fault(self._now())

    def _until_fault(self, member: BoardMachine, otherwise: float) -> float:
        """Return the real seconds until a fault may begin."""
        moment = None if member.rehearsal is None else member.rehearsal.next_change(self._now())
        seconds = None if moment is None else self._times.until(moment.timestamp())
        return otherwise if seconds is None else seconds

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._service_seconds(), UTC)

    async def wait(self, caller: GuestCaller, member: BoardMachine, seconds: float | None) -> None:
        """Wait until the caller's group changes, the caller leaves, or the time is over."""
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
        """Enable a group with one command for all callers that wait for it."""
        task = self._enabling.get(group)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._commands.enable(group))
            task.add_done_callback(lambda _: self._enabling.pop(group))
            self._enabling[group] = task
        # A caller that disconnects must not cancel the command for the others.
        await asyncio.shield(task)

    def _service_seconds(self) -> float:
        self._times.refresh()
        return self._times.seconds


def member_of(caller: GuestCaller) -> BoardMachine:
    """Return the machine that a caller is now; raise CallerGone if there is none."""
    member = caller.member
    if member is None:
        raise CallerGone
    return member
