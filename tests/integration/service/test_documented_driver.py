"""The driver of docs/deploy/write-a-driver.md, installed as its package would be."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from forewarn.config import Settings
from forewarn.control.driver import Cancelled, Done, Driver, DriverTask, Failed, NotBegun, Running, TooLate
from forewarn.core.basic_types import HostName
from forewarn.core.errors import Invalid
from forewarn.core.model.host import Host
from forewarn.drivers.isolation.isolated_driver import IsolatedDriver
from forewarn.drivers.registry import Drivers
from tests.helpers.service.driver_calls import task
from tests.helpers.service.spool_driver import installed


def drivers(settings: Settings | None = None) -> Drivers:
    return Drivers(settings or Settings(), monotonic=lambda: 0.0)


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    (tmp_path / "spool").mkdir()
    return tmp_path / "spool"


@pytest.fixture(params=[False, True], ids=["in the server", "isolated"])
def driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Driver]:
    installed(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    known = drivers(Settings(drivers={"spool": {"isolated": request.param}}))
    assert "spool" in known.names
    assert isinstance(known.by_name["spool"], IsolatedDriver) is request.param
    yield known.by_name["spool"]
    known.stop()


@pytest.fixture
def step(spool: Path) -> DriverTask:
    host = Host(name=HostName("host-1"), driver="spool", uri=spool.as_uri())
    return replace(task("web-0", driver="spool"), source=host)


def test_a_driver_from_a_package_begins_a_step_and_checks_it(
    driver: Driver, spool: Path, step: DriverTask
) -> None:
    assert driver.check(step) == NotBegun()
    begun = driver.begin(step)
    assert isinstance(begun, Running)
    step = replace(step, mark=begun.mark)
    (job,) = spool.iterdir()
    assert job.read_text() == "reboot web-0\n"
    assert isinstance(driver.check(step), Running)
    job.rename(job.with_suffix(".running"))
    assert driver.cancel(step) == TooLate()
    job.with_suffix(".done").write_text("host-2\n")
    assert driver.check(step) == Done(host=HostName("host-2"))


def test_its_older_attempts_are_refused(driver: Driver, step: DriverTask) -> None:
    driver.begin(replace(step, attempt=2))
    assert isinstance(driver.begin(step), Failed)


def test_a_cancelled_attempt_does_not_begin_later(driver: Driver, step: DriverTask) -> None:
    assert driver.cancel(step) == Cancelled()
    assert isinstance(driver.begin(step), Failed)
    assert driver.check(step) == Failed("the attempt was cancelled")


def test_a_begun_step_can_be_cancelled(driver: Driver, spool: Path, step: DriverTask) -> None:
    driver.begin(step)
    assert driver.cancel(step) == driver.cancel(step) == Cancelled()
    assert [each.suffix for each in spool.iterdir()] == [".cancelled"]


def test_a_driver_name_in_two_packages_is_refused_with_both(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    installed(other, "another-spool", "2.0")
    monkeypatch.syspath_prepend(other)
    with pytest.raises(Invalid) as refused:
        drivers()
    both = "another-spool 2.0 and forewarn-spool 1.0: uninstall one of them"
    assert str(refused.value) == f'driver "spool" is in two packages, {both}'


def test_a_package_that_cannot_be_loaded_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path)
    (tmp_path / "forewarn_spool.py").write_text("import hypervisor_of_somebody\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "forewarn_spool", raising=False)
    with pytest.raises(Invalid) as refused:
        drivers()
    assert str(refused.value) == (
        'cannot create driver "spool" of package forewarn-spool 1.0 (forewarn_spool:make): '
        "ModuleNotFoundError: No module named 'hypervisor_of_somebody'; repair the package, or uninstall it"
    )
