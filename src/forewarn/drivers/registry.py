"""The drivers there are, by name: for each name in `DriverName` the module of that name makes one."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import get_args

from forewarn.config import Settings
from forewarn.control.driver import Driver
from forewarn.core.words import EXTERNAL, DriverName
from forewarn.drivers import external


class Drivers:
    """All drivers, as they are set."""

    def __init__(self, settings: Settings, *, monotonic: Callable[[], float]) -> None:
        self.external = external.make(settings, monotonic=monotonic)
        made: Mapping[str, Driver] = {
            name: import_module(f"forewarn.drivers.{name}").make(settings, monotonic=monotonic)
            for name in get_args(DriverName)
            if name != EXTERNAL
        }
        self.by_name: Mapping[str, Driver] = {**made, EXTERNAL: self.external}
