"""Hosts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

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

    @property
    def takes_machines(self) -> bool:
        """Whether machines may move there, now or when the order is over that has closed it."""
        return (self.state is HostState.OK or self.cordoned_for is not None) and not self.bare_metal
