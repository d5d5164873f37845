"""Attempts of handlers for one event: the task of each attempt, and the program that it may run.

The agent writes each attempt to the journal before and after it.
"""

import asyncio
import json
from collections.abc import Callable
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

# The longest part of a program's last line in a reason.
LONGEST_REASON = 200
# The least time for a program of an earlier agent, whose timeout may have passed while no agent ran.
LEAST_SECONDS = 1.0


async def resumable(
    context: AgentContext, tracked: TrackedEvent, handler: Handler, side: Side
) -> KeptProgram | None:
    """Return the program of an earlier agent for a handler, if this agent can wait for it.

    A dry run returns none: the program would belong to the real agent.
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
    """Return the name of a program's files."""
    return f"{file_stem(id_)}.{handler.replace('/', '+')}.{side}"


def file_stem(id_: str) -> str:
    """Return the stem of an event's file names: a hash, because the endpoint chooses the id."""
    return sha256(id_.encode()).hexdigest()[:32]


class Attempts:
    """Makes attempts of handlers for one event and writes them to the journal."""

    def __init__(self, id_: str, context: AgentContext, log: AgentLog) -> None:
        self._id = id_
        self._context = context
        self._log = log

    async def attempt(self, handler: Handler, side: Side, seconds: float) -> Outcome:
        """Run a handler, or wait for its program from an earlier agent; the caller holds the handler's turn.

        The caller then records the outcome with `end`.
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
        if self._context.dry:
            return Ready(f"would have: {handler.does.describe(side) or 'nothing'}")
        task = self._task(handler, side, number=number, found=found)
        act = handler.does.recover if side is Side.RECOVER else handler.does.prepare
        try:
            async with asyncio.timeout(seconds):
                return await act(task)
        except TimeoutError:
            return Never(f"it did not finish within {handler.timeout:g} s and was stopped")
        except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way
            return Never(f"it failed: {type(error).__name__}: {error}")

    def _task(self, handler: Handler, side: Side, *, number: int, found: KeptProgram | None) -> Task:
        log = self._context.log.bind(event=self._id, handler=handler.name)
        tracked = self._context.tracked(self._id)

        async def run(command: Command) -> Outcome:
            nonlocal found
            try:
                program = found or self._started(command, task, handler.name)
            except LookupError as error:
                return Never(why_not_run(command.words, error))
            found = None
            return await self._ended(program, lambda line: log.info(f"{handler.name} | {line}"))

        def owe(thing: str) -> None:
            self._context.journal.write(Owed(event=self._id, handler=handler.name, thing=thing))

        task = Task(
            side=side,
            event=tracked.event,
            machine=self._context.machine,
            attempt=number,
            seconds_left=self._seconds_left,
            run=run,
            say=log.info,
            owe=owe,
            failure="; ".join(f"{name}: {why}" for name, why in tracked.failures().items()),
            owed=tracked.owes(handler.name),
        )
        return task

    def _seconds_left(self) -> float | None:
        tracked = self._context.journal.tracked_events.get(self._id)
        return 0.0 if tracked is None or tracked.left else self._context.endpoint.seconds_left(tracked.event)

    # Programs

    def _started(self, command: Command, task: Task, handler: str) -> KeptProgram:
        invocation = Invocation(
            words=command.words,
            environment={**self._context.environment, **command.environment, **environment_of(task)},
            identity={} if command.user is None else system.identity_of(command.user),
            input=json.dumps(as_wire(task.event)).encode(),
        )

        def written_down(process: ProcessId) -> None:
            self._context.journal.write(
                ProgramRunning(
                    event=self._id, side=task.side, handler=handler, pid=process.pid, started=process.started
                )
            )

        name = file_name(self._id, handler, task.side)
        program = self._context.runs.start(name, invocation, written_down=written_down)
        if not program.keeps_output:
            self._log.warn(f"{handler}: the disk cannot be written, so its output is lost", handler=handler)
        return program

    async def _ended(self, program: KeptProgram, on_line: Callable[[str], None]) -> Outcome:
        """Wait for a program; stop it if the task is cancelled, unless the agent itself stops."""
        try:
            result = await program.wait(on_line)
        except asyncio.CancelledError:
            if self._context.leaving:
                program.leave()
            else:
                await program.end(on_line)
            raise
        match result:
            case Exited(code=0):
                return Ready()
            case Exited(code=code, last_line=line):
                line = redacted(line, self._context.config.secrets)[:LONGEST_REASON]
                how = f"exit code {code}" if code >= 0 else f"killed by signal {-code}"
                why = f"{how}: {line}" if line else how
                return Again(why) if code == TRY_AGAIN else Never(why)
            case NotRun(why):
                return Never(why)
            case Unwatched(why):
                return Again(why)

    # The journal

    def _begin(self, name: str, side: Side) -> int:
        """Record a new attempt; return its number."""
        known = self._context.tracked(self._id).attempt(side, name)
        number = 1 if known is None else known.number + 1
        self._context.journal.write(
            Begun(event=self._id, side=side, handler=name, attempt=number, at=self._context.now())
        )
        again = f", attempt {number}" if number > 1 else ""
        self._log.info(f"{name}: {_phase(side)} begins{again}", handler=name, side=side.value, attempt=number)
        return number

    def end(self, name: str, side: Side, outcome: Outcome) -> None:
        """Record the outcome of an attempt."""
        ending, why = _ending(outcome)
        # The journal and `agent status` show the reason.
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
        # Warn once if a recovery must be tried again, because the machine does less work until then.
        delayed = ending is Ending.AGAIN and side is Side.RECOVER and first
        failed = ending is Ending.NEVER and why != GONE
        write = self._log.warn if failed or delayed else self._log.info
        reason = f": {why}" if why else ""
        result = {Ending.READY: "ready", Ending.AGAIN: "will try again", Ending.NEVER: "failed"}[ending]
        write(f"{name}: {_phase(side)} {result}{reason}", handler=name, side=side.value, ending=ending.value)

    def skip_recovery(self, name: str, outcome: Outcome) -> None:
        """Record the outcome of a recovery that the agent does not run."""
        self._begin(name, Side.RECOVER)
        self.end(name, Side.RECOVER, outcome)


def _phase(side: Side) -> str:
    return side.value if side in WORK else f"notification ({side})"


def _ending(outcome: Outcome) -> tuple[Ending, str]:
    match outcome:
        case Ready(result):
            return Ending.READY, result
        case Again(why, _):
            return Ending.AGAIN, why
        case Never(why):
            return Ending.NEVER, why
