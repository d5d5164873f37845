"""The drivers that are available, by name.

A package adds a kind of driver with a line under `[project.entry-points."forewarn.drivers"]`: the name of the
kind and a function that takes a `DriverSetup` and returns the driver. forewarn's own kinds use the same entry
points. At start forewarn creates one driver for each kind, and one for each `[drivers.NAME]` with a `kind`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from forewarn.config import MachineHookSettings, Settings
from forewarn.control.driver import (
    ChoosingHosts,
    Cordoning,
    Driver,
    DriverLimits,
    DriverTask,
    Fencing,
    KnownDrivers,
    Listing,
    LoadingNativeCode,
    Prechecking,
    Reaching,
    Unknown,
    VerifyingRestarts,
    WorkingOnHosts,
)
from forewarn.core.basic_types import EXTERNAL, HOOK, SYNCHRONOUS_DRIVERS, MachineId
from forewarn.core.errors import Invalid
from forewarn.core.redaction import driver_named
from forewarn.core.text_formats import hint
from forewarn.drivers.driver_setup import DriverSetup, UnusableDriver
from forewarn.drivers.external import ExternalDriver
from forewarn.drivers.hooks import HookDriver, HookRuns
from forewarn.drivers.isolation.driver_process import DriverProcess, Origin
from forewarn.drivers.isolation.isolated_driver import IsolatedDriver
from forewarn.drivers.machine_hook_attempts import REMEMBERED
from forewarn.drivers.machine_hooks import MachineHooks
from forewarn.wire.texts import NAME, NAME_RULE, either, shown

# A missing driver appears only after a restart of the server, which checks every step anyway.
CHECK_AGAIN = timedelta(hours=1)
log = logging.getLogger(__name__)
ENTRY_POINTS = "forewarn.drivers"
# Keys of [drivers.NAME] that the registry reads; the driver reads the others.
_REGISTRY_KEYS = ("kind", "isolated")
_REQUIRED_MEMBERS = ("limits", "begin", "check", "cancel")


class NotInstalled:
    """Stands in for a driver that is missing: every answer is Unknown, with the reason."""

    trusted_text = True
    limits = DriverLimits(timeout=timedelta(minutes=1), at_once=1)

    def __init__(self, name: str, why: str = "") -> None:
        self._why = f"{driver_named(name)} {f'cannot be used: {why}' if why else 'is not installed'}"

    def begin(self, task: DriverTask) -> Unknown:
        """Return the reason why the driver is missing."""
        return Unknown(self._why, task.now + CHECK_AGAIN)

    check = cancel = begin


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declared:
    """A driver to create: a kind, or an entry of the settings."""

    name: str
    kind: EntryPoint
    options: Mapping[str, Any]
    isolated: bool | None  # None: the driver decides


class Drivers:
    """All drivers of this server."""

    def __init__(
        self,
        settings: Settings,
        *,
        monotonic: Callable[[], float],
        found: Iterable[EntryPoint] | None = None,
    ) -> None:
        """Create all drivers; raise Invalid with the name of the wrong setting or package."""
        # Both callbacks are set before the first call of a driver and do not change later.
        self._on_wake: Callable[[MachineId], None] | None = None
        self._on_restart: Callable[[], object] | None = None
        self._monotonic = monotonic
        self._processes: dict[str, DriverProcess] = {}
        self.by_name = DriversByName()
        self.kinds: dict[str, str] = {}  # the kind of every driver, by name
        self.unusable: dict[str, str] = {}  # the reason, by name
        kinds = _unique(entry_points(group=ENTRY_POINTS) if found is None else found)
        for declared in _declared(kinds, settings.drivers):
            name = declared.name
            self.kinds[name] = declared.kind.name
            try:
                self.by_name[name] = self._created(declared, settings)
            except UnusableDriver as error:
                self.unusable[name] = f"{error}"
                self.by_name[name] = NotInstalled(name, f"{error}")
        self.names = frozenset(self.by_name.keys() - self.unusable.keys())  # names that hosts may use
        self.by_name[HOOK] = HookDriver(settings.hooks)
        # The engine calls these: each runs the hooks before and after the work on machines.
        self.with_hooks = HookedDrivers(self.by_name, settings.hooks.machine)
        self.fencing = self._offering(Fencing, "fences")
        self.working_on_hosts = self._offering(WorkingOnHosts, "works_on_hosts")
        self.cordoning = self._offering(Cordoning, "cordons")
        self.choosing_hosts = self._offering(ChoosingHosts, "chooses_hosts")
        self.verifying_restarts = self._offering(VerifyingRestarts, "verifies_restarts")
        self.reaching = self._offering(Reaching)
        self.listing = self._offering(Listing)
        external = self.by_name[EXTERNAL] if EXTERNAL in self.names else None
        if not isinstance(external, ExternalDriver):
            raise Invalid("forewarn's own drivers are missing: install forewarn again (make setup)")
        self.external = external

    @property
    def known(self) -> KnownDrivers:
        """The drivers as use cases see them."""
        return KnownDrivers(names=self.names, kinds=self.kinds, unusable=self.unusable, listing=self.listing)

    @property
    def prechecking(self) -> frozenset[str]:
        """The drivers that can check a move before it is announced."""
        return self._offering(Prechecking)

    def _offering(self, protocol: type, flag: str | None = None) -> frozenset[str]:
        """Return the drivers with an optional method, or with a flag that is set."""
        drivers = {name: self.by_name[name] for name in self.names}
        return frozenset(
            name
            for name, driver in drivers.items()
            if isinstance(driver, protocol) and (flag is None or getattr(driver, flag))
        )

    def _created(self, declared: _Declared, settings: Settings) -> Driver:
        name, options = declared.name, declared.options
        setup = DriverSetup(
            name=name, settings=settings, options=options, monotonic=self._monotonic, wake=self._wake
        )
        driver = _created(declared.kind, setup)
        if not _is_isolated(driver, declared):
            return driver
        arguments = {"name": name, "settings": settings, "options": dict(options)}
        process = self._processes[name] = DriverProcess(
            Origin(name=name, entry=declared.kind.value, settings=arguments),
            monotonic=self._monotonic,
            wake=self._wake,
            restarted=self._restarted,
        )
        return IsolatedDriver(driver, process)

    def wake_by(self, on_wake: Callable[[MachineId], None]) -> None:
        """Call this, from any thread, when a driver has news of a machine."""
        self._on_wake = on_wake

    def restarted_by(self, on_restart: Callable[[], object]) -> None:
        """Call this, from any thread, when a new process replaces a driver's process that died."""
        self._on_restart = on_restart

    def _wake(self, machine: MachineId) -> None:
        if self._on_wake is not None:
            self._on_wake(machine)

    def _restarted(self) -> None:
        if self._on_restart is not None:
            self._on_restart()

    def crashes(self) -> Mapping[str, int]:
        """Count how often the process of each isolated driver has died."""
        return {name: process.crashes for name, process in self._processes.items()}

    def stop(self) -> None:
        """Stop the processes of isolated drivers."""
        for process in self._processes.values():
            process.stop()


class DriversByName(dict[str, Driver]):
    """Drivers by name; a missing name gets a `NotInstalled`."""

    def __missing__(self, name: str) -> Driver:
        log.error("driver %s is not installed: its steps wait until it is installed", name)
        return self.setdefault(name, NotInstalled(name))


class HookedDrivers(dict[str, Driver]):
    """Drivers by name, each wrapped so that the machine hooks run before and after its work.

    `simulated` and `external` have no hooks: a simulated step touches no machine, and an external program
    runs its own. Any thread may look a driver up. `setdefault` returns the same object to all of them, so
    that each attempt has one lock.
    """

    def __init__(self, drivers: DriversByName, settings: MachineHookSettings) -> None:
        super().__init__()
        self._drivers = drivers
        self._settings = settings
        self._runs = HookRuns(remembered=2 * REMEMBERED)

    def __missing__(self, name: str) -> Driver:
        driver = self._drivers[name]
        if driver.limits is not None and not isinstance(driver, HookDriver | NotInstalled):
            driver = MachineHooks(driver, self._settings, runs=self._runs)
        return self.setdefault(name, driver)


def _unique(found: Iterable[EntryPoint]) -> Mapping[str, EntryPoint]:
    kinds: dict[str, EntryPoint] = {}
    for entry in found:
        other = kinds.setdefault(entry.name, entry)
        if other is not entry:
            both = f"{_package(other)} and {_package(entry)}"
            raise Invalid(f'driver "{entry.name}" is in two packages, {both}: uninstall one of them')
    if HOOK in kinds:
        raise Invalid(f'driver "{HOOK}" is the name of forewarn\'s own hooks: uninstall the package')
    return kinds


def _declared(
    kinds: Mapping[str, EntryPoint], tables: Mapping[str, Mapping[str, Any]]
) -> Iterator[_Declared]:
    """Yield every kind under its own name, then the drivers of the settings with a name of their own."""
    kind_by_name = {name: kinds[name] for name in kinds}
    kind_by_name |= {name: _kind_of(name, table, kinds) for name, table in tables.items()}
    for name, kind in kind_by_name.items():
        table = tables.get(name, {})
        isolated = table.get("isolated")
        if isolated is not None and not isinstance(isolated, bool):
            raise Invalid(f"[drivers.{name}] isolated: expected true or false, got {shown(isolated)}")
        if isolated and kind.name in SYNCHRONOUS_DRIVERS:
            raise Invalid(f'[drivers.{name}] isolated: "{kind.name}" is part of the server')
        options = {key: value for key, value in table.items() if key not in _REGISTRY_KEYS}
        yield _Declared(name=name, kind=kind, options=options, isolated=isolated)


def _kind_of(name: str, table: Mapping[str, Any], kinds: Mapping[str, EntryPoint]) -> EntryPoint:
    if not NAME.fullmatch(name) or name == HOOK:
        raise Invalid(f"[drivers.{name}] expected a name of {NAME_RULE}, and not {HOOK}")
    kind = table.get("kind", name)
    if not isinstance(kind, str) or kind not in kinds:
        got = f"got {shown(kind)}{hint(f'{kind}', kinds)}" if "kind" in table else "but it is missing"
        raise Invalid(f"[drivers.{name}] kind: expected {either(sorted(kinds))}, {got}")
    if kind != name and name in kinds:
        raise Invalid(f'[drivers.{name}] kind: "{name}" is itself a kind: choose another name')
    if kind != name and kind in SYNCHRONOUS_DRIVERS:
        raise Invalid(f'[drivers.{name}] kind: "{kind}" has no other name: hosts set driver = "{kind}"')
    return kinds[kind]


def _is_isolated(driver: Driver, declared: _Declared) -> bool:
    """Return whether the driver needs its own process; raise Invalid if the settings forbid it."""
    native = isinstance(driver, LoadingNativeCode) and driver.isolated
    if native and declared.isolated is False:
        why = f"{declared.kind.name} loads C code, and a crash there would end the server"
        raise Invalid(f"[drivers.{declared.name}] isolated: expected true, got false: {why}")
    return native or bool(declared.isolated)


def _created(entry: EntryPoint, setup: DriverSetup) -> Driver:
    described = f'driver "{entry.name}" of package {_package(entry)} ({entry.value})'
    try:
        driver: Driver = entry.load()(setup)
    except (Invalid, UnusableDriver):
        raise
    except Exception as error:
        log.debug("cannot create driver %s", entry.name, exc_info=True)
        why = f"{type(error).__name__}: {error}"
        raise Invalid(f"cannot create {described}: {why}; repair the package, or uninstall it") from error
    for member in _REQUIRED_MEMBERS:
        if not hasattr(driver, member):
            raise Invalid(f"{described} lacks {member}: repair the package, or uninstall it")
    if driver.limits is None and entry.name not in SYNCHRONOUS_DRIVERS:
        raise Invalid(f"{described} must have limits: forewarn calls only its own drivers without a lane")
    return driver


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "without a name"
