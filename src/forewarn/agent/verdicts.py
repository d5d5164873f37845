"""Decide whether to act on an event now, later or never.

The filter of a handler selects its events and the time at which it runs. The approval policy decides whether
this machine approves an event, and which machine of the event does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from forewarn.core.basic_types import HINTS, EventStatus, EventType, Source
from forewarn.sdk.documents import Event

# If the first machine of an event does not approve within this time, the next one may.
SUCCESSION_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Now:
    """Act now."""


@dataclass(frozen=True, slots=True)
class Later:
    """Decide again in some seconds."""

    seconds: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class Skip:
    """Do not act on this event."""

    why: str


Verdict: TypeAlias = Now | Later | Skip


class ApprovePolicy(StrEnum):
    """The events that this machine approves once it is ready."""

    NEVER = "never"
    WHEN_READY = "when-ready"
    USER_EVENTS = "user-events"


class Approver(StrEnum):
    """The machine of an event that approves it."""

    SELF = "self"  # only for events that name this machine alone
    FIRST = "first"  # the first machine; each next one 30 s later
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDecider:
    """The approval policy of a machine."""

    approve: ApprovePolicy
    approver: Approver
    machine: str
    approve_unknown: bool = False

    def decide(self, event: Event, *, ready_for: float) -> Verdict:
        """Decide whether to approve an event for which this machine has been ready for some seconds."""
        if event.status != EventStatus.SCHEDULED:
            return Skip(f"it is {event.status}")
        if event.type in HINTS:
            return Skip(f"a {event.type} is only a recommendation")
        if self.approve is ApprovePolicy.NEVER:
            return Skip('the config has approve = "never"')
        if self.approve is ApprovePolicy.USER_EVENTS and event.source != Source.USER:
            return Skip(f"its source is {event.source or 'unknown'}, not User")
        if not event.type_is_known and not self.approve_unknown:
            return Skip(f"the event type {event.type} is unknown; `approve-unknown = true` approves it")
        return self._turn(event.resources, ready_for=ready_for)

    def _turn(self, resources: Sequence[str], *, ready_for: float) -> Verdict:
        names = [name.casefold() for name in resources]
        if self.machine.casefold() not in names:
            return Skip("it does not name this machine")
        index = names.index(self.machine.casefold())
        match self.approver:
            case Approver.SELF if len(resources) > 1:
                return Skip(f"it names {len(resources)} machines, and the approver is self")
            case Approver.FIRST if ready_for < (turn := index * SUCCESSION_SECONDS):
                return Later(turn - ready_for, f"{resources[0]} is first")
            case _:
                return Now()


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerFilter:
    """The filter of a handler; an omitted condition matches every event."""

    types: Sequence[EventType] | None = None
    sources: Sequence[Source] | None = None
    min_duration: float | None = None
    max_duration: float | None = None
    min_seconds_left: float | None = None  # with less time, the handler is skipped
    max_seconds_left: float | None = None  # with more time, the handler waits

    def contradiction(self) -> str | None:
        """Return why the filter matches no event, if it does not."""
        for name in ("duration", "seconds_left"):
            least, most = getattr(self, f"min_{name}"), getattr(self, f"max_{name}")
            if least is not None and most is not None and least > most:
                field = name.replace("_", "-")
                return f"min-{field}: expected at most max-{field}, {most:g} s, got {least:g} s"
        return None

    def verdict(self, event: Event, seconds_left: float | None) -> Verdict:
        """Decide whether to run a handler for an event; `seconds_left` is None if unknown."""
        if why := self._mismatch(event):
            return Skip(why)
        if seconds_left is None:
            return Now()
        if self.min_seconds_left is not None and seconds_left < self.min_seconds_left:
            return Skip(f"{seconds_left:.0f} s are left, and it needs {self.min_seconds_left:g} s")
        if self.max_seconds_left is not None and seconds_left > self.max_seconds_left:
            return Later(seconds_left - self.max_seconds_left)
        return Now()

    def _mismatch(self, event: Event) -> str | None:
        if event.type in HINTS and self.types is None:
            return f"a {event.type} is only a recommendation, for handlers that list it in types"
        # An unknown type may be any type, so every handler runs.
        if self.types is not None and event.type_is_known and event.type not in self.types:
            return f"its types do not include {event.type}"
        if self.sources is not None and event.source not in self.sources:
            return f"its sources do not include {event.source or 'unknown'}"
        # An interruption of unknown length may be long.
        seconds = float("inf") if event.duration is None else event.duration.total_seconds()
        span = "an unknown time" if event.duration is None else f"{seconds:g} s"
        if self.min_duration is not None and seconds < self.min_duration:
            return f"the event interrupts for {span}, less than {self.min_duration:g} s"
        if self.max_duration is not None and seconds > self.max_duration:
            return f"the event interrupts for {span}, which may be more than {self.max_duration:g} s"
        return None

    def in_words(self) -> list[str]:
        """Describe the conditions other than the type."""
        conditions = []
        if self.sources is not None:
            conditions.append(f"if its source is {' or '.join(self.sources)}")
        if self.min_duration is not None:
            conditions.append(f"if it interrupts for at least {self.min_duration:g} s or an unknown time")
        if self.max_duration is not None:
            conditions.append(f"if it interrupts for at most {self.max_duration:g} s")
        if self.min_seconds_left is not None:
            conditions.append(f"if at least {self.min_seconds_left:g} s are left")
        if self.max_seconds_left is not None:
            conditions.append(f"once {self.max_seconds_left:g} s are left")
        return conditions
