"""Errors for unknown and unusable drivers name the usable ones."""

import pytest

from forewarn.control.driver import KnownDrivers
from forewarn.core.errors import Invalid

KNOWN = KnownDrivers(
    names=frozenset({"external", "libvirt", "openstack", "simulated"}),
    unusable={"kvm": "install forewarn[libvirt]"},
    listing=frozenset({"libvirt", "openstack"}),
)


@pytest.mark.parametrize(
    ("driver", "said"),
    [
        ("vmware", 'from: expected libvirt or openstack, got "vmware"'),
        ("simulated", 'from: expected libvirt or openstack: driver "simulated" cannot list machines'),
        ("kvm", 'from: "kvm" cannot be used: install forewarn[libvirt]'),
    ],
)
def test_the_error_for_a_driver_that_cannot_list_names_those_that_can(driver: str, said: str) -> None:
    with pytest.raises(Invalid) as refused:
        KNOWN.check_listing(driver, where="from")
    assert f"{refused.value}" == said


def test_if_no_driver_can_list_the_error_says_what_to_install() -> None:
    with pytest.raises(Invalid, match="no installed driver can list machines: install"):
        KnownDrivers(names=frozenset({"external"})).check_listing("libvirt", where="from")
