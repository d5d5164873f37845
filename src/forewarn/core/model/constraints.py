"""What keeps work from starting: reasons as data, holds, armed events and budgets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from forewarn.core.basic_types import (
    EventType,
    GroupName,
    HostName,
    MachineId,
    MachineName,
    OrderId,
    ProjectName,
)
from forewarn.core.model.event import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Why something cannot go on yet: `what` waits, for `reason`."""

    what: str
    reason: str
    group: GroupName | None = None  # the group whose events it waits for, if that is the cause
    stuck: bool = False  # nothing that is under way will change it: a person must
    room: bool = False  # it waits until a host has room for it
    outside: bool = False  # it waits for a report of those who work outside
    until: datetime | None = None  # from then on it no longer holds, also if it was not looked at again

    def __str__(self) -> str:
        return f"{self.what}: {self.reason}"


def earliest_end(waiting: Iterable[Waiting]) -> datetime | None:
    """Return when the first of some reasons no longer holds, if that is known of any."""
    return min((wait.until for wait in waiting if wait.until is not None), default=None)


# In words, where a hold of neither a project nor a host reaches.
FLEET_REACH = "the whole fleet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """An operator's order that nothing new is announced or started: anywhere, in a project, or on a host."""

    id: str
    reason: str
    by: str
    at: datetime
    project: ProjectName | None = None
    host: HostName | None = None
    abort: bool = False  # what is under way there is called off too


@dataclass(frozen=True, slots=True, kw_only=True)
class Grace:
    """Unapproved starts are deferred: the clock jumped, and guests lost that much of their notice."""

    until: datetime
    announced_before: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmedDomain:
    """The listed events of one update domain of a group that are armed."""

    events: int = 0
    freezes: int = 0  # how many of them are Freezes
    frozen: int = 0  # how many machines those name
    order: OrderId | None = None  # whose one of them is, if that is known

    def plus(self, event: Event) -> "ArmedDomain":
        """Count one more, if it is armed."""
        if not keeps_others_away(event):
            return self
        return ArmedDomain(
            events=self.events + 1,
            freezes=self.freezes + _freezes(event),
            frozen=self.frozen + _freezes(event) * len(event.resources),
            order=self.order or event.order,
        )

    def minus(self, event: Event) -> "ArmedDomain":
        """Count one less, if it was armed."""
        if not keeps_others_away(event):
            return self
        return ArmedDomain(
            events=self.events - 1,
            freezes=self.freezes - _freezes(event),
            frozen=self.frozen - _freezes(event) * len(event.resources),
            order=None if self.order == event.order else self.order,
        )


def keeps_others_away(event: Event) -> bool:
    """Return whether an event keeps other update domains away."""
    return event.listed and event.armed and not event.hint


def _freezes(event: Event) -> bool:
    return event.type is EventType.FREEZE


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many healthy machines a group needs, and how it is."""

    needs: int
    members: int
    down: Mapping[MachineId, MachineName] = field(default_factory=dict)  # not running
    announced: Mapping[MachineId, MachineName] = field(default_factory=dict)  # named in an event, down or not

    @property
    def at_best(self) -> int:
        """How many may be disturbed together when all of it are well."""
        return self.members - self.needs

    @property
    def spare(self) -> int:
        """How many more may be disturbed now."""
        return self.members - len(self.unwell) - self.needs

    @property
    def unwell(self) -> frozenset[MachineId]:
        """Those that do not count as healthy: guests leave their group as soon as an event is announced."""
        return frozenset((*self.down, *self.announced))
