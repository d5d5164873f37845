"""The Host header."""

import pytest

from forewarn.wire.authority import is_expected, split


@pytest.mark.parametrize(
    ("authority", "parts"),
    [
        ("localhost", ("localhost", "")),
        (" Ops.Example:8170 ", ("ops.example", "8170")),
        ("127.0.0.1:", ("127.0.0.1", "")),
        ("[::1]:80", ("::1", "80")),
        ("[::1]", ("::1", "")),
        ("::1", ("::1", "")),
        *((bad, ("", "")) for bad in ("[::1", "[localhost]:80", "a:b", "a:80x", "[::1]80", "a:\u0661")),
    ],
)
def test_a_host_is_split_from_its_port(authority: str, parts: tuple[str, str]) -> None:
    assert split(authority) == parts


@pytest.mark.parametrize(
    "host", ["[fe80::a9fe:a9fe%25eth0]", "[FE80::1%eth0.100]:80", "[fe80::1%252]", "[fe80::1]"]
)
def test_a_link_local_address_may_name_its_interface(host: str) -> None:
    assert is_expected(host, frozenset())


@pytest.mark.parametrize(
    "host",
    ["[::1%25x.evil]", "[2001:db8::1%eth0]", "127.0.0.1%25eth0", "169.254.169.254%", "[fe80::1%]",
     "[fe80::1%25]", "[fe80::1%25eth0%25x]", "[fe80::1%25e/h0]", "[fe80::1%25a-name-of-sixteen]"],
)  # fmt: skip
def test_only_a_link_local_address_has_a_zone(host: str) -> None:
    assert not is_expected(host, frozenset())


@pytest.mark.parametrize("host", ["", ":80", "a@localhost", "localhost/x", "evil.example", "1.2.3.4.evil"])
def test_a_name_that_an_attacker_can_own_is_refused(host: str) -> None:
    assert not is_expected(host, frozenset({"ops.example"}))
    assert is_expected("OPS.example:1", frozenset({"ops.example"}))
