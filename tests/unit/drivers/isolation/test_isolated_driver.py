"""An isolated driver has the same optional members as the driver itself."""

import inspect
from typing import Protocol

from forewarn.control import driver
from forewarn.drivers.isolation.isolated_driver import (
    OPTIONAL_FLAGS,
    OPTIONAL_METHODS,
    OPTIONAL_NOTIFICATIONS,
)

# Members that the server reads before it isolates a driver, or only on its own drivers.
NOT_FORWARDED = {driver.Driver, driver.TrustedText, driver.LoadingNativeCode}


def test_every_optional_member_is_forwarded() -> None:
    offers = {
        name
        for _, each in inspect.getmembers(driver, inspect.isclass)
        if Protocol in each.__mro__ and each is not Protocol and each not in NOT_FORWARDED
        for name in vars(each)
        if not name.startswith("_")
    }
    assert offers == {*OPTIONAL_METHODS, *OPTIONAL_NOTIFICATIONS, *OPTIONAL_FLAGS}
