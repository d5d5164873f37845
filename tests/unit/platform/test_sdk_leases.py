"""DHCP option 245 in the leases of all DHCP clients."""

import os
import struct
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.platform.leases import Lease, current, parse_dhclient, parse_networkd, parse_registry
from forewarn.platform.posix import lease_files

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
WIRE_SERVER = "168.63.129.16"

DEBIAN = """\
# The format of this file is documented in the dhclient.leases(5) manual page.
lease {
  interface "eth0";
  fixed-address 10.0.0.4;
  option subnet-mask 255.255.255.0;
  option unknown-245 a8:3f:81:10;
  renew 4 2025/12/04 08:13:47;
  expire 4 2026/01/04 12:00:00;
}
lease {
  interface "eth0";
  fixed-address 10.0.0.4;
  option domain-name "a}b.example";
  option unknown-245 0a:0:0:7;
  expire 1 2026/01/05 12:00:01;
}
"""
OPENBSD = """\
lease {
  interface "hvn0";
  option option-245 a8:3f:81:10;
  expire 1 2026/01/05 12:30:00 UTC;
}
"""
NETWORKD = """\
# This is private data. Do not parse.
ADDRESS=10.0.0.4
LIFETIME=4294967295
OPTION_120=00
OPTION_245=a83f8110
"""


def one(option: str, expire: str = "") -> str:
    return f"lease {{\n  option {option};\n{f'  expire {expire};' if expire else ''}\n}}\n"


def registry(*options: tuple[int, bytes, int], vendor: int = 0) -> bytes:
    """Encode options in the format of the Windows registry."""
    return b"".join(
        struct.pack("<5I", code, 0, len(data), vendor, expires) + data + bytes(-len(data) % 4)
        for code, data, expires in options
    )


def test_leases_of_dhclient_are_parsed() -> None:
    assert parse_dhclient(DEBIAN) == (
        Lease(address=WIRE_SERVER, expires=datetime(2026, 1, 4, 12, 0, tzinfo=UTC)),
        Lease(address="10.0.0.7", expires=datetime(2026, 1, 5, 12, 0, 1, tzinfo=UTC)),
    )


def test_openbsds_name_of_the_option_is_parsed() -> None:
    expires = datetime(2026, 1, 5, 12, 30, tzinfo=UTC)
    assert parse_dhclient(OPENBSD) == (Lease(address=WIRE_SERVER, expires=expires),)


@pytest.mark.parametrize(
    ("said", "expires"),
    [
        ("epoch 1767614400; # Mon Jan  5 12:00:00 2026", NOON),
        ("never", None),
        ("", None),
        ("when it suits", None),
    ],
)
def test_all_forms_of_expiry_of_dhclient_are_parsed(said: str, expires: datetime | None) -> None:
    assert parse_dhclient(one("unknown-245 a8:3f:81:10", said)) == (
        Lease(address=WIRE_SERVER, expires=expires),
    )


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("A8:3F:81:10", WIRE_SERVER),
        ("a:0:0:4", "10.0.0.4"),
        ('"ABCD"', "65.66.67.68"),  # bytes that are printable characters
        (r'"\012\"0A"', "10.34.48.65"),
    ],
)
def test_all_forms_of_bytes_of_dhclient_are_parsed(written: str, address: str) -> None:
    (lease,) = parse_dhclient(one(f"unknown-245 {written}"))
    assert lease.address == address


@pytest.mark.parametrize("written", ["a8:3f:81", "a8:3f:81:10:20", "100:1:1:1", '"ABC"', "10.0.0.4"])
def test_a_value_that_is_not_an_address_is_ignored(written: str) -> None:
    assert parse_dhclient(one(f"unknown-245 {written}")) == ()


def test_a_lease_without_the_option_is_ignored() -> None:
    assert parse_dhclient(one("unknown-124 a8:3f:81:10")) == ()
    assert parse_networkd("ADDRESS=10.0.0.4\nOPTION_24=a83f8110\n") == ()


def test_leases_of_networkd_are_parsed() -> None:
    assert parse_networkd(NETWORKD) == (Lease(address=WIRE_SERVER),)
    assert parse_networkd("OPTION_245=a83f811\n") == ()


def test_options_in_the_windows_registry_are_parsed() -> None:
    data = registry(
        (15, b"a.example", 1), (245, bytes([168, 63, 129, 16]), int(NOON.timestamp())), (6, b"", 0)
    )
    assert parse_registry(data) == (Lease(address=WIRE_SERVER, expires=NOON),)
    assert parse_registry(registry((245, b"\x0a\0\0\1", 0), vendor=1)) == ()
    assert parse_registry(data[:30]) == ()


def test_the_last_unexpired_lease_counts() -> None:
    leases = parse_dhclient(DEBIAN)
    assert current(leases, now=NOON) == leases[1]
    assert current(leases, now=datetime(2026, 1, 4, tzinfo=UTC)) == leases[1]
    assert current(leases, now=datetime(2026, 1, 6, tzinfo=UTC)) is None
    assert current((Lease(address="10.0.0.1"), *leases), now=datetime(2026, 1, 6, tzinfo=UTC)) == Lease(
        address="10.0.0.1"
    )


@given(st.text())
def test_the_parsers_accept_any_text(text: str) -> None:
    parse_dhclient(f"lease {{\n option unknown-245 {text};\n expire {text};\n}}\n{text}")
    parse_networkd(f"OPTION_245={text}")


@given(st.binary())
def test_the_registry_parser_accepts_any_bytes(data: bytes) -> None:
    parse_registry(data)


def test_the_lease_files_of_all_clients_are_found_newest_last(tmp_path: Path) -> None:
    written = {
        "var/lib/dhcp/dhclient.eth0.leases": DEBIAN,
        "var/lib/dhclient/dhclient-eth0.lease": DEBIAN,
        "var/lib/dhclient/dhclient--eth1.leases": DEBIAN,
        "var/lib/NetworkManager/dhclient-1-eth0.lease": DEBIAN,
        "var/db/dhclient.leases.hvn0": OPENBSD,
        "run/systemd/netif/leases/2": NETWORKD,
    }
    for number, (name, text) in enumerate(written.items()):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (number, number))
    found = list(lease_files(tmp_path))
    assert [source.where for source in found] == [str(tmp_path / name) for name in written]
    assert all(source.leases for source in found)


def test_a_lease_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "run/systemd/netif/leases/2").mkdir(parents=True)
    (source,) = lease_files(tmp_path)
    assert (source.leases, source.trouble) == ((), "Is a directory")
