"""Programs: the invocation, the outcome, and how to end a process group."""

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from forewarn.core.text_formats import on_one_line
from forewarn.platform import system
from forewarn.programs.keeper import last_line

# The time between SIGTERM and SIGKILL.
GRACE_SECONDS = 5.0
# The exit code with which a program asks to be run again: EX_TEMPFAIL of sysexits.h.
TRY_AGAIN = 75


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """A command with its environment, user and input."""

    words: Sequence[str]
    environment: Mapping[str, str]
    identity: Mapping[str, Any] = field(default_factory=dict)  # the user, from `system.identity_of`
    input: bytes = b""

    @property
    def how(self) -> dict[str, Any]:
        """The keyword arguments for `subprocess.Popen`."""
        return {**self.identity, "env": {**self.environment, **self.identity.get("env", {})}}


class ProcessId(NamedTuple):
    """A process and its start time, which distinguishes it from a later process with the same pid."""

    pid: int
    started: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """The program ended by itself."""

    code: int  # negative: the signal that ended it
    output: bytes = b""  # the beginning of stdout, if the caller reads stdout
    last_line: str = ""  # of stderr if the caller reads stdout, else of all output


@dataclass(frozen=True, slots=True)
class TimedOut:
    """forewarn ended the program, after its timeout or because the caller ended it."""


@dataclass(frozen=True, slots=True)
class NotRun:
    """The program could not be started."""

    why: str


@dataclass(frozen=True, slots=True)
class Unwatched:
    """The program was started, but its exit code is unknown."""

    why: str


Outcome: TypeAlias = Exited | TimedOut | NotRun | Unwatched


def last_line_of(output: bytes, *, longest: int) -> str:
    """Return the last line that is not empty as printable text."""
    return on_one_line(last_line(output).decode(errors="replace")).strip()[:longest]


async def end_group(pid: int, wait: Callable[[], Awaitable[object]]) -> None:
    """End a process group with SIGTERM, then SIGKILL; `wait` returns when the program has ended."""
    import asyncio  # a program that only reads a journal does not need it

    for force in (False, True):
        system.end_tree(pid, force=force)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(wait(), GRACE_SECONDS)
            break
    system.end_tree(pid, force=True)  # the other processes of the group
