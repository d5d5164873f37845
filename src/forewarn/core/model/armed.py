"""Armed events, counted: what keeps other update domains of a group away."""

from dataclasses import dataclass

from forewarn.core.model.event import Event
from forewarn.core.words import EventType, OrderId


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmedDomain:
    """The listed events of one update domain of a group that are armed."""

    events: int = 0
    freezes: int = 0  # how many of them are Freezes
    frozen: int = 0  # how many machines those name
    order: OrderId | None = None  # whose one of them is, if that is known

    def plus(self, event: Event) -> "ArmedDomain":
        """Count one more, if it is armed."""
        if not counts(event):
            return self
        return ArmedDomain(
            events=self.events + 1,
            freezes=self.freezes + _freezes(event),
            frozen=self.frozen + _freezes(event) * len(event.resources),
            order=self.order or event.order,
        )

    def minus(self, event: Event) -> "ArmedDomain":
        """Count one less, if it was armed."""
        if not counts(event):
            return self
        return ArmedDomain(
            events=self.events - 1,
            freezes=self.freezes - _freezes(event),
            frozen=self.frozen - _freezes(event) * len(event.resources),
            order=None if self.order == event.order else self.order,
        )


def counts(event: Event) -> bool:
    """Return whether an event keeps other update domains away."""
    return event.listed and event.armed and not event.hint


def _freezes(event: Event) -> bool:
    return event.type is EventType.FREEZE
