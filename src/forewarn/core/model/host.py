"""Hosts and their load."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol, Self

from forewarn.core.basic_types import DECLARED, GroupName, HostName, HostState, OrderId
from forewarn.core.model.machine import Machine
from forewarn.core.text_formats import truncated_list
from forewarn.core.time_formats import format_time


@dataclass(frozen=True, slots=True, kw_only=True)
class HostResource:
    """An amount of a resource that a host has."""

    amount: float  #: Physical amount.
    ratio: float = 1.0  #: Overcommit ratio.

    @property
    def capacity(self) -> float:
        """The total that its machines may take."""
        return self.amount * self.ratio

    def __str__(self) -> str:
        """Format as in `host put --resource`: `64` or `64x4`."""
        return f"{self.amount:g}" if self.ratio == 1 else f"{self.amount:g}x{self.ratio:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLoad:
    """The load of a host, including machines on their way to it."""

    carried: int = 0
    free: Mapping[str, float] = field(default_factory=dict)  # of each declared resource


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTraits:
    """The declared properties of a host."""

    name: HostName
    driver: str | None = None  # None: the default of the fleet
    uri: str | None = None  # the connection of its driver, if needed
    at_once: int | None = None  # the most concurrent calls of its driver; None: the driver's default
    # Resources by freely chosen names. A resource that is not declared is unlimited.
    resources: Mapping[str, HostResource] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)  # machines may require labels
    bare_metal: bool = False  # it is its own only machine, of the same name
    source: str = DECLARED  # a person, a fleet file, or the driver that imported it


@dataclass(frozen=True, slots=True, kw_only=True)
class Host(HostTraits):
    """A physical node that carries machines."""

    state: HostState = HostState.OK
    cordoned_for: OrderId | None = None  # the order that cordoned it; None: not cordoned, or by a person
    # When its driver lost contact; None: the driver reaches it, has not tried yet, or cannot tell.
    unreachable_since: datetime | None = None

    @property
    def is_usable(self) -> bool:
        """Whether machines may move there now."""
        return self.state is HostState.OK and self.unreachable_since is None

    @property
    def takes_machines(self) -> bool:
        """Whether machines may move there, now or after the order that cordoned it."""
        return (self.state is HostState.OK or self.cordoned_for is not None) and not self.bare_metal


# The label for hosts that are maintained together.
RACK = "rack"
# How many unreachable hosts a message names.
MOST_NAMED = 3


class Needs(Protocol):
    """The requirements of a machine."""

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels that its host must have."""
        ...

    @property
    def resources(self) -> Mapping[str, float]:
        """The amount of each resource that it takes."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The load of a usable host; machines on their way to it count here, and not where they leave."""

    carried: int = 0
    # How many machines it has of each update domain of the groups in question.
    members: Mapping[tuple[GroupName, int], int] = field(default_factory=dict)
    busy: bool = False  # it has an order of its own, which would soon disturb a machine that moves there
    driver: str | None = None  # the driver that the host itself declares
    labels: Mapping[str, str] = field(default_factory=dict)
    # The rest of each declared resource.
    free: Mapping[str, float] = field(default_factory=dict)
    unreachable_since: datetime | None = None  # when its driver lost contact

    @property
    def rack(self) -> str | None:
        """The rack of the host, if it is declared."""
        return self.labels.get(RACK)

    def why_not(self, machine: Needs) -> str | None:
        """Return a label or resource that the host lacks for a machine; None: the machine fits."""
        for name, value in machine.labels.items():
            if self.labels.get(name) != value:
                return f"{name}={value}"
        for name, amount in machine.resources.items():
            if name in self.free and self.free[name] < amount:
                return f"{amount:g} {name}"
        return None

    def of_group(self, group: GroupName) -> int:
        """Return how many machines of a group the host has."""
        return sum(count for (name, _), count in self.members.items() if name == group)

    def of_domain(self, machine: Machine) -> int:
        """Return how many machines the host has of a machine's group and update domain."""
        return self.members.get((machine.group, machine.update_domain), 0)

    def joined(self, machine: Machine) -> Self:
        """Return the load with one more machine."""
        mine = (machine.group, machine.update_domain)
        members = {**self.members, mine: self.members.get(mine, 0) + 1}
        return replace(self.taken(machine), carried=self.carried + 1, members=members)

    def taken(self, machine: Needs) -> Self:
        """Return the load without the resources that a machine takes."""
        free = {name: left - machine.resources.get(name, 0) for name, left in self.free.items()}
        return replace(self, free=free)


def unreached(since: Mapping[HostName, datetime]) -> str:
    """Name the first of some unreachable hosts, and when contact was lost."""
    if len(since) == 1:
        ((name, moment),) = since.items()
        return f"{name} cannot be reached since {format_time(moment)}"
    named = [f"{name} (since {format_time(since[name])})" for name in sorted(since)]
    return f"{truncated_list(named, MOST_NAMED)} cannot be reached"


def most_common_lack(rooms: Iterable[Room], machine: Needs) -> str:
    """Name the requirement that most hosts lack; empty if none lacks anything."""
    missing = Counter(why for room in rooms if (why := room.why_not(machine)) is not None)
    return f"most lack {missing.most_common(1)[0][0]}" if missing else ""


def no_room_for(rooms: Iterable[Room], machine: Needs) -> str:
    """Say that no host has room for a machine, and what most hosts lack."""
    most = most_common_lack(rooms, machine)
    return f"finds no host with room for it: {most}" if most else "finds no host with room for it"
