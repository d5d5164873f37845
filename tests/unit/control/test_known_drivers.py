"""Drivers as use cases know them: who names another is told which there are."""

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
        ("simulated", 'from: expected libvirt or openstack: driver "simulated" cannot list what there is'),
        ("kvm", 'from: "kvm" cannot be used: install forewarn[libvirt]'),
    ],
)
def test_who_imports_from_a_driver_that_cannot_list_is_told_which_can(driver: str, said: str) -> None:
    with pytest.raises(Invalid) as refused:
        KNOWN.check_listing(driver, where="from")
    assert f"{refused.value}" == said


def test_where_no_driver_can_list_it_is_said_what_to_install() -> None:
    with pytest.raises(Invalid, match="no driver here can list what there is: install"):
        KnownDrivers(names=frozenset({"external"})).check_listing("libvirt", where="from")
