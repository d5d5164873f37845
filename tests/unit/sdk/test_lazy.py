"""Names of a package that are imported when they are first used."""

import subprocess
import sys

import pytest

import forewarn
import forewarn.testing


def test_a_name_is_found_where_it_lives_and_is_listed() -> None:
    from forewarn.sdk.blocking_client import GuestClient
    from forewarn.testing.fleet import Fleet

    assert forewarn.GuestClient is GuestClient
    assert forewarn.testing.Fleet is Fleet
    assert "AsyncGuestClient" in dir(forewarn)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'forewarn' has no attribute 'Nobody'"):
        _ = forewarn.Nobody


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = "import sys, forewarn; print('httpx' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
