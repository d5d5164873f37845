"""A program: what is run, how it ended, and how it is ended with all that it has started."""

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from forewarn.core.text_formats import on_one_line
from forewarn.platform import system
from forewarn.programs.keeper import last_line

# For a program to end when it is asked to, before it is forced.
GRACE_SECONDS = 5.0
# What a program exits with that is to be asked, or tried, again: EX_TEMPFAIL of sysexits.h.
TRY_AGAIN = 75


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """What is run, and how."""

    words: Sequence[str]
    environment: Mapping[str, str]
    identity: Mapping[str, Any] = field(default_factory=dict)  # its user, as `system.identity_of` returns
    input: bytes = b""

    @property
    def how(self) -> dict[str, Any]:
        """How it is run, as `subprocess` takes it."""
        return {**self.identity, "env": {**self.environment, **self.identity.get("env", {})}}


class ProcessId(NamedTuple):
    """A process, and when it started: its number alone may have been given to another since."""

    pid: int
    started: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """It ended by itself."""

    code: int  # negative: the signal that ended it
    output: bytes = b""  # the beginning of stdout, if its caller reads that
    last_line: str = ""  # of what it said, on stderr if its caller reads stdout


@dataclass(frozen=True, slots=True)
class TimedOut:
    """It was ended, because its time was over or its caller no longer wanted it."""


@dataclass(frozen=True, slots=True)
class NotRun:
    """It could not be started."""

    why: str


@dataclass(frozen=True, slots=True)
class Unwatched:
    """It was started, and how it ended is not known."""

    why: str


Outcome: TypeAlias = Exited | TimedOut | NotRun | Unwatched


def last_line_of(said: bytes, *, longest: int) -> str:
    """Return the last line that is not empty, as one for people to read."""
    return on_one_line(last_line(said).decode(errors="replace")).strip()[:longest]


async def end_group(pid: int, wait: Callable[[], Awaitable[object]]) -> None:
    """End a program with all that it has started: ask it, then force it; `wait` returns when it has ended."""
    import asyncio  # not for a program that only reads a journal

    for force in (False, True):
        system.end_tree(pid, force=force)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(wait(), GRACE_SECONDS)
            break
    system.end_tree(pid, force=True)  # what it has left behind
