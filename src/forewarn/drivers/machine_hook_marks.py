"""How far a step with hooks around it is, as it is saved in the step's mark: which part runs, and what ended.

The mark of the driver itself is inside. A mark that is none of these was left by a driver without hooks.
"""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from forewarn.control.driver import Cancelled, Done, Failed
from forewarn.core.words import HostName

# No driver's own mark begins so.
_PREFIX = "machine-hooks "


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
