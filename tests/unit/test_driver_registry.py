"""Every driver that can be named is made."""

from typing import get_args

from forewarn.config import Settings
from forewarn.core.words import EXTERNAL, DriverName
from forewarn.drivers.registry import Drivers


def test_each_name_has_a_driver_of_its_own() -> None:
    drivers = Drivers(Settings(), monotonic=lambda: 0.0)
    assert drivers.by_name.keys() == set(get_args(DriverName))
    assert drivers.by_name[EXTERNAL] is drivers.external
    assert len({type(each) for each in drivers.by_name.values()}) == len(drivers.by_name)
