"""Attempts of handlers for one event: each is written to the journal before it is made and after."""

import asyncio

from forewarn.agent.agent_log import AgentLog, redacted
from forewarn.agent.care.agent_context import AgentContext
from forewarn.agent.care.launch import Launch, resumable
from forewarn.agent.handling import WORK, Again, Never, Outcome, Ready, Side, Task
from forewarn.agent.journal.entries import GONE, Begun, Ended, Ending
from forewarn.agent.setup.handler import Handler

# For a program of a former agent to end, although its time was over while no agent ran.
LEAST_SECONDS = 1.0


class Attempts:
    """Makes attempts of handlers for one event, and writes down how they end."""

    def __init__(self, id_: str, context: AgentContext, log: AgentLog) -> None:
        self._id = id_
        self._context = context
        self._log = log

    async def attempt(self, handler: Handler, side: Side, seconds: float) -> Outcome:
        """Run a handler whose lock is held, or wait for what a former agent has started.

        The caller says with `end` what it counts as.
        """
        tracked = self._context.tracked(self._id)
        found = await resumable(self._context, tracked, handler, side)
        known = tracked.attempt(side, handler.name)
        if found is None or known is None:
            number = self._begin(handler.name, side)
        else:
            number = known.number
            passed = (self._context.now() - known.begun).total_seconds()
            seconds = max(LEAST_SECONDS, min(seconds, seconds - passed))
        launch = Launch(self._context, self._id, handler, side=side, attempt=number, found=found)
        return await self._within(handler, launch.task(self._context.tracked(self._id).event), seconds)

    async def _within(self, handler: Handler, task: Task, seconds: float) -> Outcome:
        """Run one attempt; whatever happens in a handler is its failure, not the agent's."""
        if self._context.dry:
            return Ready(f"would have: {handler.does.describe(task.side) or 'nothing'}")
        act = handler.does.recover if task.side is Side.RECOVER else handler.does.prepare
        try:
            async with asyncio.timeout(seconds):
                return await act(task)
        except TimeoutError:
            return Never(f"it was not done within {handler.timeout:g} s, and was ended")
        except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way
            return Never(f"it failed: {type(error).__name__}: {error}")

    def _begin(self, name: str, side: Side) -> int:
        """Write down that another attempt is made; returns which."""
        known = self._context.tracked(self._id).attempt(side, name)
        number = 1 if known is None else known.number + 1
        self._context.journal.write(
            Begun(event=self._id, side=side, handler=name, attempt=number, at=self._context.now())
        )
        again = f", attempt {number}" if number > 1 else ""
        self._log.info(
            f"{name}: {_in_words(side)} begins{again}", handler=name, side=side.value, attempt=number
        )
        return number

    def end(self, name: str, side: Side, outcome: Outcome) -> None:
        """Write down how an attempt has ended."""
        ending, why = _ending(outcome)
        # The journal and `agent status` show it.
        why = redacted(why, self._context.config.secrets)
        known = self._context.tracked(self._id).attempt(side, name)
        now = self._context.now()
        self._context.journal.write(
            Ended(event=self._id, side=side, handler=name, ending=ending, at=now, why=why)
        )
        took = 0.0 if known is None else max(0.0, (now - known.begun).total_seconds())
        self._context.metrics.count("handlers", name, side.value, ending.value)
        self._context.metrics.count("handler_seconds", name, side.value, by=took)
        first = known is None or known.number == 1
        # A machine that does not come back at once does less than it should: that is worth a warning, once.
        held_up = ending is Ending.AGAIN and side is Side.RECOVER and first
        failed = ending is Ending.NEVER and why != GONE
        write = self._log.warn if failed or held_up else self._log.info
        reason = f": {why}" if why else ""
        word = {Ending.READY: "ready", Ending.AGAIN: "will try again", Ending.NEVER: "failed"}[ending]
        write(f"{name}: {_in_words(side)} {word}{reason}", handler=name, side=side.value, ending=ending.value)

    def close(self, name: str, outcome: Outcome) -> None:
        """Write a recovery down as ended that is not made."""
        self._begin(name, Side.RECOVER)
        self.end(name, Side.RECOVER, outcome)


def _in_words(side: Side) -> str:
    return side.value if side in WORK else f"notification ({side})"


def _ending(outcome: Outcome) -> tuple[Ending, str]:
    match outcome:
        case Ready(result):
            return Ending.READY, result
        case Again(why, _):
            return Ending.AGAIN, why
        case Never(why):
            return Ending.NEVER, why
