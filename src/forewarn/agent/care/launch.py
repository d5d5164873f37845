"""How one attempt of a handler reaches the system: what it is told, and the program it may run."""

import asyncio
import json
from hashlib import sha256

from forewarn.agent.agent_log import hidden
from forewarn.agent.care.agent_context import Desk
from forewarn.agent.facts import as_wire, environment_of
from forewarn.agent.handling import Again, Command, Never, Outcome, Ready, Side, Task
from forewarn.agent.journal.entries import Owed, Running
from forewarn.agent.journal.tracked_events import Case, ProcessId
from forewarn.agent.programs.runs import Exited, Lost, NotRun, Order, Run
from forewarn.agent.setup.handler import Handler, OnRestart
from forewarn.sdk import platform
from forewarn.sdk.documents import Event

# EX_TEMPFAIL of sysexits.h: the caller is invited to try again.
TRY_AGAIN = 75
# As much of what a program has said last as is worth being told as the reason of its failure.
LONGEST_REASON = 200


class Launch:
    """One attempt."""

    def __init__(
        self, desk: Desk, id_: str, handler: Handler, *, side: Side, attempt: int, found: Run | None
    ) -> None:
        """Take what all attempts have; `found` is what a former agent has started."""
        self._desk = desk
        self._id = id_
        self._handler = handler
        self._side = side
        self._attempt = attempt
        self._found = found
        self._voice = desk.voice.about(event=id_, handler=handler.name)

    def task(self, event: Event) -> Task:
        """Make what the handler is asked."""
        task = Task(
            side=self._side,
            event=event,
            machine=self._desk.machine,
            attempt=self._attempt,
            seconds_left=self._seconds_left,
            run=lambda command: self._run(command, task),
            say=self._voice.say,
            owe=self._owe,
            owed=self._desk.case(self._id).owes(self._handler.name),
        )
        return task

    def _owe(self, thing: str) -> None:
        self._desk.memory.write(Owed(event=self._id, handler=self._handler.name, thing=thing))

    def _seconds_left(self) -> float | None:
        case = self._desk.memory.cases.get(self._id)
        return 0.0 if case is None or case.left else self._desk.endpoint.seconds_left(case.event)

    async def _run(self, command: Command, task: Task) -> Outcome:
        """Run a program, or wait for the one that runs already."""
        try:
            run = self._found or self._started(command, task)
        except LookupError as error:
            return Never(f"{command.words[0]} cannot be run: {error}")
        self._found = None
        try:
            result = await run.wait(self._heard)
        except asyncio.CancelledError:
            if self._desk.leaving:
                run.leave()
            else:
                await run.end(self._heard)
            raise
        return _outcome(result, hidden(run.last_line, self._desk.config.secrets)[:LONGEST_REASON])

    def _started(self, command: Command, task: Task) -> Run:
        order = Order(
            words=command.words,
            environment={**self._desk.environment, **command.environment, **environment_of(task)},
            identity={} if command.user is None else platform.identity_of(command.user),
            input=json.dumps(as_wire(task.event)),
        )

        def written_down(process: ProcessId) -> None:
            share = {"event": self._id, "side": self._side, "handler": self._handler.name}
            self._desk.memory.write(Running(**share, pid=process.pid, started=process.started))  # type: ignore[arg-type]

        run = self._desk.runs.start(
            file_name(self._id, self._handler.name, self._side), order, written_down=written_down
        )
        if not run.is_heard:
            self._voice.warn(f"{self._handler.name}: the disk cannot be written, what it says is not kept")
        return run

    def _heard(self, line: str) -> None:
        self._voice.say(f"{self._handler.name} | {line}")


def _outcome(result: Exited | NotRun | Lost, last_line: str) -> Outcome:
    said = f": {last_line}" if last_line else ""
    match result:
        case Exited(0):
            return Ready()
        case Exited(code) if code == TRY_AGAIN:
            return Again(f"exit code {code}{said}")
        case Exited(code):
            return Never((f"exit code {code}" if code >= 0 else f"ended by signal {-code}") + said)
        case NotRun(why):
            return Never(why)
        case Lost():
            return Again("its process is gone, nobody knows how it ended")


async def resumable(desk: Desk, case: Case, handler: Handler, side: Side) -> Run | None:
    """Find the program that a former agent has started for a handler, if it can be waited for.

    A dry run finds none: it would be one of the agent that really runs.
    """
    known = case.attempt(side, handler.name)
    if desk.dry or known is None or known.process is None or known.ending is not None:
        return None
    run = desk.runs.find(file_name(case.event.id.upper(), handler.name, side), known.process)
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
