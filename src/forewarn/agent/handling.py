"""The interface of handlers: their tasks and their outcomes. Plug-ins use this module."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias

from forewarn.sdk.documents import Event


class Side(StrEnum):
    """The phases of an event in which a handler runs. Only handlers of kind `notify` have the last two."""

    PREPARE = "prepare"
    RECOVER = "recover"
    FAILED = "failed"  # notify that a handler has failed to prepare
    HELD = "held"  # notify that the event is not approved because a handler has failed to prepare


WORK = (Side.PREPARE, Side.RECOVER)


@dataclass(frozen=True, slots=True)
class Ready:
    """The handler is done."""

    said: str = ""


@dataclass(frozen=True, slots=True)
class Again:
    """The handler is not done: try again after some seconds, or after the `retry` of the config."""

    why: str
    after: float | None = None


@dataclass(frozen=True, slots=True)
class Never:
    """The handler has failed, and another try would not help."""

    why: str


Outcome: TypeAlias = Ready | Again | Never


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program to run; it outlives the agent."""

    words: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task of a handler."""

    side: Side
    event: Event  # at the beginning of the task
    machine: str
    attempt: int = 1  # from 1; continues after a restart of the agent
    seconds_left: Callable[[], float | None]  # until the event may start; None: unknown
    run: Callable[[Command], Awaitable[Outcome]]  # run a program, or wait for a program of an earlier agent
    say: Callable[[str], None]  # write to the log
    owe: Callable[[str], None]  # record a thing before changing it, so that recovery restores it
    failure: str = ""  # the handlers that failed to prepare, with reasons
    owed: Sequence[str] = ()  # the things recorded with `owe` by all attempts

    def owes(self, thing: str) -> bool:
        """Return whether recovery must restore a thing."""
        return thing in self.owed


class Handling(Protocol):
    """A kind of handler.

    Both methods must be idempotent: after a crash the agent calls them again for the same event. The agent
    cancels a task when its timeout has passed or its event has left the document.

    A person may have stopped a thing before the event, and recovery must not start it then. So a handler
    looks before it changes a thing. If the thing is already as wanted, the handler leaves it alone. Otherwise
    it records the thing with `owe` and then changes it. Recovery restores the things that it `owes` and no
    others. If events overlap, recovery from the last one restores the things of all.
    """

    async def prepare(self, task: Task, /) -> Outcome:
        """Prepare for an event."""
        ...

    async def recover(self, task: Task, /) -> Outcome:
        """Undo the preparation after the event."""
        ...

    def describe(self, side: Side, /) -> str:
        """Describe the action for one side; empty if there is none."""
        ...

    def problems(self) -> Sequence[str]:
        """Return problems of this machine that would make the handler fail."""
        ...
