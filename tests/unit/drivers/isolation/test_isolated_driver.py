"""An isolated driver has the same optional members as the driver itself."""

import inspect
from typing import Protocol

from forewarn.control import driver
from forewarn.drivers.isolation.isolated_driver import OFFERED_METHODS, OFFERED_NOTES, OFFERED_VALUES

# Members that the server reads before it isolates a driver, or only on its own drivers.
ASKED_OTHERWISE = {driver.Driver, driver.InOwnWords, driver.LoadingNativeCode}


def test_every_optional_member_is_forwarded() -> None:
    offers = {
        name
        for _, each in inspect.getmembers(driver, inspect.isclass)
        if Protocol in each.__mro__ and each is not Protocol and each not in ASKED_OTHERWISE
        for name in vars(each)
        if not name.startswith("_")
    }
    assert offers == {*OFFERED_METHODS, *OFFERED_NOTES, *OFFERED_VALUES}
