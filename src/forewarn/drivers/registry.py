"""The drivers there are, by name: the one place where a new one is registered."""

from collections.abc import Callable, Mapping

from forewarn.config import Settings
from forewarn.control.ports.driver import Driver
from forewarn.core.policy import EXTERNAL
from forewarn.drivers.external import ExternalDriver
from forewarn.drivers.simulated import SimulatedDriver


class Drivers:
    """All drivers, as they are set."""

    def __init__(self, settings: Settings, *, monotonic: Callable[[], float]) -> None:
        self.external = ExternalDriver(settings.times.external_silence, monotonic=monotonic)
        self.by_name: Mapping[str, Driver] = {
            "simulated": SimulatedDriver(settings.simulated),
            EXTERNAL: self.external,
        }
