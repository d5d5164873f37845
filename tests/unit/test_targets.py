"""Which addresses the people of a project may have called."""

import pytest

from forewarn.core.push.targets import is_plainly_inside, is_public


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "8.8.8.8",
        "172.15.0.1",
        "192.169.0.1",
        *("168.63.129.15", "168.63.129.17"),
        "2606:4700:4700::1111",
        "::ffff:8.8.8.8",  # the same, through an IPv6 socket
        "64:ff9b::808:808",  # the same, behind a translator
        "2002:808:808::1",  # the same, by 6to4
    ],
)
def test_what_anybody_could_call_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.255.255.254", "0.0.0.0", "::1", "::"),  # this machine
        *("10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fd12::1"),  # private
        *("169.254.169.254", "fe80::1", "fe80::1%eth0", "fec0::1"),  # the link, the site
        *("100.64.0.1", "192.0.0.1", "192.0.2.1", "198.18.0.1", "203.0.113.1", "2001:db8::1"),
        *("224.0.0.1", "239.1.1.1", "ff02::1", "255.255.255.255", "240.0.0.1"),  # many, nobody yet
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254"),  # in the clothes of IPv6
        *("::127.0.0.1", "::7f00:1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::1"),
        *("64:ff9b:1::1", "2001::1", "4000::1", "100::1"),
        *("168.63.129.16", "::ffff:168.63.129.16", "64:ff9b::a83f:8110"),  # Azure's own
        *("", "localhost", "0x7f.1", "2130706433", "1.2.3", "1.2.3.4.5", "::ffff:300.0.0.1"),
    ],
)
def test_what_only_the_server_could_reach_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "localhost.", "a.localhost", "127.0.0.1", "::1"])
def test_some_hosts_are_inside_whoever_is_asked(host: str) -> None:
    assert is_plainly_inside(host)


@pytest.mark.parametrize("host", ["hooks.example", "8.8.8.8", "notlocalhost", "10.example", "2606:4700::1"])
def test_a_name_is_judged_when_it_is_looked_up(host: str) -> None:
    assert not is_plainly_inside(host)
