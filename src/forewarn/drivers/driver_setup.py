"""The arguments that a driver is created with."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from forewarn.config import Settings
from forewarn.config_reading import read_table
from forewarn.control.driver import DriverLimits
from forewarn.core.basic_types import MachineId

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class UnusableDriver(Exception):
    """The driver cannot run here, for example because a library is missing.

    The message tells the operator what to do. The server starts without the driver and refuses hosts and
    orders that name it. Steps that it already has wait.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverSetup:
    """The argument of a driver's entry point, created once per start. Later versions may add fields."""

    name: str  # the name that hosts use
    settings: Settings  # of the server
    options: Mapping[str, Any] = field(default_factory=dict)  # [drivers.NAME] without `kind` and `isolated`
    monotonic: Callable[[], float]  # real time in seconds
    # Makes forewarn call `check` for a machine soon. Any thread may call it.
    wake: Callable[[MachineId], None] = lambda machine: None

    def read(self, defaults: T) -> T:
        """Convert the options to a dataclass; raise Invalid if a key is unknown or a value is wrong."""
        return read_table(defaults, self.options, where=f"[drivers.{self.name}] ")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOptions:
    """The options of a driver that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """Options that every driver with lanes has."""

    #: Timeout of each call, in real time.
    timeout: timedelta = timedelta(seconds=60)
    #: Concurrent calls for each host, unless the host sets its own limit.
    at_once: int = 4

    def __post_init__(self) -> None:
        if self.timeout <= timedelta():
            raise ValueError("expected a time greater than zero")
        if self.at_once < 1:
            raise ValueError("expected at least 1")

    @property
    def limits(self) -> DriverLimits:
        """The limits for lanes."""
        return DriverLimits(timeout=self.timeout, at_once=self.at_once)


def remember(known: OrderedDict[K, V], key: K, value: V, *, most: int) -> None:
    """Store a value as the newest entry and drop the oldest entries above the limit."""
    known[key] = value
    known.move_to_end(key)
    while len(known) > most:
        known.popitem(last=False)
