"""One event in care: its handlers in their order, the approval, and coming back when it is over.

Everything is written down before it is done and after. So an errand can be taken up by another agent, at
any line.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from forewarn.agent.approval import No, Wait, Yes
from forewarn.agent.care.agent_context import REFUSED_SECONDS, Desk
from forewarn.agent.care.attempts import GONE, Work
from forewarn.agent.care.launch import resumable
from forewarn.agent.care.recovery import Recovery
from forewarn.agent.handling import Again, Never, Outcome, Ready, Side
from forewarn.agent.journal.entries import Approved, Ending, Over
from forewarn.agent.journal.tracked_events import Case
from forewarn.agent.setup.event_filter import Later, Now, Skip
from forewarn.agent.setup.handler import Handler, OnFailure, OnRestart
from forewarn.core.words import EventStatus
from forewarn.sdk.errors import Closed, GuestError, Unavailable

# Before an approval that could not be delivered is sent again, beyond what the client does by itself.
APPROVE_AGAIN_SECONDS = 5.0


class Errand:
    """Takes care of one event."""

    def __init__(self, id_: str, desk: Desk, *, listed: bool = True) -> None:
        """Take an event; one that is not known to be listed still is only seen to in what runs already."""
        self._listed = listed
        self._id = id_
        self._desk = desk
        self._voice = desk.voice.about(event=id_, type=str(self._case.event.type))
        self._work = Work(id_, desk, self._voice)
        self._news = asyncio.Event()
        self._gone = asyncio.Event()
        self._version = 0  # how often there was news
        self._ready_since: float | None = None
        self._said: set[str] = set()
        if self._case.left is not None:
            self._gone.set()

    def changed(self) -> None:
        """Be told that the event, or the config, is another."""
        self._version += 1
        self._news.set()

    def listed(self) -> None:
        """Be told that a document was seen, and the case is as it says."""
        if not self._listed:
            self._listed = True
            self.changed()

    def left(self) -> None:
        """Be told that the event is over for this machine."""
        self._gone.set()
        self.changed()

    async def run(self) -> None:
        """See it through to its end."""
        while self._case.left is None:
            version = self._version
            await self._prepare()
            seconds = await self._approve() if self._version == version else None
            if self._version == version:
                await self._pause(seconds)
        await self._recover()

    async def _recover(self) -> None:
        """Undo what was prepared, and say whether all of it is."""
        failed = await Recovery(self._id, self._desk, self._work, self._pause).run()
        self._desk.memory.write(Over(event=self._id, at=self._desk.now()))
        if failed:
            self._voice.warn(f"the event is done with, but {', '.join(failed)} could not recover")
        else:
            self._voice.say("recovered: the event is done with")

    @property
    def _case(self) -> Case:
        return self._desk.case(self._id)

    # Getting ready

    async def _prepare(self) -> None:
        """Run the handlers that are left, in their order."""
        for handler in self._desk.config.handlers:
            known = self._case.attempt(Side.PREPARE, handler.name)
            if (known is None or not known.settled) and await self._time_has_come(handler):
                await self._prepare_by(handler)
            if self._case.left is not None:
                return

    async def _time_has_come(self, handler: Handler) -> bool:
        """Wait until it is time for a handler; False if it is not for this event."""
        if not self._listed:
            # To be ended and run again is for when it is known that the event still comes.
            waits = handler.on_restart is OnRestart.WAIT
            return waits and await resumable(self._desk, self._case, handler, Side.PREPARE) is not None
        while self._case.left is None:
            event = self._case.event
            match handler.when.verdict(event, self._desk.endpoint.seconds_left(event)):
                case Now():
                    return True
                case Skip(why):
                    self._say_once(f"{handler.name} is left out: {why}")
                    return False
                case Later(seconds):
                    self._say_once(f"{handler.name} waits until {handler.when.max_seconds_left:g} s are left")
                    await self._pause(seconds / self._desk.speed)
        return False

    async def _prepare_by(self, handler: Handler) -> None:
        """Run a handler until it is ready, has failed, or the event has left."""
        outcome = await self._unless_gone(self._persist(handler))
        if self._case.attempt(Side.PREPARE, handler.name) is not None:  # else it left before its turn came
            self._work.end(handler.name, Side.PREPARE, outcome)

    async def _persist(self, handler: Handler) -> Outcome:
        """Run a handler when its turn comes, as often as it asks for that in its time."""
        ends: float | None = None
        while self._case.left is None:
            async with self._desk.turns.take(handler.name):
                seconds = handler.timeout if ends is None else ends - self._desk.monotonic()
                ends = ends or self._desk.monotonic() + handler.timeout - self._passed(handler)
                outcome = await self._work.attempt(handler, Side.PREPARE, seconds)
                if isinstance(outcome, Again):
                    outcome = self._in_time(outcome, handler, ends=ends)
                if not isinstance(outcome, Again):
                    return outcome
                self._work.end(handler.name, Side.PREPARE, outcome)
            await self._pause(handler.pause(outcome.after))
        return Never(GONE)

    def _passed(self, handler: Handler) -> float:
        """Say how long ago a former agent has begun with a handler."""
        known = self._case.attempt(Side.PREPARE, handler.name)
        return 0.0 if known is None else max(0.0, (self._desk.now() - known.first).total_seconds())

    def _in_time(self, outcome: Again, handler: Handler, *, ends: float) -> Outcome:
        """Try again only while that may help: those after it wait for it."""
        if self._case.left is not None:
            return Never(GONE)
        if self._case.event.started:
            return Never(f"{outcome.why}, and the event has started")
        if self._desk.monotonic() + handler.pause(outcome.after) >= ends:
            return Never(f"{outcome.why}, and its {handler.timeout:g} s are over before another try")
        return outcome

    async def _unless_gone(self, work: Coroutine[Any, Any, Outcome]) -> Outcome:
        """Do something that has no sense any more once the event has left."""
        tasks = [asyncio.create_task(work), asyncio.create_task(self._gone.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            done = tasks[0].done()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return tasks[0].result() if done else Never(GONE)  # type: ignore[return-value]

    # Saying so

    async def _approve(self) -> float | None:
        """Approve if all is ready and it is for this machine to do so; returns when to ask again."""
        case = self._case
        if case.left is not None or case.approved is not None or not self._listed:
            return None
        if case.event.status == EventStatus.SCHEDULED and (held := self._held()):
            self._say_once(f"not approved: {held} failed")
            return None
        if self._ready_since is None:
            self._ready_since = self._desk.monotonic()
            self._voice.say("ready for the event")
        ready_for = (self._desk.monotonic() - self._ready_since) * self._desk.speed
        match self._desk.rule.decide(case.event, ready_for=ready_for):
            case Yes():
                return await self._send_approval()
            case Wait(seconds, why):
                self._say_once(f"not approved yet: {why}, and speaks for all unless it is silent")
                return seconds / self._desk.speed
            case No(why):
                self._say_once(f"not approved: {why}")
                return None

    def _held(self) -> str | None:
        """Name a handler whose failure keeps the event from being approved."""
        for handler in self._desk.config.handlers:
            known = self._case.attempt(Side.PREPARE, handler.name)
            failed = known is not None and known.ending is Ending.NEVER
            if failed and handler.on_failure is OnFailure.HOLD:
                return handler.name
        return None

    async def _send_approval(self) -> float | None:
        if self._desk.dry:
            self._say_once("would have approved the event")
            return None
        # Said before it is sent: the document that shows it Started may be faster than the answer.
        self._say_once("approving: it may start from now on")
        outcome = await self._unless_gone(self._sent())
        match outcome:
            case Ready():
                self._desk.memory.write(Approved(event=self._id, at=self._desk.now()))
                self._desk.meter.count("approvals")
                self._voice.say("approved")
                return None
            case Again(why):
                self._say_once(f"the approval cannot be delivered: {why}")
                return APPROVE_AGAIN_SECONDS
            case Never(why):
                self._say_once(f"the approval is refused: {why}", warning=True)
                return REFUSED_SECONDS

    async def _sent(self) -> Outcome:
        try:
            await self._desk.endpoint.approve(self._case.event)
        except (Unavailable, Closed) as error:  # or another endpoint was found meanwhile
            return Again(str(error))
        except GuestError as error:
            return Never(str(error))
        return Ready()

    # What is common to both

    async def _pause(self, seconds: float | None) -> None:
        """Wait for news, or for so long. Nothing may be awaited between looking at the case and this."""
        self._news.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            pass

    def _say_once(self, message: str, *, warning: bool = False) -> None:
        if message not in self._said:
            self._said.add(message)
            (self._voice.warn if warning else self._voice.say)(message)
