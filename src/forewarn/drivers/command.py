"""Any hypervisor by a command of its owner's, called with `begin`, `check` or `cancel`.

The command does its work within the call, or leaves it to something that goes on by itself and is asked with
`check`. What it keeps to recognise an attempt by is its own; docs/deploy/your-own-hypervisor.md says what
forewarn relies on.
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
    Said,
    as_json,
    as_variables,
    no_answer,
    read_answer,
)
from forewarn.programs.program import (
    GRACE_SECONDS,
    TRY_AGAIN,
    Exited,
    Invocation,
    Outcome,
)
from forewarn.programs.watched_program import clean_environment, run

log = logging.getLogger(__name__)

# What a call may take beside the command itself: to start it, and to end it when its time is over.
AROUND = timedelta(seconds=2 * GRACE_SECONDS)
# As much of what is no answer as is shown, for its author to recognise.
SHOWN = 60
# Of so many steps is known which attempt was the latest.
REMEMBERED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOptions(CallOptions):
    """What the settings say of a command driver."""

    command: tuple[str, ...] = ()  # a program and its arguments
    works_on_hosts: bool = False  # whether it does the work on hosts themselves, too
    fences: bool = False  # whether it keeps failed hosts from touching their machines
    verifies_restarts: bool = False  # whether it verifies that machines run after work on their host


def make(setup: DriverSetup) -> "CommandDriver":
    """Make the driver as it is set; without a command there is none."""
    if not setup.options:
        raise UnusableDriver(
            'it needs a command: set [drivers.NAME] kind = "command" and command = ["/path/of/a/program"], '
            "start the server again, and have hosts say driver = NAME"
        )
    options = setup.read(CommandOptions())
    program = options.command[0] if options.command else ""
    # It runs in /: a path from elsewhere would lead nowhere.
    if not program or ("/" in program and not program.startswith("/")):
        expected = "expected a program, by its whole path or by a name in PATH, and its arguments"
        raise Invalid(f"[drivers.{setup.name}] command: {expected}")
    return CommandDriver(options)


class CommandDriver:
    """Asks a command."""

    def __init__(self, options: CommandOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        # The latest attempts, by order and subject; guarded by the lock.
        self._latest: OrderedDict[tuple[str, str], int] = OrderedDict()

    @property
    def limits(self) -> DriverLimits:
        """As they are set; the command's own time is over first."""
        return DriverLimits(timeout=self._options.timeout + AROUND, at_once=self._options.at_once)

    @property
    def fences(self) -> bool:
        """Whether the command fences hosts."""
        return self._options.fences

    @property
    def works_on_hosts(self) -> bool:
        """Whether the command works on hosts."""
        return self._options.works_on_hosts

    @property
    def verifies_restarts(self) -> bool:
        """Whether the command verifies that machines run after work on their host."""
        return self._options.verifies_restarts

    def begin(self, task: DriverTask) -> Begun:
        """Have the command begin."""
        match self._asked(task, BEGIN):
            case Done() | Running() | Failed() | Unknown() as answer:
                return answer
            case answer:
                return _not_asked_for(answer, BEGIN)

    def check(self, task: DriverTask) -> Checked:
        """Have the command say what has become of its work."""
        match self._asked(task, CHECK):
            case Done() | Running() | Failed() | Unknown() | NotBegun() as answer:
                return answer
            case answer:
                return _not_asked_for(answer, CHECK)

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Have the command call its work off, and never begin it."""
        match self._asked(task, CANCEL):
            case Cancelled() | TooLate() | Unknown() as answer:
                return answer
            case Done():
                return TooLate()
            case Failed(why=why):
                return Unknown(why)  # whether its work goes on is not said
            case answer:
                return _not_asked_for(answer, CANCEL)

    def _asked(self, task: DriverTask, call: str) -> Said:
        if (latest := self._latest_attempt(task)) > task.attempt:
            return Failed(f"attempt {latest} of it is under way: attempt {task.attempt} comes too late")
        invocation = Invocation(
            words=(*self._options.command, call),
            environment=clean_environment(as_variables(task, call=call)),
            input=as_json(task, call=call),
        )
        outcome = run(invocation, timeout=self._options.timeout)
        said = self._said(task, call, outcome)
        log.debug("%s %s of %s: %s", task.driver, call, task.name, said)
        return said

    def _latest_attempt(self, task: DriverTask) -> int:
        """Note an attempt; return the latest of the same step that was asked about."""
        step = (task.order, task.subject)
        with self._lock:
            latest = max(self._latest.get(step, 0), task.attempt)
            remember(self._latest, step, latest, most=REMEMBERED)
        return latest

    def _said(self, task: DriverTask, call: str, outcome: Outcome) -> Said:
        """Return what the end of the command says of the step."""
        if not isinstance(outcome, Exited) or outcome.code < 0:
            return Unknown(no_answer(outcome, "the command", call, timeout=self._options.timeout))
        answer = read_answer(outcome.output)
        match outcome.code:
            case 0 if answer is not None and answer.state is not None:
                return answer.as_state(answer.state, now=task.now)
            case 0:
                beginning = on_one_line(outcome.output[:SHOWN].decode(errors="replace")).strip()
                said = f": {beginning}" if beginning else ""
                return Unknown(f'the command answered {call} with no JSON object that has a "state"{said}')
            case code if code == TRY_AGAIN:
                answer = answer or ProgramAnswer(why=outcome.last_line or f"the command cannot tell ({call})")
                return answer.as_state("unknown", now=task.now)
            case code:
                why = outcome.last_line or (answer.why if answer is not None else "")
                return Failed(why or f"the command exited with {code} in {call}")


def _not_asked_for(answer: Said, call: str) -> Unknown:
    words = {Cancelled: "cancelled", TooLate: "too-late", NotBegun: "not-begun", Running: "running"}
    return Unknown(
        f"the command answered {call} with {words.get(type(answer), '?')}, which says nothing of it"
    )
