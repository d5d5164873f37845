"""A driver that runs the operator's own command with `begin`, `check` or `cancel`.

The command does the work within the call, or starts it in the background and reports its state with `check`.
It stores its own data to recognize an attempt. docs/deploy/your-own-hypervisor.md describes what forewarn
expects of the command.
"""

import logging
import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import timedelta

from forewarn.control.driver import (
    Begun,
    CancelAnswer,
    Cancelled,
    Checked,
    Done,
    DriverLimits,
    DriverTask,
    Failed,
    NotBegun,
    Running,
    TooLate,
    Unknown,
)
from forewarn.core.errors import Invalid
from forewarn.core.text_formats import on_one_line
from forewarn.drivers.driver_setup import CallOptions, DriverSetup, UnusableDriver, remember
from forewarn.drivers.program_steps import (
    BEGIN,
    CANCEL,
    CHECK,
    ProgramAnswer,
    StepAnswer,
    as_json,
    as_variables,
    no_answer,
    read_answer,
)
from forewarn.programs.program import GRACE_SECONDS, TRY_AGAIN, Exited, Invocation, Outcome
from forewarn.programs.watched_program import clean_environment, run

log = logging.getLogger(__name__)

# Time that a call may need to start the command, and to stop it after a timeout.
CALL_OVERHEAD = timedelta(seconds=2 * GRACE_SECONDS)
# An invalid answer is shown up to this length, so that its author recognizes it.
SHOWN = 60
# The driver remembers the latest attempt of this many steps.
REMEMBERED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOptions(CallOptions):
    """The options of a command driver."""

    #: Program and arguments; an absolute path or a name in PATH.
    command: tuple[str, ...] = ()
    #: The program does the work on hosts themselves.
    works_on_hosts: bool = False
    #: The program fences failed hosts.
    fences: bool = False
    #: The program verifies that machines run after work on their host.
    verifies_restarts: bool = False


def make(setup: DriverSetup) -> "CommandDriver":
    """Create the driver from its options; raise UnusableDriver without a command."""
    if not setup.options:
        raise UnusableDriver(
            'it needs a command: set [drivers.NAME] kind = "command" and command = ["/path/of/a/program"], '
            "restart the server, and set driver = NAME on hosts"
        )
    options = setup.read(CommandOptions())
    program = options.command[0] if options.command else ""
    # The command runs in /, so a relative path would not resolve.
    if not program or ("/" in program and not program.startswith("/")):
        expected = "expected a program, as an absolute path or a name in PATH, and its arguments"
        raise Invalid(f"[drivers.{setup.name}] command: {expected}")
    return CommandDriver(options)


class CommandDriver:
    """Runs a command for each call."""

    def __init__(self, options: CommandOptions) -> None:
        self.limits = DriverLimits(timeout=options.timeout + CALL_OVERHEAD, at_once=options.at_once)
        self.fences = options.fences
        self.works_on_hosts = options.works_on_hosts
        self.verifies_restarts = options.verifies_restarts
        self._options = options
        self._lock = threading.Lock()
        # The latest attempt, by order and subject; guarded by the lock.
        self._latest: OrderedDict[tuple[str, str], int] = OrderedDict()

    def begin(self, task: DriverTask) -> Begun:
        """Run the command with `begin`."""
        match self._call(task, BEGIN):
            case Done() | Running() | Failed() | Unknown() as answer:
                return answer
            case answer:
                return _wrong_state(answer, BEGIN)

    def check(self, task: DriverTask) -> Checked:
        """Run the command with `check`."""
        match self._call(task, CHECK):
            case Done() | Running() | Failed() | Unknown() | NotBegun() as answer:
                return answer
            case answer:
                return _wrong_state(answer, CHECK)

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Run the command with `cancel`."""
        match self._call(task, CANCEL):
            case Cancelled() | TooLate() | Unknown() as answer:
                return answer
            case Done():
                return TooLate()
            case Failed(why=why):
                return Unknown(why)  # the work may still go on
            case answer:
                return _wrong_state(answer, CANCEL)

    def _call(self, task: DriverTask, call: str) -> StepAnswer:
        if (latest := self._latest_attempt(task)) > task.attempt:
            return Failed(f"attempt {task.attempt} is outdated: attempt {latest} of the step has begun")
        invocation = Invocation(
            words=(*self._options.command, call),
            environment=clean_environment(as_variables(task, call=call)),
            input=as_json(task, call=call),
        )
        answer = self._answer(task, call, run(invocation, timeout=self._options.timeout))
        log.debug("%s %s of %s: %s", task.driver, call, task.name, answer)
        return answer

    def _latest_attempt(self, task: DriverTask) -> int:
        """Record the attempt; return the latest attempt of this step so far."""
        step = (task.order, task.subject)
        with self._lock:
            latest = max(self._latest.get(step, 0), task.attempt)
            remember(self._latest, step, latest, most=REMEMBERED)
        return latest

    def _answer(self, task: DriverTask, call: str, outcome: Outcome) -> StepAnswer:
        """Convert the exit code and the output of the command to an answer."""
        if not isinstance(outcome, Exited) or outcome.code < 0:
            return Unknown(no_answer(outcome, "the command", call, timeout=self._options.timeout))
        answer = read_answer(outcome.output)
        match outcome.code:
            case 0 if answer is not None and answer.state is not None:
                return answer.as_state(answer.state, now=task.now)
            case 0:
                beginning = on_one_line(outcome.output[:SHOWN].decode(errors="replace")).strip()
                shown = f": {beginning}" if beginning else ""
                return Unknown(f'the command answered {call} with no JSON object that has a "state"{shown}')
            case code if code == TRY_AGAIN:
                answer = answer or ProgramAnswer(why=outcome.last_line or f"the command cannot tell ({call})")
                return answer.as_state("unknown", now=task.now)
            case code:
                why = outcome.last_line or (answer.why if answer is not None else "")
                return Failed(why or f"the command exited with {code} in {call}")


def _wrong_state(answer: StepAnswer, call: str) -> Unknown:
    states = {Cancelled: "cancelled", TooLate: "too-late", NotBegun: "not-begun", Running: "running"}
    state = states.get(type(answer), "?")
    return Unknown(f"the command answered {call} with {state}, which is no answer to {call}")
