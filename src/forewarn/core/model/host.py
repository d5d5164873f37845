"""Hosts, and how full each is for machines that look for one."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol, Self

from forewarn.core.basic_types import DECLARED, GroupName, HostName, HostState, OrderId
from forewarn.core.model.machine import Machine
from forewarn.core.time_formats import format_time


@dataclass(frozen=True, slots=True, kw_only=True)
class HostResource:
    """How much a host has of something that its machines take."""

    amount: float
    ratio: float = 1.0  # how often it may be given out

    @property
    def capacity(self) -> float:
        """How much its machines may take in all."""
        return self.amount * self.ratio

    def __str__(self) -> str:
        """Write it as `host put --resource` takes it: `64` or `64x4`."""
        return f"{self.amount:g}" if self.ratio == 1 else f"{self.amount:g}x{self.ratio:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLoad:
    """The load of a host. A machine on its way to it takes its resources already."""

    carried: int = 0
    free: Mapping[str, float] = field(default_factory=dict)  # of each resource that the host declares


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The physical node that carries machines."""

    name: HostName
    state: HostState = HostState.OK
    driver: str | None = None  # who does the work on it; None: whoever the fleet's defaults say
    uri: str | None = None  # where its driver reaches it, if that needs to be told
    at_once: int | None = None  # how many calls its driver may make there together; None: as the driver says
    # What its machines take of it, by names of one's own; of what is not named here it has enough.
    resources: Mapping[str, HostResource] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)  # what machines may ask of it
    bare_metal: bool = False  # it is itself the one machine that it carries, of the same name
    cordoned_for: OrderId | None = None  # the order that has cordoned it; None: nobody, or a person
    source: str = DECLARED  # who speaks for it: people, or the driver that it was imported by
    # Since when its driver cannot reach it; None: the driver reaches it, has not tried yet, or cannot tell.
    unreachable_since: datetime | None = None

    @property
    def is_usable(self) -> bool:
        """Whether machines may be sent there now."""
        return self.state is HostState.OK and self.unreachable_since is None

    @property
    def takes_machines(self) -> bool:
        """Whether machines may move there, now or when the order is over that has closed it."""
        return (self.state is HostState.OK or self.cordoned_for is not None) and not self.bare_metal


# The label of hosts that says which of them stand, and are maintained, together.
RACK = "rack"
# Of hosts that cannot be reached.
MOST_NAMED = 3


class Needs(Protocol):
    """What a machine asks of its host, and takes of it."""

    @property
    def labels(self) -> Mapping[str, str]:
        """What its host must have, all of it."""
        ...

    @property
    def resources(self) -> Mapping[str, float]:
        """How much it takes of each."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How full a sound host is; machines on their way to it count as there, and not where they leave."""

    carried: int = 0
    # How many it has of each update domain of the groups that are looked at.
    members: Mapping[tuple[GroupName, int], int] = field(default_factory=dict)
    busy: bool = False  # it has an order of its own, which would soon disturb a machine that comes
    driver: str | None = None  # what the host itself says of who does the work there
    labels: Mapping[str, str] = field(default_factory=dict)
    # What is left of each resource that the host declares, for machines that take some.
    free: Mapping[str, float] = field(default_factory=dict)
    unreachable_since: datetime | None = None  # since when its driver cannot reach it

    @property
    def rack(self) -> str | None:
        """The rack that the host is in, if that is declared."""
        return self.labels.get(RACK)

    def why_not(self, machine: Needs) -> str | None:
        """Return what a machine asks of its host or takes of it that this one lacks; None: it fits."""
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
        """Return how many machines the host has of another machine's group and update domain."""
        return self.members.get((machine.group, machine.update_domain), 0)

    def joined(self, machine: Machine) -> Self:
        """Return the room with one more machine."""
        mine = (machine.group, machine.update_domain)
        members = {**self.members, mine: self.members.get(mine, 0) + 1}
        return replace(self.taken(machine), carried=self.carried + 1, members=members)

    def taken(self, machine: Needs) -> Self:
        """Return the room without what a machine takes."""
        free = {name: left - machine.resources.get(name, 0) for name, left in self.free.items()}
        return replace(self, free=free)


def unreached(since: Mapping[HostName, datetime]) -> str:
    """Name hosts that cannot be reached, and since when: the first of many."""
    if len(since) == 1:
        ((name, moment),) = since.items()
        return f"{name} cannot be reached since {format_time(moment)}"
    named = [f"{name} (since {format_time(since[name])})" for name in sorted(since)]
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    return f"{', '.join(named[:MOST_NAMED])}{more} cannot be reached"


def most_lack(rooms: Iterable[Room], machine: Needs) -> str:
    """Say what a machine asks for that hosts do not have; nothing if they have it."""
    missing = Counter(why for room in rooms if (why := room.why_not(machine)) is not None)
    return f"most lack {missing.most_common(1)[0][0]}" if missing else ""


def no_room_for(rooms: Iterable[Room], machine: Needs) -> str:
    """Say that a machine finds no host, and what it asks for in vain."""
    most = most_lack(rooms, machine)
    return f"finds no host with room for it: {most}" if most else "finds no host with room for it"
