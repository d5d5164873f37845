"""Hosts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from forewarn.core.words import DECLARED, HostName, HostState, OrderId


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
