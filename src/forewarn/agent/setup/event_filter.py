"""For which events a handler is meant, and when its time comes."""

from collections.abc import Sequence
from dataclasses import dataclass

from forewarn.agent.verdict import Later, Now, Skip, Verdict
from forewarn.core.words import HINTS, EventType, Source
from forewarn.sdk.documents import Event


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
