"""The drivers there are, by name: found by their entry points, whoever brings them.

A package declares `[project.entry-points."forewarn.drivers"]` with a line for each driver: its name, and the
function that makes it (`driver_setup.MakeDriver`). forewarn's own are declared in the same way.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points

from forewarn.config import Settings
from forewarn.control.driver import Driver, Fencing, WorkingOnHosts
from forewarn.core.errors import Invalid
from forewarn.core.words import ANSWERING_AT_ONCE, EXTERNAL, HOOK, MachineId
from forewarn.drivers.driver_setup import DriverSetup
from forewarn.drivers.external import ExternalDriver
from forewarn.drivers.hooks import HookDriver
from forewarn.drivers.not_installed import NotInstalled

log = logging.getLogger(__name__)

ENTRY_POINTS = "forewarn.drivers"

_ASKED = ("limits", "begin", "check", "cancel")


class Drivers:
    """All drivers, as they are set."""

    def __init__(
        self,
        settings: Settings,
        *,
        monotonic: Callable[[], float],
        found: Iterable[EntryPoint] | None = None,
    ) -> None:
        """Make all that are installed; Invalid names the package of one that cannot be made."""
        self._woken: Callable[[MachineId], None] | None = None
        self.by_name = DriversByName()
        for name, entry in _by_name(entry_points(group=ENTRY_POINTS) if found is None else found).items():
            setup = DriverSetup(name=name, settings=settings, monotonic=monotonic, wake=self._wake)
            self.by_name[name] = _made(entry, setup)
        self.names = frozenset(self.by_name)  # that hosts may be given
        if HOOK in self.names:
            raise Invalid(f'driver "{HOOK}" is the name of forewarn\'s own hooks: uninstall the package')
        self.by_name[HOOK] = HookDriver(settings.hooks)
        self.fencing = frozenset(name for name in self.names if _fences(self.by_name[name]))
        self.working_on_hosts = frozenset(name for name in self.names if _works_on_hosts(self.by_name[name]))
        external = self.by_name[EXTERNAL] if EXTERNAL in self.names else None
        if not isinstance(external, ExternalDriver):
            raise Invalid("forewarn's own drivers were not found: install forewarn again (make setup)")
        self.external = external

    def wake_by(self, woken: Callable[[MachineId], None]) -> None:
        """Pass on from now on that a driver has news of a machine."""
        self._woken = woken

    def _wake(self, machine: MachineId) -> None:
        if self._woken is not None:
            self._woken(machine)


class DriversByName(dict[str, Driver]):
    """Drivers by name; for what is not installed, one that says so of every step."""

    def __missing__(self, name: str) -> Driver:
        log.error("driver %s is not installed: what it has to do waits until it is", name)
        self[name] = missing = NotInstalled(name)
        return missing


def _by_name(found: Iterable[EntryPoint]) -> Mapping[str, EntryPoint]:
    named: dict[str, EntryPoint] = {}
    for entry in found:
        other = named.setdefault(entry.name, entry)
        if other is not entry:
            both = f"{_package(other)} and {_package(entry)}"
            raise Invalid(f'driver "{entry.name}" is brought by two packages, {both}: uninstall one of them')
    return named


def _made(entry: EntryPoint, setup: DriverSetup) -> Driver:
    try:
        driver: Driver = entry.load()(setup)
    except Exception as error:
        log.debug("driver %s cannot be made", entry.name, exc_info=True)
        why = f"{type(error).__name__}: {error}"
        raise Invalid(
            f"{_called(entry)} cannot be made: {why}; repair the package, or uninstall it"
        ) from error
    lacking = [each for each in _ASKED if not hasattr(driver, each)]
    if lacking:
        raise Invalid(
            f"{_called(entry)} is no driver: it has no {lacking[0]}; repair the package, or uninstall it"
        )
    if driver.limits is None and entry.name not in ANSWERING_AT_ONCE:
        raise Invalid(f"{_called(entry)} must say its limits: only forewarn's own are called without a lane")
    return driver


def _fences(driver: Driver) -> bool:
    return isinstance(driver, Fencing) and driver.fences


def _works_on_hosts(driver: Driver) -> bool:
    return isinstance(driver, WorkingOnHosts) and driver.works_on_hosts


def _called(entry: EntryPoint) -> str:
    return f'driver "{entry.name}" of package {_package(entry)} ({entry.value})'


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "without a name"
