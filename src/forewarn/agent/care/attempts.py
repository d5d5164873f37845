"""Attempts of handlers for one event: the task that each is given, and the program that it may run.

Each attempt is written to the journal before it is made and after.
"""

import asyncio
import json
from hashlib import sha256

from forewarn.agent.agent_log import AgentLog, redacted
from forewarn.agent.care.agent_context import AgentContext
from forewarn.agent.facts import as_wire, environment_of
from forewarn.agent.handling import WORK, Again, Command, Never, Outcome, Ready, Side, Task
from forewarn.agent.journal.entries import GONE, Begun, Ended, Ending, Owed, ProgramRunning
from forewarn.agent.journal.tracked_events import TrackedEvent
from forewarn.agent.setup.handler import Handler, OnRestart
from forewarn.platform import system
from forewarn.programs.keeper import why_not_run
from forewarn.programs.kept_program import KeptProgram
from forewarn.programs.program import TRY_AGAIN, Exited, Invocation, NotRun, ProcessId, Unwatched
from forewarn.sdk.documents import Event

# As much of a program's last line as is worth showing as the reason of its failure.
LONGEST_REASON = 200
# For a program of a former agent to end, although its time was over while no agent ran.
LEAST_SECONDS = 1.0


class Launch:
    """One attempt of a handler for an event."""

    def __init__(
        self,
        context: AgentContext,
        id_: str,
        handler: Handler,
        *,
        side: Side,
        attempt: int,
        found: KeptProgram | None,
    ) -> None:
        """Take the number of the attempt, and the program that a former agent has started for it."""
        self._context = context
        self._id = id_
        self._handler = handler
        self._side = side
        self._attempt = attempt
        self._found = found
        self._log = context.log.bind(event=id_, handler=handler.name)

    def task(self, event: Event) -> Task:
        """Make the task that the handler is given."""
        task = Task(
            side=self._side,
            event=event,
            machine=self._context.machine,
            attempt=self._attempt,
            seconds_left=self._seconds_left,
            run=lambda command: self._run(command, task),
            say=self._log.info,
            owe=self._owe,
            failure="; ".join(
                f"{name}: {why}" for name, why in self._context.tracked(self._id).failures().items()
            ),
            owed=self._context.tracked(self._id).owes(self._handler.name),
        )
        return task

    def _owe(self, thing: str) -> None:
        self._context.journal.write(Owed(event=self._id, handler=self._handler.name, thing=thing))

    def _seconds_left(self) -> float | None:
        tracked = self._context.journal.tracked_events.get(self._id)
        return 0.0 if tracked is None or tracked.left else self._context.endpoint.seconds_left(tracked.event)

    async def _run(self, command: Command, task: Task) -> Outcome:
        """Run a program, or wait for the one that runs already."""
        try:
            run = self._found or self._started(command, task)
        except LookupError as error:
            return Never(why_not_run(command.words, error))
        self._found = None
        try:
            result = await run.wait(self._log_line)
        except asyncio.CancelledError:
            if self._context.leaving:
                run.leave()
            else:
                await run.end(self._log_line)
            raise
        return self._outcome(result)

    def _started(self, command: Command, task: Task) -> KeptProgram:
        invocation = Invocation(
            words=command.words,
            environment={**self._context.environment, **command.environment, **environment_of(task)},
            identity={} if command.user is None else system.identity_of(command.user),
            input=json.dumps(as_wire(task.event)).encode(),
        )

        def written_down(process: ProcessId) -> None:
            share = {"event": self._id, "side": self._side, "handler": self._handler.name}
            self._context.journal.write(ProgramRunning(**share, pid=process.pid, started=process.started))  # type: ignore[arg-type]

        run = self._context.runs.start(
            file_name(self._id, self._handler.name, self._side), invocation, written_down=written_down
        )
        if not run.keeps_output:
            self._log.warn(f"{self._handler.name}: the disk cannot be written, what it says is not kept")
        return run

    def _log_line(self, line: str) -> None:
        self._log.info(f"{self._handler.name} | {line}")

    def _outcome(self, result: Exited | NotRun | Unwatched) -> Outcome:
        match result:
            case Exited(code=0):
                return Ready()
            case Exited(code=code, last_line=said):
                said = redacted(said, self._context.config.secrets)[:LONGEST_REASON]
                how = f"exit code {code}" if code >= 0 else f"ended by signal {-code}"
                why = f"{how}: {said}" if said else how
                return Again(why) if code == TRY_AGAIN else Never(why)
            case NotRun(why):
                return Never(why)
            case Unwatched(why):
                return Again(why)


async def resumable(
    context: AgentContext, tracked: TrackedEvent, handler: Handler, side: Side
) -> KeptProgram | None:
    """Return the program that a former agent has started for a handler, if it can be waited for.

    A dry run finds none: it would be one of the agent that really runs.
    """
    known = tracked.attempt(side, handler.name)
    if context.dry or known is None or known.process is None or known.ending is not None:
        return None
    run = context.runs.find(file_name(tracked.event.id.upper(), handler.name, side), known.process)
    if handler.on_restart is OnRestart.AGAIN and run.runs:
        await run.end()
        return None
    return run if run.runs or run.has_result else None


def file_name(id_: str, handler: str, side: Side) -> str:
    """Name what a program leaves behind."""
    return f"{file_stem(id_)}.{handler.replace('/', '+')}.{side}"


def file_stem(id_: str) -> str:
    """Begin the names of an event's files; its id is another's word, which may lead out of the folder."""
    return sha256(id_.encode()).hexdigest()[:32]


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
