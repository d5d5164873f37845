"""Reasons to wait, as data: holds, armed events and budgets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from forewarn.core.basic_types import (
    HINTS,
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
    """A reason to wait: `what` waits because of `reason`."""

    what: str
    reason: str
    group: GroupName | None = None  # the group whose events it waits for
    stuck: bool = False  # only a person can resolve it
    room: bool = False  # it waits for a host with free resources
    outside: bool = False  # it waits for a report from outside forewarn
    until: datetime | None = None  # the reason expires then, even if the engine has not looked again

    def __str__(self) -> str:
        return f"{self.what}: {self.reason}"


def earliest_end(waiting: Iterable[Waiting]) -> datetime | None:
    """Return when the first of some reasons expires, if any does."""
    return min((wait.until for wait in waiting if wait.until is not None), default=None)


# The scope of a hold on neither a project nor a host, in messages.
FLEET_REACH = "the whole fleet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """An operator's order to announce and start nothing: anywhere, in a project, or on a host."""

    id: str
    reason: str
    by: str
    at: datetime
    project: ProjectName | None = None
    host: HostName | None = None
    abort: bool = False  # also cancel the work that is under way


@dataclass(frozen=True, slots=True, kw_only=True)
class Grace:
    """A delay of unapproved starts: the clock jumped, and guests lost that much of their notice."""

    until: datetime
    announced_before: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmedDomain:
    """The armed listed events of one update domain of a group."""

    events: int = 0
    freezes: int = 0  # how many of them are Freezes
    frozen: int = 0  # how many machines those Freezes name
    order: OrderId | None = None  # the order of one of them, if known

    def plus(self, event: Event) -> "ArmedDomain":
        """Add an event, if it is armed."""
        return self._changed(event, by=1, order=self.order or event.order)

    def minus(self, event: Event) -> "ArmedDomain":
        """Subtract an event, if it was armed."""
        return self._changed(event, by=-1, order=None if self.order == event.order else self.order)

    def _changed(self, event: Event, *, by: int, order: OrderId | None) -> "ArmedDomain":
        if not blocks_other_domains(event):
            return self
        freezes = by if event.type is EventType.FREEZE else 0
        return ArmedDomain(
            events=self.events + by,
            freezes=self.freezes + freezes,
            frozen=self.frozen + freezes * len(event.resources),
            order=order,
        )


def blocks_other_domains(event: Event) -> bool:
    """Whether an event keeps other update domains of its group from being armed."""
    return event.ended_at is None and event.armed_at is not None and event.type not in HINTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How many healthy machines a group needs, and how many it has."""

    needs: int
    members: int
    down: Mapping[MachineId, MachineName] = field(default_factory=dict)  # not running
    announced: Mapping[MachineId, MachineName] = field(default_factory=dict)  # named in an event

    @property
    def at_best(self) -> int:
        """How many machines may be disturbed together if all are healthy."""
        return self.members - self.needs

    @property
    def spare(self) -> int:
        """How many more machines may be disturbed now."""
        return self.members - len(self.unwell) - self.needs

    @property
    def unwell(self) -> frozenset[MachineId]:
        """Machines that are down or announced: guests drain a machine as soon as its event is visible."""
        return frozenset((*self.down, *self.announced))
