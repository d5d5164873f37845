"""What a program says on stdout of the step that it was asked about: a JSON object, if anything."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias, cast, get_args

from forewarn.control.driver import (
    Cancelled,
    Done,
    Failed,
    NotBegun,
    Running,
    TooLate,
    Unknown,
)
from forewarn.core.words import HostName
from forewarn.wire.text import on_one_line

StateWord: TypeAlias = Literal["done", "running", "failed", "unknown", "not-begun", "cancelled", "too-late"]
Said: TypeAlias = Done | Running | Failed | Unknown | NotBegun | Cancelled | TooLate

STATES: tuple[str, ...] = get_args(StateWord)
LONGEST_WHY = 500
# As much as is kept of what a program recognises an attempt by.
LONGEST_MARK = 1000
LONGEST_HOST = 64
# When a program that is at it is asked again, if it does not say when.
ASK_AGAIN = timedelta(seconds=10)
# A program that wants to be asked again in more than a day has not understood the unit.
LONGEST_WAIT = timedelta(days=1)
# No machine that was away for longer comes back by a step.
LONGEST_IMPACT = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramAnswer:
    """What a program has said; whatever of it is missing was not said."""

    state: StateWord | None = None
    why: str = ""
    look_in: timedelta | None = None
    mark: str = ""
    progress: float | None = None
    host: HostName | None = None
    impact: float | None = None  # in seconds

    def as_state(self, state: StateWord, *, now: datetime) -> Said:
        """Return it as the answer of a driver, in a state that it says or that its exit code does."""
        look_at = None if self.look_in is None else now + self.look_in
        match state:
            case "done":
                return Done(self.host, self.impact)
            case "running":
                return Running(look_at or now + ASK_AGAIN, mark=self.mark, progress=self.progress)
            case "failed":
                return Failed(self.why or "it says so, and not why")
            case "unknown":
                return Unknown(self.why or "it cannot tell", look_at)
            case "not-begun":
                return NotBegun()
            case "cancelled":
                return Cancelled()
            case "too-late":
                return TooLate()


def read_answer(output: bytes) -> ProgramAnswer | None:
    """Read what a program has said; None if that is nothing of this kind."""
    try:
        said = json.loads(output)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or said.get("state") not in (None, *STATES):
        return None
    return ProgramAnswer(
        state=cast("StateWord | None", said.get("state")),
        why=_text(said.get("why"))[:LONGEST_WHY],
        look_in=_span(said.get("look_in")),
        mark=_text(said.get("mark"))[:LONGEST_MARK],
        progress=_share(said.get("progress")),
        host=HostName(_text(said.get("host"))[:LONGEST_HOST]) or None,
        impact=_seconds(said.get("impact")),
    )


def _text(value: Any) -> str:
    return on_one_line(value).strip() if isinstance(value, str) else ""


def _span(value: Any) -> timedelta | None:
    return timedelta(seconds=min(value, LONGEST_WAIT.total_seconds())) if _is_number(value) else None


def _seconds(value: Any) -> float | None:
    return float(min(value, LONGEST_IMPACT.total_seconds())) if _is_number(value) else None


def _share(value: Any) -> float | None:
    return float(min(value, 1)) if _is_number(value) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
