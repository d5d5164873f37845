"""What drivers are made with: their setup and options, and a memory that does not grow without end."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol, TypeVar

from forewarn.config import Settings
from forewarn.config_reading import read_table
from forewarn.control.driver import Driver, DriverLimits
from forewarn.core.basic_types import MachineId

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class UnusableDriver(Exception):
    """A driver that cannot be made here, as its library is missing: the message says what to do about it.

    The server starts without it. Hosts and orders that name it are refused with the message, and what it has
    to do already waits with it.
    """


def _ignore(machine: MachineId) -> None:
    """Let news of a machine pass: nobody waits for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverSetup:
    """What a driver is given when it is made, once at each start. Later versions may add to it."""

    name: str  # what hosts call it by
    settings: Settings  # of the whole server
    # What the settings say of this driver alone, [drivers.NAME], but for its kind.
    options: Mapping[str, Any] = field(default_factory=dict)
    monotonic: Callable[[], float]  # real time, in seconds from some moment
    # Says that a hypervisor has news of a machine, so that `check` is asked early. From any thread.
    wake: Callable[[MachineId], None] = _ignore

    def read(self, defaults: T) -> T:
        """Return the options by the types of a dataclass; Invalid names the key that is none, or wrong."""
        return read_table(defaults, self.options, where=f"[drivers.{self.name}] ")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOptions:
    """The options of a driver that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """The options of every driver that takes its time: how it is called."""

    timeout: timedelta = timedelta(seconds=60)  # of real time, for each call
    at_once: int = 4  # calls in the lane of a host, unless the host says otherwise

    def __post_init__(self) -> None:
        if self.timeout <= timedelta():
            raise ValueError("expected more than no time")
        if self.at_once < 1:
            raise ValueError("expected at least 1")

    @property
    def limits(self) -> DriverLimits:
        """The same, as lanes are told it."""
        return DriverLimits(timeout=self.timeout, at_once=self.at_once)


class MakeDriver(Protocol):
    """What the entry point of a driver names."""

    def __call__(self, setup: DriverSetup, /) -> Driver:
        """Make the driver."""
        ...


def remember(known: OrderedDict[K, V], key: K, value: V, *, most: int) -> None:
    """Keep a value as the newest; of more than so many the oldest is forgotten."""
    known[key] = value
    known.move_to_end(key)
    while len(known) > most:
        known.popitem(last=False)
