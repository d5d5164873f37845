"""Coming back from one event: what was prepared for it is undone, the last first.

A recovery that asks to be tried again keeps nobody waiting: the others go on, and it is come back to. Nor
does one that only tells.
"""

import asyncio
from collections.abc import Awaitable, Callable

from forewarn.agent.care.agent_context import Desk
from forewarn.agent.care.attempts import GONE, Work
from forewarn.agent.care.comparison import held_by_another
from forewarn.agent.care.launch import resumable
from forewarn.agent.handling import Again, Never, Outcome, Ready, Side
from forewarn.agent.journal.entries import Ending, Owed
from forewarn.agent.journal.tracked_events import Case

NOT_IN_THE_CONFIG = "it is no longer in the config: what it has prepared stays so"


class Recovery:
    """Undoes what was prepared for an event."""

    def __init__(self, id_: str, desk: Desk, work: Work, pause: Callable[[float], Awaitable[None]]) -> None:
        """Take an event that has left, and how to wait for so long or until there is news."""
        self._id = id_
        self._desk = desk
        self._work = work
        self._pause = pause

    async def run(self) -> list[str]:
        """See it through; returns who could not recover."""
        await self._end_unfinished()
        async with asyncio.TaskGroup() as aside:
            for name in self._order():
                handler = self._desk.config.handler(name)
                if handler is not None and handler.only_tells:
                    aside.create_task(self._persist(name))  # whoever listens may be slow
                elif (after := await self._try(name, tries=1)) is not None:
                    aside.create_task(self._persist(name, after))
        return [name for name in self._case.touched() if self._ending(name) is Ending.NEVER]

    @property
    def _case(self) -> Case:
        return self._desk.case(self._id)

    def _order(self) -> list[str]:
        """Name those that have begun to prepare and are not undone yet; whom the config has not come last."""
        names = [handler.name for handler in self._desk.config.handlers]
        return sorted(
            (name for name in self._case.touched() if not self._case.recovered(name)),
            key=lambda each: names.index(each) if each in names else -1,
            reverse=True,
        )

    def _ending(self, name: str) -> Ending | None:
        known = self._case.attempt(Side.RECOVER, name)
        return None if known is None else known.ending

    async def _persist(self, name: str, after: float | None = None) -> None:
        """Try until nothing is left to be tried; after so long, if it was tried already."""
        tries = 0 if after is None else 1
        while tries == 0 or after is not None:
            if after is not None:
                await self._pause(after)
            tries += 1
            after = await self._try(name, tries=tries)

    async def _try(self, name: str, *, tries: int) -> float | None:
        """Undo what a handler has prepared, unless that is not for it to do; returns when to try again."""
        if self._is_spared(name):
            return None
        async with self._desk.turns.take(name):
            # Whoever had the turn before may need what this would undo.
            if self._is_spared(name) or (handler := self._desk.config.handler(name)) is None:
                return None
            outcome = await self._work.attempt(handler, Side.RECOVER, handler.timeout)
            after = None
            if isinstance(outcome, Again):
                after = handler.pause(outcome.after, tries=tries)
                outcome = self._in_time(outcome, name, after=after, patience=handler.patience)
            self._work.end(name, Side.RECOVER, outcome)
            return after if isinstance(outcome, Again) else None

    def _in_time(self, outcome: Again, name: str, *, after: float, patience: float) -> Outcome:
        """Give up what was tried for long, over restarts too: people have to look at it."""
        known = self._case.attempt(Side.RECOVER, name)
        passed = 0.0 if known is None else (self._desk.now() - known.first).total_seconds()
        if passed + after < patience:
            return outcome
        return Never(f"{outcome.why}, and the {patience:g} s for that are over before another try")

    def _is_spared(self, name: str) -> bool:
        """Write down as ended what another event still needs, or nobody knows how to undo."""
        if self._desk.config.handler(name) is None:
            self._work.close(name, Never(NOT_IN_THE_CONFIG))
            return True
        other = held_by_another(self._desk.memory.cases, self._id, name)
        if other is None:
            return False
        for thing in self._case.owes(name):
            self._desk.memory.write(Owed(event=other, handler=name, thing=thing))
        self._work.close(name, Ready(f"left to event {other}, which still needs it"))
        return True

    async def _end_unfinished(self) -> None:
        """End what a former agent has started and nobody waits for any more."""
        for (side, name), attempt in self._case.attempts.items():
            if side is Side.PREPARE and not attempt.settled:
                async with self._desk.turns.take(name):
                    handler = self._desk.config.handler(name)
                    found = handler and await resumable(self._desk, self._case, handler, side)
                    if found:
                        await found.end()
                    self._work.end(name, side, Never(GONE))
