"""Names of a package that are imported at their first use."""

import subprocess
import sys

import pytest

import forewarn
import forewarn.testing


def test_a_lazy_name_is_found_and_listed() -> None:
    from forewarn.sdk.blocking_client import GuestClient
    from forewarn.testing.fleet import Fleet

    assert forewarn.GuestClient is GuestClient
    assert forewarn.testing.Fleet is Fleet
    assert "AsyncGuestClient" in dir(forewarn)


def test_an_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'forewarn' has no attribute 'Missing'"):
        _ = forewarn.Missing


def test_importing_the_package_imports_no_other_module() -> None:
    loaded = "import sys, forewarn; print('httpx' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
