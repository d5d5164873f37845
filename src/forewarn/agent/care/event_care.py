"""The work on one event: run its handlers in order, approve it, and recover after it.

The agent writes each action to the journal before and after it, so another agent can resume at any line.
"""

import asyncio
import contextlib
from collections.abc import Collection, Coroutine
from typing import Any

from forewarn.agent.care.agent_context import REFUSED_SECONDS, AgentContext
from forewarn.agent.care.attempts import Attempts, resumable
from forewarn.agent.care.recovery import Recovery
from forewarn.agent.handling import Again, Never, Outcome, Ready, Side
from forewarn.agent.journal.entries import GONE, Approved, Ending, Over
from forewarn.agent.journal.tracked_events import TrackedEvent
from forewarn.agent.setup.handler import Handler, OnFailure, OnRestart, RecoverAt
from forewarn.agent.verdicts import Later, Now, Skip
from forewarn.core.basic_types import EventStatus
from forewarn.sdk.answer_reading import longest_pause
from forewarn.sdk.guest_errors import Closed, EndpointUnavailable, GuestError

# The pause before an undelivered approval is sent again; the client itself retries before that.
APPROVE_AGAIN_SECONDS = 5.0


class EventCare:
    """Prepares for one event, approves it, and recovers from it."""

    def __init__(self, id_: str, context: AgentContext, *, listed: bool = True) -> None:
        """Take an event; unless it is listed, only wait for programs that already run."""
        self._listed = listed
        self._id = id_
        self._context = context
        self._log = context.log.bind(event=id_, type=str(self._tracked.event.type))
        self._work = Attempts(id_, context, self._log)
        self._news = asyncio.Event()
        self._gone = asyncio.Event()
        self._version = 0  # incremented by each change
        self._ready_since: float | None = None
        self._logged: set[str] = set()
        self._aside = asyncio.TaskGroup()
        self._notified: set[tuple[Side, str]] = set()  # notifications that this agent has started
        self.not_approved: str | None = None  # why the event is not approved, once decided
        if self._tracked.left is not None:
            self._gone.set()

    def changed(self) -> None:
        """React to a change of the event or the config."""
        self._version += 1
        self._news.set()

    def listed(self) -> None:
        """React to a document that lists the event."""
        if not self._listed:
            self._listed = True
            self.changed()

    def missing(self) -> None:
        """React to a document that does not list the event, which may still go on."""
        self._listed = False

    def left(self) -> None:
        """React to the end of the event for this machine."""
        self._gone.set()
        self.changed()

    async def run(self) -> None:
        """Prepare and approve until the event is over, then recover; some handlers recover at boot."""
        async with self._aside as aside:
            at_boot: Collection[str] = ()
            while self._tracked.left is None:
                version = self._version
                if not at_boot and (at_boot := self._to_recover_at_boot()):
                    aside.create_task(self._recover(at_boot))
                self._notify_failure()
                await self._prepare()
                seconds = await self._approve() if self._version == version else None
                if self._version == version:
                    await self.pause(seconds)
            await self._recover(set(self._tracked.touched()).difference(at_boot))
        self._end()

    async def _recover(self, handlers: Collection[str]) -> None:
        await Recovery(self._id, self._context, self._work, self.pause).run(handlers)

    def _to_recover_at_boot(self) -> Collection[str]:
        """Return the handlers that recover now because the machine has restarted."""
        if self._tracked.restarted is None:
            return ()
        handlers = self._context.config.handlers
        at_boot = {handler.name for handler in handlers if handler.recover_at is RecoverAt.BOOT}
        touched = self._tracked.touched()
        return {name for name in touched if name in at_boot and not self._tracked.recovered(name)}

    def _end(self) -> None:
        """Close the event, and log the handlers that failed to recover."""
        attempts = {name: self._tracked.attempt(Side.RECOVER, name) for name in self._tracked.touched()}
        failed = [name for name, known in attempts.items() if known and known.ending is Ending.NEVER]
        self._context.journal.write(Over(event=self._id, at=self._context.now()))
        if failed:
            self._log.warn(f"the event is over, but {', '.join(failed)} failed to recover")
        else:
            self._log.info("recovered: the event is over")

    @property
    def _tracked(self) -> TrackedEvent:
        return self._context.tracked(self._id)

    # Preparation

    async def _prepare(self) -> None:
        """Run the remaining handlers in order."""
        for handler in self._context.config.handlers:
            known = self._tracked.attempt(Side.PREPARE, handler.name)
            if (known is None or not known.settled) and await self._time_has_come(handler):
                await self._do(handler, Side.PREPARE)
                self._notify_failure()
            if self._tracked.left is not None:
                return

    async def _time_has_come(self, handler: Handler) -> bool:
        """Wait until the filter of a handler accepts the event; return False if it never will."""
        if self._tracked.restarted is not None and handler.recover_at is RecoverAt.BOOT:
            return False  # the restart has happened
        if not self._listed:
            # A program that must run again waits until a document lists the event.
            waits = handler.on_restart is OnRestart.WAIT
            return waits and await resumable(self._context, self._tracked, handler, Side.PREPARE) is not None
        while self._tracked.left is None:
            event = self._tracked.event
            match handler.when.verdict(event, self._context.endpoint.seconds_left(event)):
                case Now():
                    return True
                case Skip(why):
                    self._log_once(f"{handler.name} is skipped: {why}")
                    return False
                case Later(seconds):
                    self._log_once(f"{handler.name} waits until {handler.when.max_seconds_left:g} s are left")
                    await self.pause(seconds / self._context.speed)
        return False

    async def _do(self, handler: Handler, side: Side) -> None:
        outcome = await self._unless_gone(self._persist(handler, side))
        if self._tracked.attempt(side, handler.name) is not None:  # the event left before the handler's turn
            self._work.end(handler.name, side, outcome)

    async def _persist(self, handler: Handler, side: Side) -> Outcome:
        """Run a handler in its turn, and again as long as it asks for that within its timeout."""
        ends: float | None = None
        while self._tracked.left is None:
            async with self._context.turns[handler.name].turn(lambda: self._context.urgency(self._id)):
                seconds = handler.timeout if ends is None else ends - self._context.monotonic()
                known = self._tracked.attempt(side, handler.name)
                # An earlier agent may have begun with the handler.
                passed = 0.0 if known is None else (self._context.now() - known.first).total_seconds()
                ends = ends or self._context.monotonic() + handler.timeout - max(0.0, passed)
                outcome = await self._work.attempt(handler, side, seconds)
                if isinstance(outcome, Again):
                    outcome = self._in_time(outcome, handler, side, ends=ends)
                if not isinstance(outcome, Again):
                    return outcome
                self._work.end(handler.name, side, outcome)
            await self.pause(handler.pause(outcome.after))
        return Never(GONE)

    def _in_time(self, outcome: Again, handler: Handler, side: Side, *, ends: float) -> Outcome:
        """Give up if another try cannot help, because the next handlers wait."""
        if self._tracked.left is not None:
            return Never(GONE)
        if side is Side.PREPARE and self._tracked.event.started:
            return Never(f"{outcome.why}, and the event has started")
        if self._context.monotonic() + handler.pause(outcome.after) >= ends:
            return Never(
                f"{outcome.why}, and another try would be after its timeout of {handler.timeout:g} s"
            )
        return outcome

    def _notify_failure(self) -> None:
        """Run `notify` handlers once if a handler has failed to prepare or the event is held."""
        tracked, config = self._tracked, self._context.config
        failed = tracked.failures()
        if not failed or not self._listed or tracked.left is not None or tracked.restarted is not None:
            return
        holds = config.holding(failed) and tracked.event.status == EventStatus.SCHEDULED
        side = Side.HELD if holds else Side.FAILED
        for handler in config.handlers:
            # After the notification that an event is held, its start is no second failure.
            if any(self._was_notified(each, handler.name) for each in (side, Side.HELD)):
                continue
            seconds_left = self._context.endpoint.seconds_left(tracked.event)
            meant = not isinstance(handler.when.verdict(tracked.event, seconds_left), Skip)
            if meant and handler.only_notifies and handler.does.describe(side):
                self._notified.add((side, handler.name))
                self._aside.create_task(self._do(handler, side))

    def _was_notified(self, side: Side, name: str) -> bool:
        known = self._tracked.attempt(side, name)
        return (side, name) in self._notified or (known is not None and known.settled)

    async def _unless_gone(self, work: Coroutine[Any, Any, Outcome]) -> Outcome:
        """Await work and cancel it if the event leaves."""
        tasks = [asyncio.create_task(work), asyncio.create_task(self._gone.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            done = tasks[0].done()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return tasks[0].result() if done else Never(GONE)  # type: ignore[return-value]

    # Approval

    async def _approve(self) -> float | None:
        """Approve the event if the policy allows it; return the seconds until the next decision."""
        tracked = self._tracked
        if not self._listed or any((tracked.left, tracked.approved, tracked.restarted)):
            return None
        if tracked.event.status == EventStatus.SCHEDULED and (held := self._held()):
            self.not_approved = f"{held} failed"
            self._log_once(f"not approved: {held} failed")
            return None
        if self._ready_since is None:
            self._ready_since = self._context.monotonic()
            self._log.info("ready for the event")
        ready_for = (self._context.monotonic() - self._ready_since) * self._context.speed
        match self._context.approval_decider.decide(tracked.event, ready_for=ready_for):
            case Now():
                return await self._send_approval()
            case Later(seconds, why):
                self.not_approved = why
                self._log_once(f"not approved yet: {why}; this machine approves if that one does not")
                return seconds / self._context.speed
            case Skip(why):
                self.not_approved = why
                self._log_once(f"not approved: {why}")
                return None

    def _held(self) -> str | None:
        """Return a handler whose failure prevents the approval."""
        failed = self._tracked.failures()
        holding = (each for each in self._context.config.handlers if each.on_failure is OnFailure.HOLD)
        return next((each.name for each in holding if each.name in failed), None)

    async def _send_approval(self) -> float | None:
        if self._context.dry:
            self._log_once("would have approved the event")
            return None
        # Log first, because the document with the start may arrive before the answer.
        self._log_once("approving: the event may start from now on")
        outcome = await self._unless_gone(self._sent())
        match outcome:
            case Ready():
                self._context.journal.write(Approved(event=self._id, at=self._context.now()))
                self._context.metrics.count("approvals")
                self._log.info("approved")
                return None
            case Again(why):
                self.not_approved = f"the approval cannot be delivered: {why}"
                self._log_once(self.not_approved)
                left = self._context.endpoint.seconds_left(self._tracked.event)
                return min(APPROVE_AGAIN_SECONDS, longest_pause(left or None))
            case Never(why):
                self.not_approved = f"the endpoint refused the approval: {why}"
                self._log_once(self.not_approved, warning=True)
                return REFUSED_SECONDS

    async def _sent(self) -> Outcome:
        try:
            await self._context.endpoint.approve(self._tracked.event)
        except (EndpointUnavailable, Closed) as error:  # or another endpoint was found meanwhile
            return Again(str(error))
        except GuestError as error:
            return Never(str(error))
        return Ready()

    # Helpers

    async def pause(self, seconds: float | None) -> None:
        """Wait for a change or a time. The caller must not await between reading the event and this call."""
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()

    def _log_once(self, message: str, *, warning: bool = False) -> None:
        if message not in self._logged:
            self._logged.add(message)
            (self._log.warn if warning else self._log.info)(message)
