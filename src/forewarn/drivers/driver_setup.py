"""What a driver is made with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from forewarn.config import Settings
from forewarn.control.driver import Driver
from forewarn.core.words import MachineId


def _ignore(machine: MachineId) -> None:
    """Let news of a machine pass: nobody waits for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverSetup:
    """What a driver is given when it is made, once at each start. Later versions may add to it."""

    name: str  # what hosts call it by
    settings: Settings  # of the whole server
    options: Mapping[str, Any] = field(default_factory=dict)  # what the settings say of this driver alone
    monotonic: Callable[[], float]  # real time, in seconds from some moment
    # Says that a hypervisor has news of a machine, so that `check` is asked early. From any thread.
    wake: Callable[[MachineId], None] = _ignore


class MakeDriver(Protocol):
    """What the entry point of a driver names."""

    def __call__(self, setup: DriverSetup, /) -> Driver:
        """Make the driver."""
        ...
