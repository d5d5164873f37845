"""Whether something is to be done about an event: now, later or not at all."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Now:
    """It is to be done."""


@dataclass(frozen=True, slots=True)
class Later:
    """Ask again in so many seconds."""

    seconds: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class Skip:
    """It is not for this event, or not for this machine."""

    why: str


Verdict: TypeAlias = Now | Later | Skip
