"""The rules of `forewarn host filter`, loaded on a real bridge: whoever poses as another is not heard."""

import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address

import pytest

from forewarn.cli.views.host_filter import filter_rules
from forewarn.core.words import MachineState
from forewarn.wire.answers.fleet_answers import MachineAnswer
from tests.process import PATIENCE
from tests.system.namespaces import Network, network

ALICE, MALLORY = 11, 12
EVERYBODY = "ff:ff:ff:ff:ff:ff"
ARP, IP, IP6, VLAN = 0x0806, 0x0800, 0x86DD, 0x8100

# Sends the frames that it is given, a line for each, as whoever has the device may.
SENDER = """
import socket, sys
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
    out.bind(("eth0", 0))
    for line in sys.stdin:
        out.send(bytes.fromhex(line))
"""
# Prints what reaches the host itself, until it hears the end.
LISTENER = """
import socket, sys
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as heard:
    heard.bind(("guests", 0))
    heard.settimeout(20)
    print("ready", flush=True)
    while b"id=end;" not in (frame := heard.recv(2048)):
        print(frame.hex(), flush=True)
"""


@pytest.fixture
def bridge() -> Iterator[Network]:
    with network(alice=ALICE, mallory=MALLORY) as built:
        yield built


def frame(source: str, kind: int, payload: Callable[[bytes], bytes], name: str) -> bytes:
    """Return a frame to everybody that can be recognised by its last bytes."""
    return _mac(EVERYBODY) + _mac(source) + struct.pack("!H", kind) + payload(f"id={name};".encode())


def datagram(source: str, *, ports: tuple[int, int] = (5000, 5000)) -> Callable[[bytes], bytes]:
    def made(text: bytes) -> bytes:
        addresses = IPv4Address(source).packed + IPv4Address("255.255.255.255").packed
        head = struct.pack("!BBHHHBBH", 0x45, 0, 28 + len(text), 0, 0, 64, 17, 0)
        # A bridge lets nothing pass whose sum is wrong.
        total = sum(struct.unpack("!10H", head + addresses))
        total = (total & 0xFFFF) + (total >> 16)
        head = head[:10] + struct.pack("!H", ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF)
        return head + addresses + struct.pack("!HHHH", *ports, 8 + len(text), 0) + text

    return made


def arp(mac: str, address: str) -> Callable[[bytes], bytes]:
    theirs = _mac(EVERYBODY) + IPv4Address("10.77.0.1").packed
    said = struct.pack("!HHBBH", 1, IP, 6, 4, 2) + _mac(mac) + IPv4Address(address).packed + theirs
    return lambda text: said + text


def advertisement(target: str) -> Callable[[bytes], bytes]:
    inner = struct.pack("!BBHI", 136, 0, 0, 0x20000000) + IPv6Address(target).packed
    ends = IPv6Address("fe80::2").packed + IPv6Address("ff02::1").packed
    return lambda text: struct.pack("!IHBB", 0x60000000, len(inner + text), 58, 255) + ends + inner + text


def tagged(inner: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda text: struct.pack("!HH", 7, IP) + inner(text)


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def frames(own: str, hers: str) -> Mapping[str, bytes]:
    """Return what Mallory sends, by its name."""
    mine, alice = f"10.77.0.{MALLORY}", f"10.77.0.{ALICE}"
    sent = {
        "honest": (own, IP, datagram(mine)),
        "honest-arp": (own, ARP, arp(own, mine)),
        "asks-for-an-address": (own, IP, datagram("0.0.0.0", ports=(68, 67))),
        "is-an-address-free": (own, ARP, arp(own, "0.0.0.0")),
        "honest-link-local": (own, IP6, advertisement("fe80::2")),
        "her-address": (own, IP, datagram(alice)),
        "her-mac": (hers, IP, datagram(mine)),
        "both": (hers, IP, datagram(alice)),
        "arp-of-her-address": (own, ARP, arp(own, alice)),
        "arp-with-her-mac": (own, ARP, arp(hers, mine)),
        "advertises-her-address": (own, IP6, advertisement(f"fd77::{ALICE:x}")),
        "gives-addresses-out": (own, IP, datagram(mine, ports=(67, 68))),
        "in-another-vlan": (own, VLAN, tagged(datagram(alice))),
    }
    return {name: frame(source, kind, payload, name) for name, (source, kind, payload) in sent.items()}


HONEST = {"honest", "honest-arp", "asks-for-an-address", "is-an-address-free", "honest-link-local"}


def heard(bridge: Network, sent: Mapping[str, bytes], *, by: str, end: bytes) -> set[str]:
    """Send frames, and return the names of those that have reached the host."""
    with subprocess.Popen(
        [*bridge.inside("host"), sys.executable, "-c", LISTENER], stdout=subprocess.PIPE, text=True
    ) as listener:
        assert listener.stdout is not None
        assert listener.stdout.readline() == "ready\n"
        subprocess.run(
            [*bridge.inside(by), sys.executable, "-c", SENDER],
            input="".join(f"{each.hex()}\n" for each in (*sent.values(), end)),
            text=True,
            check=True,
            timeout=PATIENCE,
        )
        arrived = [bytes.fromhex(line) for line in listener.stdout.read().split()]
    return {name for name in sent if any(f"id={name};".encode() in each for each in arrived)}


def machine(bridge: Network, name: str, number: int, **tags: str) -> MachineAnswer:
    return MachineAnswer(
        vm_id=name,
        name=name,
        project="default",
        group=None,
        host="kvm04",
        state=MachineState.RUNNING,
        enabled=True,
        last_seen=None,
        address=f"10.77.0.{number}",
        mac=bridge.shell(name, "cat /sys/class/net/eth0/address").strip(),
        tags=tags,
    )


def load(bridge: Network, rules: str) -> None:
    command = [*bridge.inside("host"), "nft", "-f", "-"]
    done = subprocess.run(command, input=rules, text=True, capture_output=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, f"{done.stderr}\n{rules}"


def test_a_machine_is_heard_with_its_own_mac_and_address_alone(bridge: Network) -> None:
    alice = machine(bridge, "alice", ALICE, interface=f"to-{ALICE}")
    mallory = machine(bridge, "mallory", MALLORY)
    assert alice.mac is not None
    assert mallory.mac is not None
    sent = frames(mallory.mac, alice.mac)
    end = frame(mallory.mac, IP, datagram(f"10.77.0.{MALLORY}"), "end")
    assert heard(bridge, sent, by="mallory", end=end) == sent.keys()

    rules = filter_rules("kvm04", [alice, mallory], {"mallory": f"to-{MALLORY}"})
    load(bridge, rules)
    assert heard(bridge, sent, by="mallory", end=end) == HONEST
    own = {"hers": frame(alice.mac, IP, datagram(f"10.77.0.{ALICE}"), "hers")}
    hers = frame(alice.mac, ARP, arp(alice.mac, f"10.77.0.{ALICE}"), "end")
    assert heard(bridge, own, by="alice", end=hers) == {"hers"}

    load(bridge, rules)  # once more, as after each change of the fleet
    assert bridge.shell("host", "nft list table bridge forewarn").count("jump machine_") == 2


def test_a_machine_whose_port_is_not_known_has_its_address_bound_to_its_mac(bridge: Network) -> None:
    alice, mallory = machine(bridge, "alice", ALICE), machine(bridge, "mallory", MALLORY)
    assert alice.mac is not None
    assert mallory.mac is not None
    load(bridge, filter_rules("kvm04", [alice, mallory], {}))
    sent = frames(mallory.mac, alice.mac)
    end = frame(mallory.mac, IP, datagram(f"10.77.0.{MALLORY}"), "end")
    assert heard(bridge, sent, by="mallory", end=end) == {*HONEST, "both"}


def test_a_machine_with_an_address_of_the_sixth_version_advertises_that_alone(bridge: Network) -> None:
    six = MachineAnswer.like(machine(bridge, "mallory", MALLORY), address=f"fd77::{MALLORY:x}")
    assert six.mac is not None
    load(bridge, filter_rules("kvm04", [six], {"mallory": f"to-{MALLORY}"}))
    sent = {
        "own": frame(six.mac, IP6, advertisement(f"fd77::{MALLORY:x}"), "own"),
        "link-local": frame(six.mac, IP6, advertisement("fe80::2"), "link-local"),
        "hers": frame(six.mac, IP6, advertisement(f"fd77::{ALICE:x}"), "hers"),
        "four": frame(six.mac, IP, datagram(f"10.77.0.{MALLORY}"), "four"),
    }
    end = frame(six.mac, IP6, advertisement("fe80::2"), "end")
    assert heard(bridge, sent, by="mallory", end=end) == {"own", "link-local"}
