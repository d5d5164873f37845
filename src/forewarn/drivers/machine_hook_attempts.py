"""Attempts with hooks around the work on a machine: what is saved of them, and what a server knows besides.

How far a step is, is saved in its mark: which part runs, and what ended. The mark of the driver itself is
inside. A mark that is none of these was left by a driver without hooks. None of the rest outlives the server.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeAlias

from forewarn.config import MachineHookSettings
from forewarn.control.driver import Cancelled, Done, DriverTask, Failed, NotBegun
from forewarn.core.basic_types import HostName, MachineId
from forewarn.core.model.order import AttemptId
from forewarn.drivers.driver_setup import remember
from forewarn.drivers.hooks import Hook
from forewarn.drivers.program_steps import as_json, as_variables
from forewarn.programs.program import Invocation
from forewarn.programs.watched_program import clean_environment

# No driver's own mark begins so.
_PREFIX = "machine-hooks "
# Attempts, and machines, of which something is known; those of attempts are forgotten when they end.
REMEMBERED = 10_000


class Part(StrEnum):
    """What of a step is under way."""

    BEFORE = "before"  # the hook before the work
    WORK = "work"  # the work of the driver
    AFTER = "after"  # the hook after the work


WorkEnd: TypeAlias = Done | Failed | Cancelled


@dataclass(frozen=True, slots=True, kw_only=True)
class HookedMark:
    """How far a step is."""

    part: Part
    hook: str = ""  # what the hook left that runs
    mark: str = ""  # what the driver left
    end: WorkEnd | None = None  # of the work; then the hook after it runs


def write_mark(mark: HookedMark) -> str:
    """Write down how far a step is."""
    said = {"part": mark.part, "hook": mark.hook, "mark": mark.mark, "end": _written(mark.end)}
    return _PREFIX + json.dumps({key: value for key, value in said.items() if value})


def read_mark(text: str) -> HookedMark | None:
    """Read how far a step is; None if that was not written here."""
    if not text.startswith(_PREFIX):
        return None
    said = json.loads(text.removeprefix(_PREFIX))
    return HookedMark(
        part=Part(said["part"]),
        hook=said.get("hook", ""),
        mark=said.get("mark", ""),
        end=_read(said["end"]) if "end" in said else None,
    )


def end_as_json(end: WorkEnd | None) -> dict[str, Any]:
    """Write down how work ended, as hooks read it; None: otherwise than by its driver's word."""
    match end:
        case Done(host=host):
            return {"state": "done", "host": host}
        case Failed(why=why):
            return {"state": "failed", "why": why}
        case Cancelled():
            return {"state": "cancelled"}
        case None:
            return {"state": "abandoned"}


def _written(end: WorkEnd | None) -> dict[str, Any] | None:
    match end:
        case None:
            return None
        case Done(impact=impact):
            return {**end_as_json(end), "impact": impact}
        case _:
            return end_as_json(end)


def _read(said: dict[str, Any]) -> WorkEnd:
    match said["state"]:
        case "done":
            host = said.get("host")
            return Done(None if host is None else HostName(host), said.get("impact"))
        case "failed":
            return Failed(said["why"])
        case _:
            return Cancelled()


def hook_before(task: DriverTask, settings: MachineHookSettings, *, mark: str) -> Hook:
    """Return the hook before the work; the mark is what it has left."""
    asked = replace(task, mark=mark)

    def invocation(call: str) -> Invocation:
        return _invocation((*settings.before, call), asked, call, {"hook": "machine-before"})

    return _hook(task, Part.BEFORE, settings, invocation)


def hook_after(
    task: DriverTask, settings: MachineHookSettings, *, mark: str = "", end: WorkEnd | None
) -> Hook:
    """Return the hook after the work, which is given how that ended; None: not as its driver said."""
    asked = replace(task, mark=mark)

    def invocation(call: str) -> Invocation:
        more = {"hook": "machine-after", "outcome": end_as_json(end)}
        return _invocation((*settings.after, call), asked, call, more)

    return _hook(task, Part.AFTER, settings, invocation)


def _hook(
    task: DriverTask, part: Part, settings: MachineHookSettings, invocation: Callable[[str], Invocation]
) -> Hook:
    return Hook(
        key=(task.id, part),
        name=f"{task.name}, {part} the work",
        now=task.now,
        invocation=invocation,
        timeout=settings.timeout,
    )


def _invocation(words: Sequence[str], task: DriverTask, call: str, more: dict[str, Any]) -> Invocation:
    variables = {**as_variables(task, call=call), "FOREWARN_HOOK": more["hook"]}
    if "outcome" in more:
        variables["FOREWARN_OUTCOME"] = more["outcome"]["state"]
    return Invocation(
        words=words, environment=clean_environment(variables), input=as_json(task, call=call, more=more)
    )


@dataclass(slots=True)
class HookedAttempt:
    """What is known of an attempt; it belongs to the thread that has its turn."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    to_begin: Part | None = None  # saved as under way by this server, and not begun yet
    begun: bool = False  # something of it was begun, for all that is known
    given_up: bool = False  # nothing more of it is begun but the hook after
    called_off: bool = False  # the driver does no more of it
    after: bool = False  # the hook after was begun, or may have been
    hook_mark: str = ""  # what the hook after left while the step was called off
    over: bool = False  # its end was answered, or seen to

    def end_with(self, end: WorkEnd, *, note: str = "") -> Done | Failed | NotBegun:
        """Answer with the end of the work."""
        self.over = True
        match end:
            case Done():
                return replace(end, note=note)
            case Failed(why=why):
                return replace(end, why=f"{why}; {note}" if note else why)
            case Cancelled():
                return NotBegun()  # its order is being abandoned: what has not begun is called off

    def takes_turn(self, part: Part) -> bool:
        """Return whether a part is to be begun now; the caller begins it then."""
        if self.to_begin is not part:
            return False
        self.to_begin = None
        is_next = not (part is Part.AFTER and self.after)
        self.after = self.after or part is Part.AFTER
        self.begun = True
        return is_next


class HookedAttempts:
    """All that is known, and the hooks after earlier attempts that may still run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the rest
        self._attempts: OrderedDict[AttemptId, HookedAttempt] = OrderedDict()
        self._ended: OrderedDict[AttemptId, None] = OrderedDict()
        self._left: OrderedDict[MachineId, Hashable] = OrderedDict()  # the hook after, by machine

    def __len__(self) -> int:
        return len(self._attempts)

    def __contains__(self, id_: AttemptId) -> bool:
        with self._lock:
            return id_ in self._attempts

    def known(self, id_: AttemptId) -> HookedAttempt:
        """Return what is known of an attempt, from now on."""
        with self._lock:
            known = self._attempts.get(id_) or HookedAttempt()
            remember(self._attempts, id_, known, most=REMEMBERED)
        return known

    def end(self, id_: AttemptId) -> HookedAttempt | None:
        """Forget what was known of an attempt, and return it; of the attempt is kept that it has ended."""
        with self._lock:
            remember(self._ended, id_, None, most=REMEMBERED)
            return self._attempts.pop(id_, None)

    def has_ended(self, id_: AttemptId) -> bool:
        """Return whether an attempt has ended: a call that was on its way must not begin anything."""
        with self._lock:
            return id_ in self._ended

    def leave(self, machine: MachineId, hook: Hashable) -> None:
        """Keep which hook may still run at a machine."""
        with self._lock:
            remember(self._left, machine, hook, most=REMEMBERED)

    def left(self, machine: MachineId) -> Hashable | None:
        """Return the hook that may still run at a machine."""
        with self._lock:
            return self._left.get(machine)

    def settle(self, machine: MachineId) -> None:
        """Forget the hook that has ended."""
        with self._lock:
            self._left.pop(machine, None)
