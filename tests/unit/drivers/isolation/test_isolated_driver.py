"""A driver in a process of its own offers all that it would offer in the server."""

import inspect
from typing import Protocol

from forewarn.control import driver
from forewarn.drivers.isolation.isolated_driver import OFFERED_METHODS, OFFERED_NOTES, OFFERED_VALUES

# What the server asks of a driver before it gives it a process, or of forewarn's own that have none.
ASKED_OTHERWISE = {driver.Driver, driver.TrustedText, driver.LoadingNativeCode}


def test_everything_that_a_driver_may_offer_is_passed_on() -> None:
    offers = {
        name
        for _, each in inspect.getmembers(driver, inspect.isclass)
        if Protocol in each.__mro__ and each is not Protocol and each not in ASKED_OTHERWISE
        for name in vars(each)
        if not name.startswith("_")
    }
    assert offers == {*OFFERED_METHODS, *OFFERED_NOTES, *OFFERED_VALUES}
