"""Everything a request may have to wait for: its group to be enabled and ready, its document to change."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from forewarn.core.errors import ForewarnError, Unavailable
from forewarn.core.words import GroupName
from forewarn.guest.answers.time_cache import Pulse
from forewarn.guest.board.board import Board, Seat
from forewarn.guest.board.waiting import end
from forewarn.guest.commands import Desk
from forewarn.guest.requests.plan import Poll
from forewarn.guest.settings import Limits

# A timer may fire a little early, or the clock stand still; looking again at once would be a busy loop.
SHORTEST_WAIT = 0.01


class Gone(ForewarnError):
    """The machine that asked is no longer known, or no longer this caller."""


class Caller(Protocol):
    """Whoever sent a request, for as long as the answer takes."""

    address: str
    leaving: bool  # it has no time left: the connection or the service is about to end
    waits_on: asyncio.Future[None] | None

    @property
    def seat(self) -> Seat | None:
        """Who that is at this moment."""
        ...


class Patience:
    """Waits on behalf of callers. Whoever has waited is asked anew who it is."""

    def __init__(self, board: Board, desk: Desk, pulse: Pulse, limits: Limits) -> None:
        self._board = board
        self._desk = desk
        self._pulse = pulse
        self._limits = limits
        self._enabling: dict[GroupName, asyncio.Task[None]] = {}

    async def enabled(self, caller: Caller) -> Seat:
        """Return the caller's seat once the feature is on for its group."""
        seat = seat_of(caller)
        if seat.audience.enabled:
            return seat
        await self._enable(seat.audience.name)
        seat = seat_of(caller)
        if not seat.audience.enabled:
            raise Unavailable("The group is not enabled yet")
        return seat

    async def ready(self, caller: Caller) -> Seat:
        """Return the caller's seat once its group is answered."""
        seat = await self.enabled(caller)
        while seat.audience.ready > self._service_seconds():
            if caller.leaving:
                raise Unavailable("The group is not ready yet")
            await self.wait(caller, seat, self._pulse.until(seat.audience.ready))
            seat = await self.enabled(caller)
        return seat

    async def change(self, caller: Caller, poll: Poll) -> tuple[Seat, Poll]:
        """Hold a poll until the document differs from the caller's, or its time is over."""
        seat = await self.ready(caller)
        if poll.match_any:
            # It has the present document, and wants to hear of the next one.
            poll = replace(poll, match=frozenset((self._board.etag(seat.audience),)), match_any=False)
        if seat.held >= self._limits.held:
            raise Unavailable("Too many requests of this machine wait already")
        holder = seat
        holder.held += 1
        try:
            return await self._hold(caller, seat, poll), poll
        finally:
            holder.held -= 1

    async def _hold(self, caller: Caller, seat: Seat, poll: Poll) -> Seat:
        loop = asyncio.get_running_loop()
        ends = loop.time() + (poll.wait or 0)
        while poll.has(self._board.etag(seat.audience)) and not caller.leaving and not self._spoiled(seat):
            left = ends - loop.time()
            if left <= 0:
                break
            await self.wait(caller, seat, min(left, self._until_spoiled(seat, left)))
            seat = await self.ready(caller)
        return seat

    def _spoiled(self, seat: Seat) -> bool:
        """Whether a rehearsal wants the request to meet a fault."""
        return seat.role is not None and seat.role.spoils(self._now())

    def _until_spoiled(self, seat: Seat, otherwise: float) -> float:
        """Say how long it really takes until a fault may begin."""
        moment = None if seat.role is None else seat.role.next_change(self._now())
        seconds = None if moment is None else self._pulse.until(moment.timestamp())
        return otherwise if seconds is None else seconds

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._service_seconds(), UTC)

    async def wait(self, caller: Caller, seat: Seat, seconds: float | None) -> None:
        """Wait until something happens to the caller's group, the caller leaves, or time is over."""
        group = seat.audience.name
        future = self._board.waiting.add(group, seat)
        timer = None
        if seconds is not None:
            timer = asyncio.get_running_loop().call_later(max(seconds, SHORTEST_WAIT), end, future)
        caller.waits_on = future
        try:
            await future
        finally:
            caller.waits_on = None
            self._board.waiting.remove(group, future)
            if caller.seat is seat:
                self._board.note(seat, self._service_seconds())  # it was polling until now
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
            await self._desk.enable(group)
        finally:
            del self._enabling[group]

    def _service_seconds(self) -> float:
        self._pulse.beat()
        return self._pulse.seconds


def seat_of(caller: Caller) -> Seat:
    """Return who a caller is; Gone if nobody any more."""
    seat = caller.seat
    if seat is None:
        raise Gone
    return seat
