"""The drivers there are, by name: kinds are found by their entry points, whoever brings them.

A package declares `[project.entry-points."forewarn.drivers"]` with a line for each kind: its name, and the
function that makes a driver (`driver_setup.MakeDriver`). forewarn's own are declared in the same way. Each
kind is made once under its own name, and once more for each `[drivers.NAME]` of the settings that names it.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from forewarn.config import MachineHookSettings, Settings
from forewarn.control.driver import (
    Begun,
    CancelAnswer,
    Checked,
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
from forewarn.core.basic_types import SYNCHRONOUS_DRIVERS, EXTERNAL, HOOK, MachineId
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

# Only a start brings a driver, and that asks about every step anyway.
LOOK_AGAIN = timedelta(hours=1)
log = logging.getLogger(__name__)
ENTRY_POINTS = "forewarn.drivers"
# What the settings may say of a driver of any kind; the rest is read by the driver itself.
_OF_EVERY_KIND = ("kind", "isolated")
_ASKED = ("limits", "begin", "check", "cancel")


class NotInstalled:
    """Says of every step why its driver is not there."""

    trusted_text = True
    limits = DriverLimits(timeout=timedelta(minutes=1), at_once=1)

    def __init__(self, name: str, why: str = "") -> None:
        self._why = f"{driver_named(name)} {f'cannot be used: {why}' if why else 'is not installed'}"

    def begin(self, task: DriverTask) -> Begun:
        """Begin nothing."""
        return self._answer(task)

    def check(self, task: DriverTask) -> Checked:
        """Know nothing."""
        return self._answer(task)

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Call nothing off: what another process has begun may still go on."""
        return self._answer(task)

    def _answer(self, task: DriverTask) -> Unknown:
        return Unknown(self._why, task.now + LOOK_AGAIN)


class Drivers:
    """All drivers, as they are set."""

    def __init__(
        self,
        settings: Settings,
        *,
        monotonic: Callable[[], float],
        found: Iterable[EntryPoint] | None = None,
    ) -> None:
        """Make all that are installed or set; Invalid names the setting, or the package, that is wrong."""
        # Set before the first call of a driver, and only read since; all else is set here.
        self._woken: Callable[[MachineId], None] | None = None
        self._restarted: Callable[[], object] | None = None
        self.by_name = DriversByName()
        self.kinds: dict[str, str] = {}  # of all that were found, by name
        self.unusable: dict[str, str] = {}  # why, by name
        kinds = _by_name(entry_points(group=ENTRY_POINTS) if found is None else found)
        if HOOK in kinds:
            raise Invalid(f'driver "{HOOK}" is the name of forewarn\'s own hooks: uninstall the package')
        for each in _wanted(kinds, settings.drivers):
            self.kinds[each.name] = each.kind.name
            setup = DriverSetup(
                name=each.name,
                settings=settings,
                options=each.options,
                monotonic=monotonic,
                wake=self._wake,
            )
            try:
                self.by_name[each.name] = self._made(each, setup)
            except UnusableDriver as error:
                self.unusable[each.name] = f"{error}"
                self.by_name[each.name] = NotInstalled(each.name, f"{error}")
        self.names = frozenset(self.by_name.keys() - self.unusable.keys())  # that hosts may be given
        self.by_name[HOOK] = HookDriver(settings.hooks)
        # As steps are given to them: with the hooks before and after the work on machines.
        self.asked = AskedDrivers(self.by_name, settings.hooks.machine)
        self.fencing = self._offering(Fencing, "fences")
        self.working_on_hosts = self._offering(WorkingOnHosts, "works_on_hosts")
        self.cordoning = self._offering(Cordoning, "cordons")
        self.choosing_hosts = self._offering(ChoosingHosts, "chooses_hosts")
        self.verifying_restarts = self._offering(VerifyingRestarts, "verifies_restarts")
        self.reaching = self._offering(Reaching)
        self.listing = self._offering(Listing)
        external = self.by_name[EXTERNAL] if EXTERNAL in self.names else None
        if not isinstance(external, ExternalDriver):
            raise Invalid("forewarn's own drivers were not found: install forewarn again (make setup)")
        self.external = external

    @property
    def known(self) -> KnownDrivers:
        """What use cases know of them."""
        return KnownDrivers(names=self.names, kinds=self.kinds, unusable=self.unusable, listing=self.listing)

    @property
    def prechecking(self) -> frozenset[str]:
        """The drivers that say whether a move can be made before it is announced."""
        return self._offering(Prechecking)

    def _offering(self, protocol: type, value: str | None = None) -> frozenset[str]:
        """Return the drivers that offer something: a method, or a value that says so."""
        found = ((name, self.by_name[name]) for name in self.names)
        return frozenset(
            name
            for name, driver in found
            if isinstance(driver, protocol) and (value is None or getattr(driver, value))
        )

    def wake_by(self, woken: Callable[[MachineId], None]) -> None:
        """Pass on from now on that a driver has news of a machine."""
        self._woken = woken

    def _wake(self, machine: MachineId) -> None:
        if self._woken is not None:
            self._woken(machine)

    # Drivers in processes of their own

    def _made(self, wanted: "_Wanted", setup: DriverSetup) -> Driver:
        made = _made(wanted.kind, setup)
        if not _isolates(made, wanted):
            return made
        given = {"name": setup.name, "settings": setup.settings, "options": dict(setup.options)}
        process = DriverProcess(
            Origin(name=setup.name, entry=wanted.kind.value, settings=given),
            monotonic=setup.monotonic,
            wake=self._wake,
            restarted=self._has_restarted,
        )
        return IsolatedDriver(made, process)

    def restarted_by(self, restarted: Callable[[], object]) -> None:
        """Tell from now on, from any thread, that a driver's process has taken the place of one that died."""
        self._restarted = restarted

    def _has_restarted(self) -> None:
        if self._restarted is not None:
            self._restarted()

    @property
    def _processes(self) -> Iterator[tuple[str, DriverProcess]]:
        for name, driver in self.by_name.items():
            if isinstance(driver, IsolatedDriver):
                yield name, driver.process

    def crashes(self) -> Mapping[str, int]:
        """Count how often the process of each driver that has one has died."""
        return {name: process.crashes for name, process in self._processes}

    def stop(self) -> None:
        """End the processes of drivers."""
        for _, process in self._processes:
            process.stop()


class DriversByName(dict[str, Driver]):
    """Drivers by name; for what is not installed, one that says so of every step."""

    def __missing__(self, name: str) -> Driver:
        log.error("driver %s is not installed: what it has to do waits until it is", name)
        return self.setdefault(name, NotInstalled(name))


class AskedDrivers(dict[str, Driver]):
    """Drivers by name, each with the hooks around what it does to machines.

    Those that answer at once have none: what is simulated happens to no machine, and who works outside sees
    to that, too. Any thread may look a driver up: `setdefault` gives all of them the same object, so that
    one lock for each attempt is enough.
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


def _by_name(found: Iterable[EntryPoint]) -> Mapping[str, EntryPoint]:
    named: dict[str, EntryPoint] = {}
    for entry in found:
        other = named.setdefault(entry.name, entry)
        if other is not entry:
            both = f"{_package(other)} and {_package(entry)}"
            raise Invalid(f'driver "{entry.name}" is brought by two packages, {both}: uninstall one of them')
    return named


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    name: str
    kind: EntryPoint
    options: Mapping[str, Any]
    isolated: bool | None  # None: as the driver declares


def _wanted(kinds: Mapping[str, EntryPoint], tables: Mapping[str, Mapping[str, Any]]) -> Iterator[_Wanted]:
    """Yield every kind under its own name, and those that the settings name."""
    for name, kind in kinds.items():
        yield _want(name, kind, tables.get(name, {}))
    for name, table in tables.items():
        kind = _kind_of(name, table, kinds)
        if kind.name != name:
            yield _want(name, kind, table)


def _want(name: str, kind: EntryPoint, table: Mapping[str, Any]) -> _Wanted:
    options = {key: value for key, value in table.items() if key not in _OF_EVERY_KIND}
    isolated = table.get("isolated")
    if isolated is not None and not isinstance(isolated, bool):
        raise Invalid(f"[drivers.{name}] isolated: expected true or false, got {shown(isolated)}")
    if isolated and kind.name in SYNCHRONOUS_DRIVERS:
        raise Invalid(f'[drivers.{name}] isolated: "{kind.name}" is part of the server')
    return _Wanted(name=name, kind=kind, options=options, isolated=isolated)


def _isolates(driver: Driver, wanted: _Wanted) -> bool:
    """Return whether a driver gets a process of its own; Invalid if it must have one and may not."""
    declared = isinstance(driver, LoadingNativeCode) and driver.isolated
    if declared and wanted.isolated is False:
        why = f"{wanted.kind.name} loads C code, whose crash would end the server"
        raise Invalid(f"[drivers.{wanted.name}] isolated: expected true, got false: {why}")
    return declared or bool(wanted.isolated)


def _kind_of(name: str, table: Mapping[str, Any], kinds: Mapping[str, EntryPoint]) -> EntryPoint:
    """Return the kind of a driver of the settings; Invalid if it cannot be called so, or is of none."""
    if not NAME.fullmatch(name) or name == HOOK:
        raise Invalid(f"[drivers.{name}] expected a name of {NAME_RULE}, and not {HOOK}")
    kind = table.get("kind", name)
    if not isinstance(kind, str) or kind not in kinds:
        said = f"got {shown(kind)}{hint(f'{kind}', kinds)}" if "kind" in table else "but it is missing"
        raise Invalid(f"[drivers.{name}] kind: expected {either(sorted(kinds))}, {said}")
    if kind != name and name in kinds:
        raise Invalid(f'[drivers.{name}] kind: "{name}" is the name of a kind itself: choose another name')
    if kind != name and kind in SYNCHRONOUS_DRIVERS:
        raise Invalid(f'[drivers.{name}] kind: "{kind}" has no other name: hosts say driver = "{kind}"')
    return kinds[kind]


def _made(entry: EntryPoint, setup: DriverSetup) -> Driver:
    """Make a driver; UnusableDriver if that cannot be here, Invalid if something is wrong."""
    try:
        driver: Driver = entry.load()(setup)
    except (Invalid, UnusableDriver):
        raise
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
    if driver.limits is None and entry.name not in SYNCHRONOUS_DRIVERS:
        raise Invalid(f"{_called(entry)} must say its limits: only forewarn's own are called without a lane")
    return driver


def _called(entry: EntryPoint) -> str:
    return f'driver "{entry.name}" of package {_package(entry)} ({entry.value})'


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "without a name"
