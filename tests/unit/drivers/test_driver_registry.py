"""The registry finds drivers by their entry points and refuses broken ones at start, naming the package."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from forewarn.config import Settings
from forewarn.control.driver import DriverLimits, Unknown
from forewarn.core.basic_types import EXTERNAL, MachineId
from forewarn.core.errors import Invalid
from forewarn.core.redaction import unmarked
from forewarn.drivers.driver_setup import CallOptions, DriverSetup, UnusableDriver
from forewarn.drivers.registry import ENTRY_POINTS, Drivers
from forewarn.drivers.simulated import SimulatedDriver
from tests.helpers.service.driver_calls import task

OWN = [EntryPoint(EXTERNAL, "forewarn.drivers.external:make", ENTRY_POINTS)]


def drivers(*found: EntryPoint, tables: Mapping[str, Mapping[str, Any]] | None = None) -> Drivers:
    return Drivers(Settings(drivers=tables or {}), monotonic=lambda: 0.0, found=[*OWN, *found])


def entry(name: str, makes: str) -> EntryPoint:
    return EntryPoint(name, f"{__name__}:{makes}", ENTRY_POINTS)


class Woken(SimulatedDriver):
    limits = DriverLimits(timeout=timedelta(seconds=30), at_once=2)  # type: ignore[assignment]

    def __init__(self, setup: DriverSetup) -> None:
        super().__init__(setup.settings.simulated)
        self.setup = setup
        self.options = Options()


def without_limits(setup: DriverSetup) -> SimulatedDriver:
    return SimulatedDriver(setup.settings.simulated)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(CallOptions):
    gentle: bool = False


def with_options(setup: DriverSetup) -> SimulatedDriver:
    made = Woken(setup)
    made.options = setup.read(Options())
    made.limits = made.options.limits
    return made


def without_library(setup: DriverSetup) -> None:
    raise UnusableDriver("install forewarn[hyper]: there is no module hyper")


def breaks(setup: DriverSetup) -> None:
    raise OSError("no hypervisor here")


def makes_nothing(setup: DriverSetup) -> object:
    return object()


def test_forewarns_own_drivers_are_installed() -> None:
    installed = Drivers(Settings(), monotonic=lambda: 0.0)
    assert {"simulated", "external"} <= installed.names
    assert installed.by_name[EXTERNAL] is installed.external


def test_a_plug_in_is_created_with_its_setup() -> None:
    woken: list[MachineId] = []
    known = drivers(entry("mine", "Woken"))
    made = known.by_name["mine"]
    assert isinstance(made, Woken)
    assert made.setup.name == "mine"
    made.setup.wake(MachineId("before the first listener"))
    known.wake_by(woken.append)
    made.setup.wake(MachineId("web-0"))
    assert woken == ["web-0"]


@pytest.mark.parametrize(
    ("makes", "said"),
    [
        ("breaks", ": OSError: no hypervisor here; repair the package, or uninstall it"),
        ("missing", f": AttributeError: module '{__name__}' has no attribute 'missing'"),
        ("without_limits", " must have limits: forewarn calls only its own drivers without a lane"),
        ("makes_nothing", " lacks limits: repair"),
    ],
)
def test_a_broken_driver_is_refused_with_its_package(makes: str, said: str) -> None:
    with pytest.raises(Invalid) as refused:
        drivers(entry("mine", makes))
    assert f'driver "mine" of package without a name ({__name__}:{makes}){said}' in str(refused.value)


def test_a_name_in_two_packages_is_refused() -> None:
    with pytest.raises(Invalid, match='driver "external" is in two packages'):
        drivers(entry(EXTERNAL, "breaks"))


def test_a_missing_driver_answers_unknown_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    known = drivers()
    for call in (known.by_name["gone"].begin, known.by_name["gone"].check, known.by_name["gone"].cancel):
        answer = call(task(driver="gone"))
        assert isinstance(answer, Unknown)
        assert unmarked(answer.why) == "driver gone is not installed"
    assert [line.getMessage() for line in caplog.records] == [
        "driver gone is not installed: its steps wait until it is installed"
    ]
    assert "gone" not in known.names


def test_each_driver_of_the_settings_is_created_with_its_options() -> None:
    known = drivers(
        entry("hyper", "with_options"),
        tables={"hyper": {"timeout": "5s"}, "lab": {"kind": "hyper", "gentle": True, "at-once": 9}},
    )
    own, lab = known.by_name["hyper"], known.by_name["lab"]
    assert isinstance(own, Woken)
    assert isinstance(lab, Woken)
    assert own.options == Options(timeout=timedelta(seconds=5))
    assert lab.options == Options(gentle=True, at_once=9)
    assert lab.limits == DriverLimits(timeout=timedelta(seconds=60), at_once=9)
    assert lab.setup.name == "lab"
    assert known.known.kinds == {"external": "external", "hyper": "hyper", "lab": "hyper"}


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        (
            {"lab": {"kind": "hypr"}},
            '[drivers.lab] kind: expected external, hyper or simulated, got "hypr"; did you mean hyper?',
        ),
        ({"lab": {}}, "[drivers.lab] kind: expected external, hyper or simulated, but it is missing"),
        ({"lab": {"kind": 7}}, "[drivers.lab] kind: expected external, hyper or simulated, got 7"),
        ({"lab": {"kind": "hyper", "gntle": True}}, "[drivers.lab] gntle: there is no such setting"),
        (
            {"lab": {"kind": "hyper", "timeout": "soon"}},
            "[drivers.lab] timeout: expected",
        ),
        (
            {"lab": {"kind": "hyper", "timeout": 0}},
            "[drivers.lab] timeout: expected a time greater than zero, got 0",
        ),
        ({"lab": {"kind": "hyper", "at-once": 0}}, "[drivers.lab] at-once: expected at least 1, got 0"),
        ({"a b": {"kind": "hyper"}}, "[drivers.a b] expected a name of 1 to 64 letters"),
        ({"hook": {"kind": "hyper"}}, "[drivers.hook] expected a name of"),
        ({"hyper": {"kind": "simulated"}}, '[drivers.hyper] kind: "hyper" is itself a kind'),
        ({"lab": {"kind": "simulated"}}, '[drivers.lab] kind: "simulated" has no other name'),
        ({"simulated": {"timeout": 5}}, "[drivers.simulated] timeout: there is no such setting"),
    ],
)
def test_a_wrong_setting_of_a_driver_is_named(tables: Mapping[str, Mapping[str, Any]], said: str) -> None:
    simulated = EntryPoint("simulated", "forewarn.drivers.simulated:make", ENTRY_POINTS)
    with pytest.raises(Invalid) as refused:
        drivers(entry("hyper", "with_options"), simulated, tables=tables)
    assert str(refused.value).startswith(said)


def test_the_server_starts_without_a_driver_that_lacks_its_library() -> None:
    known = drivers(entry("hyper", "without_library"), tables={"lab": {"kind": "hyper"}})
    assert known.names == {EXTERNAL}
    for name in ("hyper", "lab"):
        answer = known.by_name[name].check(task(driver=name))
        assert isinstance(answer, Unknown)
        assert unmarked(answer.why) == (
            f"driver {name} cannot be used: install forewarn[hyper]: there is no module hyper"
        )
    with pytest.raises(Invalid) as refused:
        known.known.check("lab", where="hosts.kvm04: driver")
    assert str(refused.value) == (
        'hosts.kvm04: driver: "lab" cannot be used: install forewarn[hyper]: there is no module hyper'
    )


def test_an_unknown_driver_is_refused_with_the_available_ones() -> None:
    with pytest.raises(Invalid) as refused:
        drivers(entry("hyper", "with_options")).known.check("lxc")
    assert str(refused.value) == (
        'driver: expected external or hyper, got "lxc"; '
        "install the package that brings it, or set [drivers.lxc], and start the server again"
    )
