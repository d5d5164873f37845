"""Recovery from one event: handlers undo their preparation in reverse order.

A handler that asks for another try does not delay the others: the agent tries it again later. Neither does a
handler that only notifies.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection

from forewarn.agent.care.agent_context import AgentContext, whenever
from forewarn.agent.care.attempts import Attempts, resumable
from forewarn.agent.care.comparison import held_by_another
from forewarn.agent.handling import Again, Never, Outcome, Ready, Side
from forewarn.agent.journal.entries import GONE, Owed
from forewarn.agent.journal.tracked_events import TrackedEvent

NOT_IN_THE_CONFIG = "it is no longer in the config: its preparation stays in effect"


class Recovery:
    """Undoes the preparation for an event."""

    def __init__(
        self, id_: str, context: AgentContext, work: Attempts, pause: Callable[[float], Awaitable[None]]
    ) -> None:
        """Take an event that is over, and a function that waits for a time or for a change."""
        self._id = id_
        self._context = context
        self._work = work
        self._pause = pause

    async def run(self, names: Collection[str]) -> None:
        """Undo the preparation of these handlers."""
        await self._end_unfinished(names)
        async with asyncio.TaskGroup() as aside:
            for name in self._order(names):
                handler = self._context.config.handler(name)
                if handler is not None and handler.only_notifies:
                    aside.create_task(self._persist(name))  # a notification may be slow
                elif (after := await self._try(name, tries=1)) is not None:
                    aside.create_task(self._persist(name, after))

    @property
    def _tracked(self) -> TrackedEvent:
        return self._context.tracked(self._id)

    def _order(self, names: Collection[str]) -> list[str]:
        """Return the handlers that must recover, in order; those missing from the config come last."""
        known = [handler.name for handler in self._context.config.handlers]
        touched = [name for name in self._tracked.touched() if name in names]
        return sorted(
            (name for name in touched if not self._tracked.recovered(name)),
            key=lambda each: known.index(each) if each in known else -1,
            reverse=True,
        )

    async def _persist(self, name: str, after: float | None = None) -> None:
        """Try until the recovery has ended; wait first if it was tried before."""
        tries = 0 if after is None else 1
        while tries == 0 or after is not None:
            if after is not None:
                await self._pause(after)
            tries += 1
            after = await self._try(name, tries=tries)

    async def _try(self, name: str, *, tries: int) -> float | None:
        """Run a handler's recovery if it is needed; return the seconds until another try."""
        if self._is_spared(name):
            return None
        async with self._context.turns[name].turn(whenever):
            # The event that held the turn before may need this preparation.
            if self._is_spared(name) or (handler := self._context.config.handler(name)) is None:
                return None
            outcome = await self._work.attempt(handler, Side.RECOVER, handler.timeout)
            after = None
            if isinstance(outcome, Again):
                after = handler.pause(outcome.after, tries=tries)
                outcome = self._in_time(outcome, name, after=after, patience=handler.patience)
            self._work.end(name, Side.RECOVER, outcome)
            return after if isinstance(outcome, Again) else None

    def _in_time(self, outcome: Again, name: str, *, after: float, patience: float) -> Outcome:
        """Give up after the handler's `patience`, counted over restarts too: then a person must act."""
        known = self._tracked.attempt(Side.RECOVER, name)
        passed = 0.0 if known is None else (self._context.now() - known.first).total_seconds()
        if passed + after < patience:
            return outcome
        return Never(f"{outcome.why}, and another try would be after its limit of {patience:g} s")

    def _is_spared(self, name: str) -> bool:
        """Skip a recovery if another event needs the preparation, or if the handler is not in the config."""
        if self._context.config.handler(name) is None:
            self._work.skip_recovery(name, Never(NOT_IN_THE_CONFIG))
            return True
        other = held_by_another(self._context.journal.tracked_events, self._id, name)
        if other is None:
            return False
        for thing in self._tracked.owes(name):
            self._context.journal.write(Owed(event=other, handler=name, thing=thing))
        self._work.skip_recovery(name, Ready(f"left to event {other}, which still needs it"))
        return True

    async def _end_unfinished(self, names: Collection[str]) -> None:
        """Stop the programs of preparations that have not ended."""
        for (side, name), attempt in self._tracked.attempts.items():
            if side is Side.PREPARE and name in names and not attempt.settled:
                async with self._context.turns[name].turn(whenever):
                    handler = self._context.config.handler(name)
                    found = handler and await resumable(self._context, self._tracked, handler, side)
                    if found:
                        await found.end()
                    self._work.end(name, side, Never(GONE))
