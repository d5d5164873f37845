"""Whether something is to be done about an event: now, later or not at all.

A handler's filter says for which events it is meant, and when its time comes. The approval policy says
whether this machine approves an event, and which machine of the event does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from forewarn.core.basic_types import HINTS, EventStatus, EventType, Source
from forewarn.sdk.documents import Event

# How long the first machine of an event may be silent before the next approves for all of them.
SUCCESSION_SECONDS = 30.0


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


class ApprovePolicy(StrEnum):
    """Which events are approved, once this machine is ready for them."""

    NEVER = "never"
    WHEN_READY = "when-ready"
    USER_EVENTS = "user-events"


class Approver(StrEnum):
    """Which of the machines that an event names approves it."""

    SELF = "self"  # only events that name this machine alone
    FIRST = "first"  # the first; each next one 30 s later
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDecider:
    """How a machine approves."""

    approve: ApprovePolicy
    approver: Approver
    machine: str
    approve_unknown: bool = False

    def decide(self, event: Event, *, ready_for: float) -> Verdict:
        """Decide about an event that this machine has been ready for so many seconds."""
        if event.status != EventStatus.SCHEDULED:
            return Skip(f"it is {event.status}")
        if event.type in HINTS:
            return Skip(f"a {event.type} only recommends something")
        if self.approve is ApprovePolicy.NEVER:
            return Skip("the config says never")
        if self.approve is ApprovePolicy.USER_EVENTS and event.source != Source.USER:
            return Skip(f"its source is {event.source or 'unknown'}, not User")
        if not event.type_is_known and not self.approve_unknown:
            return Skip(f"nobody knows what a {event.type} is; `approve-unknown = true` approves it")
        return self._whose(event.resources, ready_for=ready_for)

    def _whose(self, resources: Sequence[str], *, ready_for: float) -> Verdict:
        index = _index(self.machine, resources)
        if index is None:
            return Skip("it does not name this machine")
        match self.approver:
            case Approver.SELF if len(resources) > 1:
                return Skip(f"it names {len(resources)} machines, not this one alone")
            case Approver.FIRST if ready_for < (turn := index * SUCCESSION_SECONDS):
                return Later(turn - ready_for, f"{resources[0]} is first")
            case _:
                return Now()


def _index(machine: str, resources: Sequence[str]) -> int | None:
    names = [name.casefold() for name in resources]
    return names.index(machine.casefold()) if machine.casefold() in names else None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """The filter of a handler; what is left out lets everything through."""

    types: Sequence[EventType] | None = None
    sources: Sequence[Source] | None = None
    min_duration: float | None = None
    max_duration: float | None = None
    min_seconds_left: float | None = None  # fewer: it would not get done, and is left out
    max_seconds_left: float | None = None  # more: it is too early, and waits

    def contradiction(self) -> str | None:
        """Return why it lets nothing through, if that is so."""
        for name in ("duration", "seconds_left"):
            least, most = getattr(self, f"min_{name}"), getattr(self, f"max_{name}")
            if least is not None and most is not None and least > most:
                field = name.replace("_", "-")
                return f"min-{field}: expected at most max-{field}, {most:g} s, got {least:g} s"
        return None

    def verdict(self, event: Event, seconds_left: float | None) -> Verdict:
        """Decide whether a handler is to be run for an event, with so much time left as far as is known."""
        if why := self._mismatch(event):
            return Skip(why)
        if seconds_left is None:
            return Now()
        if self.min_seconds_left is not None and seconds_left < self.min_seconds_left:
            return Skip(f"{seconds_left:.0f} s are left, it wants {self.min_seconds_left:g}")
        if self.max_seconds_left is not None and seconds_left > self.max_seconds_left:
            return Later(seconds_left - self.max_seconds_left)
        return Now()

    def _mismatch(self, event: Event) -> str | None:
        if event.type in HINTS and self.types is None:
            return f"a {event.type} only recommends something: it is for handlers that name it"
        # A type that nobody knows may be any of them, or worse.
        if self.types is not None and event.type_is_known and event.type not in self.types:
            return f"not for {event.type}"
        if self.sources is not None and event.source not in self.sources:
            return f"not for events of source {event.source or 'unknown'}"
        # An interruption of unknown length may be a long one.
        seconds = float("inf") if event.duration is None else event.duration.total_seconds()
        span = "an unknown time" if event.duration is None else f"{seconds:g} s"
        if self.min_duration is not None and seconds < self.min_duration:
            return f"it interrupts for {span}, less than {self.min_duration:g} s"
        if self.max_duration is not None and seconds > self.max_duration:
            return f"it interrupts for {span}, which may be more than {self.max_duration:g} s"
        return None

    def in_words(self) -> list[str]:
        """Return in words what it asks of an event, its type aside."""
        conditions = []
        if self.sources is not None:
            conditions.append(f"if its source is {' or '.join(self.sources)}")
        if self.min_duration is not None:
            conditions.append(
                f"if it interrupts for at least {self.min_duration:g} s, or nobody knows how long"
            )
        if self.max_duration is not None:
            conditions.append(f"if it interrupts for at most {self.max_duration:g} s")
        if self.min_seconds_left is not None:
            conditions.append(f"if at least {self.min_seconds_left:g} s are left")
        if self.max_seconds_left is not None:
            conditions.append(f"once {self.max_seconds_left:g} s are left")
        return conditions
