"""Drivers are found by their entry points; what is wrong with one is said at the start, with its package."""

from datetime import timedelta
from importlib.metadata import EntryPoint

import pytest

from forewarn.config import Settings
from forewarn.control.driver import DriverLimits, Unknown
from forewarn.core.errors import Invalid
from forewarn.core.words import EXTERNAL, MachineId
from forewarn.drivers.driver_setup import DriverSetup
from forewarn.drivers.registry import ENTRY_POINTS, Drivers
from forewarn.drivers.simulated import SimulatedDriver
from tests.driver_calls import task

OWN = [EntryPoint(EXTERNAL, "forewarn.drivers.external:make", ENTRY_POINTS)]


def drivers(*found: EntryPoint) -> Drivers:
    return Drivers(Settings(), monotonic=lambda: 0.0, found=[*OWN, *found])


def entry(name: str, makes: str) -> EntryPoint:
    return EntryPoint(name, f"{__name__}:{makes}", ENTRY_POINTS)


class Woken(SimulatedDriver):
    limits = DriverLimits(timeout=timedelta(seconds=30), at_once=2)  # type: ignore[assignment]

    def __init__(self, setup: DriverSetup) -> None:
        super().__init__(setup.settings.simulated)
        self.setup = setup


def without_limits(setup: DriverSetup) -> SimulatedDriver:
    return SimulatedDriver(setup.settings.simulated)


def breaks(setup: DriverSetup) -> None:
    raise OSError("no hypervisor here")


def makes_nothing(setup: DriverSetup) -> object:
    return object()


def test_the_drivers_that_forewarn_brings_are_installed_with_it() -> None:
    installed = Drivers(Settings(), monotonic=lambda: 0.0)
    assert {"simulated", "external"} <= installed.names
    assert installed.by_name[EXTERNAL] is installed.external


def test_a_driver_of_somebody_else_is_made_with_its_setup() -> None:
    woken: list[MachineId] = []
    known = drivers(entry("mine", "Woken"))
    made = known.by_name["mine"]
    assert isinstance(made, Woken)
    assert made.setup.name == "mine"
    made.setup.wake(MachineId("before anybody listens"))
    known.wake_by(woken.append)
    made.setup.wake(MachineId("web-0"))
    assert woken == ["web-0"]


@pytest.mark.parametrize(
    ("makes", "said"),
    [
        ("breaks", "cannot be made: OSError: no hypervisor here; repair the package, or uninstall it"),
        ("missing", f"cannot be made: AttributeError: module '{__name__}' has no attribute 'missing'"),
        ("without_limits", "must say its limits: only forewarn's own are called without a lane"),
        ("makes_nothing", "is no driver: it has no limits"),
    ],
)
def test_a_driver_that_cannot_be_made_is_refused_with_its_package(makes: str, said: str) -> None:
    with pytest.raises(Invalid) as refused:
        drivers(entry("mine", makes))
    assert f'driver "mine" of package without a name ({__name__}:{makes}) {said}' in str(refused.value)


def test_a_name_that_two_packages_bring_is_refused() -> None:
    with pytest.raises(Invalid, match='driver "external" is brought by two packages'):
        drivers(entry(EXTERNAL, "breaks"))


def test_what_is_not_installed_is_unknown_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    known = drivers()
    for call in (known.by_name["gone"].begin, known.by_name["gone"].check, known.by_name["gone"].cancel):
        answer = call(task(driver="gone"))
        assert isinstance(answer, Unknown)
        assert answer.why == "driver gone is not installed"
    assert [line.getMessage() for line in caplog.records] == [
        "driver gone is not installed: what it has to do waits until it is"
    ]
    assert "gone" not in known.names
