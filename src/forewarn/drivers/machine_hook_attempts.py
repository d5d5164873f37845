"""The state of attempts that have hooks before and after the work on a machine.

The step's mark stores which part runs and how the work ended. The mark of the machine's driver is inside it.
A mark of another form is from a driver without hooks. The server loses all other state when it stops.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Hashable
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

# No driver's own mark has this prefix.
_PREFIX = "machine-hooks "
# The limit of remembered attempts, and of remembered machines.
REMEMBERED = 10_000


class Part(StrEnum):
    """The parts of a step with hooks."""

    BEFORE = "before"  # the hook before the work
    WORK = "work"  # the driver's work
    AFTER = "after"  # the hook after the work


WorkEnd: TypeAlias = Done | Failed | Cancelled


@dataclass(frozen=True, slots=True, kw_only=True)
class HookedMark:
    """The saved progress of a step with hooks."""

    part: Part
    hook: str = ""  # the mark of the running hook
    mark: str = ""  # the mark of the driver
    end: WorkEnd | None = None  # how the work ended; the hook after it runs then


def write_mark(mark: HookedMark) -> str:
    """Write the progress of a step."""
    end = None if mark.end is None else end_as_json(mark.end)
    if end is not None and isinstance(mark.end, Done):
        end["impact"] = mark.end.impact
    fields = {"part": mark.part, "hook": mark.hook, "mark": mark.mark, "end": end}
    return _PREFIX + json.dumps({key: value for key, value in fields.items() if value})


def read_mark(text: str) -> HookedMark | None:
    """Read the progress of a step; return None if the mark has another form."""
    if not text.startswith(_PREFIX):
        return None
    fields = json.loads(text.removeprefix(_PREFIX))
    return HookedMark(
        part=Part(fields["part"]),
        hook=fields.get("hook", ""),
        mark=fields.get("mark", ""),
        end=_read_end(fields["end"]) if "end" in fields else None,
    )


def end_as_json(end: WorkEnd | None) -> dict[str, Any]:
    """Return how the work ended, as hooks read it; None stands for an abandoned order."""
    match end:
        case Done(host=host):
            return {"state": "done", "host": host}
        case Failed(why=why):
            return {"state": "failed", "why": why}
        case Cancelled():
            return {"state": "cancelled"}
        case None:
            return {"state": "abandoned"}


def _read_end(fields: dict[str, Any]) -> WorkEnd:
    match fields["state"]:
        case "done":
            host = fields.get("host")
            return Done(None if host is None else HostName(host), fields.get("impact"))
        case "failed":
            return Failed(fields["why"])
        case _:
            return Cancelled()


def hook_before(task: DriverTask, settings: MachineHookSettings, *, mark: str) -> Hook:
    """Return the hook before the work; `mark` is the hook's own."""
    return _hook(replace(task, mark=mark), Part.BEFORE, settings, {"hook": "machine-before"})


def hook_after(
    task: DriverTask, settings: MachineHookSettings, *, mark: str = "", end: WorkEnd | None
) -> Hook:
    """Return the hook after the work, with how the work ended; `mark` is the hook's own."""
    more = {"hook": "machine-after", "outcome": end_as_json(end)}
    return _hook(replace(task, mark=mark), Part.AFTER, settings, more)


def _hook(task: DriverTask, part: Part, settings: MachineHookSettings, more: dict[str, Any]) -> Hook:
    command = settings.before if part is Part.BEFORE else settings.after

    def invocation(call: str) -> Invocation:
        variables = {**as_variables(task, call=call), "FOREWARN_HOOK": more["hook"]}
        if "outcome" in more:
            variables["FOREWARN_OUTCOME"] = more["outcome"]["state"]
        return Invocation(
            words=(*command, call),
            environment=clean_environment(variables),
            input=as_json(task, call=call, more=more),
        )

    return Hook(
        key=(task.id, part),
        name=f"{task.name}, {part} the work",
        now=task.now,
        invocation=invocation,
        timeout=settings.timeout,
    )


@dataclass(slots=True)
class HookedAttempt:
    """The state of an attempt in this process; the thread that holds `turn` owns it."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    to_begin: Part | None = None  # the mark names this part, and this server has not begun it yet
    begun: bool = False  # a hook or the work may have begun
    abandoned: bool = False  # only the hook after may still begin
    cancelled: bool = False  # the driver does no more of the attempt
    after: bool = False  # the hook after may have begun
    hook_mark: str = ""  # the mark of the hook after while the step is cancelled
    over: bool = False  # the attempt has been answered or cleaned up

    def end_with(self, end: WorkEnd, *, note: str = "") -> Done | Failed | NotBegun:
        """Return the end of the work as the answer."""
        self.over = True
        match end:
            case Done():
                return replace(end, note=note)
            case Failed(why=why):
                return replace(end, why=f"{why}; {note}" if note else why)
            case Cancelled():
                return NotBegun()  # the order is being abandoned, so the engine cancels the step

    def begins_now(self, part: Part) -> bool:
        """Return whether the caller must begin a part now."""
        if self.to_begin is not part:
            return False
        self.to_begin = None
        is_next = not (part is Part.AFTER and self.after)
        self.after = self.after or part is Part.AFTER
        self.begun = True
        return is_next


class HookedAttempts:
    """All attempts in this process, and the hooks of earlier attempts that may still run."""

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
        """Return the state of an attempt; create it if it is new."""
        with self._lock:
            known = self._attempts.get(id_) or HookedAttempt()
            remember(self._attempts, id_, known, most=REMEMBERED)
        return known

    def end(self, id_: AttemptId) -> HookedAttempt | None:
        """Mark an attempt as ended; remove and return its state."""
        with self._lock:
            remember(self._ended, id_, None, most=REMEMBERED)
            return self._attempts.pop(id_, None)

    def has_ended(self, id_: AttemptId) -> bool:
        """Return whether an attempt has ended, so that a late call begins nothing."""
        with self._lock:
            return id_ in self._ended

    def leave(self, machine: MachineId, hook: Hashable) -> None:
        """Remember the hook of an earlier attempt that may still run for a machine."""
        with self._lock:
            remember(self._left, machine, hook, most=REMEMBERED)

    def left(self, machine: MachineId) -> Hashable | None:
        """Return the hook of an earlier attempt that may still run for a machine."""
        with self._lock:
            return self._left.get(machine)

    def settle(self, machine: MachineId) -> None:
        """Forget the hook of an earlier attempt, which has ended."""
        with self._lock:
            self._left.pop(machine, None)
