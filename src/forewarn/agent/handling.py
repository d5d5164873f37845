"""What a handler is given to do, and what it may return. Plug-ins rely on this module."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias

from forewarn.sdk.documents import Event


class Side(StrEnum):
    """The sides of an event that a handler acts on. Only handlers of kind `notify` have the last two."""

    PREPARE = "prepare"
    RECOVER = "recover"
    FAILED = "failed"  # notify that a handler could not prepare
    HELD = "held"  # notify that the event is not approved, because a handler could not prepare


WORK = (Side.PREPARE, Side.RECOVER)


@dataclass(frozen=True, slots=True)
class Ready:
    """It is done."""

    said: str = ""


@dataclass(frozen=True, slots=True)
class Again:
    """Not yet: try again, after so many seconds or after what the config says."""

    why: str
    after: float | None = None


@dataclass(frozen=True, slots=True)
class Never:
    """It failed, and trying again will not help."""

    why: str


Outcome: TypeAlias = Ready | Again | Never


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program to be run, that outlives the agent."""

    words: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One thing asked of a handler."""

    side: Side
    event: Event  # as it was when the task began
    machine: str
    attempt: int = 1  # from 1; counts on over restarts of the agent
    seconds_left: Callable[[], float | None]  # until the event may start; None if that is unknown
    run: Callable[[Command], Awaitable[Outcome]]  # run a program, or wait for the one a former agent started
    say: Callable[[str], None]  # for the log
    owe: Callable[[str], None]  # write down, before it is changed, what recovery is to put back
    failure: str = ""  # which handlers could not prepare, and why
    owed: Sequence[str] = ()  # what was written down so, by any attempt and any agent

    def owes(self, thing: str) -> bool:
        """Check whether recovery is to put a thing back."""
        return thing in self.owed


class Handling(Protocol):
    """What a kind of handler does.

    Either may be asked a second time for one event, if the agent was killed in the middle: it should do no
    harm. A task is cancelled when its time is over or its event has left.

    People may have stopped on purpose what a handler is about to stop, and recovery must not start it
    then. So a handler that changes something looks first. What is as it wants it already it leaves alone;
    anything else it names with `owe`, and then changes it. Recovery puts back what it `owes` and nothing
    else. That holds however often the agent is killed, and when events overlap: what one of them owes is
    passed on to the last.
    """

    async def prepare(self, task: Task, /) -> Outcome:
        """Get ready for an event."""
        ...

    async def recover(self, task: Task, /) -> Outcome:
        """Undo that, when the event is over."""
        ...

    def describe(self, side: Side, /) -> str:
        """Describe what it would do; empty if that is nothing."""
        ...

    def problems(self) -> Sequence[str]:
        """Return what stands in its way in this machine, as far as can be seen beforehand."""
        ...
