"""The rules of `forewarn host filter` on real taps prevent spoofing and block no honest guest."""

import json
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from forewarn.cli.views.host_filter import ENDPOINT, Filter, Tap, filter_rules
from tests.helpers.programs.process import FOREWARN, PATIENCE, Program, running, until
from tests.system.namespaces import Network, network
from tests.unit.cli.views.test_host_filter import machine

EVERYBODY = "ff:ff:ff:ff:ff:ff"
ARP, IP, IP6, VLAN = 0x0806, 0x0800, 0x86DD, 0x8100
MACS = {"alice": "52:54:00:00:00:0b", "mallory": "52:54:00:00:00:0c", "bob": "52:54:00:00:00:0d"}
NUMBERS = {"alice": 11, "mallory": 12, "bob": 13}
GATEWAY, GATEWAY_SIX = "10.77.0.1", "fd77::1"
# A router on the bridge; its cable belongs to no guest.
ROUTER = 99
FLEET = "[hosts.kvm04]\n" + "".join(
    f"""
[[machines]]
name = "{name}"
host = "kvm04"
address = "10.77.0.{NUMBERS[name]}"
mac = "{mac}"
"""
    for name, mac in MACS.items()
)
SIX = f"""
[[machines]]
name = "alice-six"
host = "kvm04"
address = "fd77::b"
mac = "{MACS["alice"]}"
"""

# Manages taps like a hypervisor. Each input line adds or removes a tap, or sends a frame from one.
HYPERVISOR = """
import fcntl, os, struct, subprocess, sys
taps = {}
for line in sys.stdin:
    verb, name, *rest = line.split()
    if verb == "add":
        taps[name] = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(taps[name], 0x400454CA, struct.pack("16sH22x", name.encode(), 0x1002))
        subprocess.run(["ip", "link", "set", name, "address", "fe" + rest[0][2:]], check=True)
        subprocess.run(["ip", "link", "set", name, "master", "guests", "up"], check=True)
    elif verb == "remove":
        os.close(taps.pop(name))
    else:
        os.write(taps[name], bytes.fromhex(rest[0]))
    print("done", flush=True)
"""
# Sends frames, one per input line, over the cable of a namespace.
SENDER = """
import socket, sys
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
    out.bind(("eth0", 0))
    for line in sys.stdin:
        out.send(bytes.fromhex(line))
"""
# Prints the frames that reach the host, until the end frame.
LISTENER = """
import socket, sys
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as heard:
    heard.bind(("guests", 0))
    heard.settimeout(60)
    print("ready", flush=True)
    while b"id=end;" not in (frame := heard.recv(2048)):
        print(frame.hex(), flush=True)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A host with a bridge, the taps of its guests, and the state files of libvirt."""

    network: Network
    status: Path
    hypervisor: Popen[str]

    def start(self, guest: str, tap: str) -> None:
        """Start a guest before libvirt has saved that it runs."""
        self._order(f"add {tap} {MACS[guest]}")

    def end(self, tap: str) -> None:
        self._order(f"remove {tap}")

    def send(self, tap: str, frame: bytes) -> None:
        self._order(f"send {tap} {frame.hex()}")

    def write_status(self, **taps: str) -> None:
        """Write libvirt's state files of the domains."""
        for file in self.status.iterdir():
            if file.stem not in taps:
                file.unlink()
        for guest, tap in taps.items():
            interface = (
                f"<interface type='bridge'><mac address='{MACS[guest]}'/><target dev='{tap}'/></interface>"
            )
            text = f"<domstatus><domain><devices>{interface}</devices></domain></domstatus>"
            (self.status / "new").write_text(text)
            (self.status / "new").rename(self.status / f"{guest}.xml")

    def load(self, *, taps: bool = False) -> None:
        found = taps_of_host(self) if taps else ()
        rules = filter_rules(
            Filter(host="kvm04", machines=MACHINES, taps=found, reserved=[GATEWAY, GATEWAY_SIX])
        )
        command = [*self.network.inside("host"), "nft", "-f", "-"]
        done = subprocess.run(
            command, input=rules, text=True, capture_output=True, check=False, timeout=PATIENCE
        )
        assert done.returncode == 0, f"{done.stderr}\n{rules}"

    def heard(self, tap: str, sent: Mapping[str, bytes]) -> set[str]:
        """Send frames from a tap, and return the names of those that reach the host."""

        def send() -> None:
            for each in (*sent.values(), END):
                self.send(tap, each)

        return self._heard(sent, send)

    def heard_from_router(self, sent: Mapping[str, bytes]) -> set[str]:
        def send() -> None:
            subprocess.run(
                [*self.network.inside("router"), sys.executable, "-c", SENDER],
                input="".join(f"{each.hex()}\n" for each in (*sent.values(), END)),
                text=True,
                check=True,
                timeout=PATIENCE,
            )

        return self._heard(sent, send)

    def _heard(self, sent: Mapping[str, bytes], send: Callable[[], None]) -> set[str]:
        command = [*self.network.inside("host"), sys.executable, "-c", LISTENER]
        with Popen(command, stdout=PIPE, text=True) as listener:
            assert listener.stdout is not None
            assert listener.stdout.readline() == "ready\n"
            send()
            arrived = [bytes.fromhex(line) for line in listener.stdout.read().split()]
        return {name for name in sent if any(f"id={name};".encode() in each for each in arrived)}

    def _order(self, line: str) -> None:
        assert self.hypervisor.stdin is not None
        assert self.hypervisor.stdout is not None
        print(line, file=self.hypervisor.stdin, flush=True)
        assert self.hypervisor.stdout.readline() == "done\n"


@contextmanager
def built(folder: Path) -> Iterator[Site]:
    status = folder / "libvirt"
    status.mkdir()
    with network(router=ROUTER) as bridge:
        command = [*bridge.inside("host"), sys.executable, "-c", HYPERVISOR]
        with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as hypervisor:
            site = Site(network=bridge, status=status, hypervisor=hypervisor)
            site.start("alice", "vnet0")
            site.start("mallory", "vnet1")
            site.write_status(alice="vnet0", mallory="vnet1")
            yield site
            assert hypervisor.stdin is not None
            hypervisor.stdin.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with built(tmp_path) as site:
        yield site


def frame(source: str, kind: int, payload: Callable[[bytes], bytes], name: str) -> bytes:
    """Return a broadcast frame that its last bytes identify."""
    return _mac(EVERYBODY) + _mac(source) + struct.pack("!H", kind) + payload(f"id={name};".encode())


def datagram(source: str, *, ports: tuple[int, int] = (5000, 5000)) -> Callable[[bytes], bytes]:
    return packet(source, 17, udp(ports))


def icmp_redirect(source: str) -> Callable[[bytes], bytes]:
    return packet(source, 1, lambda text: struct.pack("!BBHI", 5, 1, 0, 0) + text)


def packet(source: str, protocol: int, payload: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    def made(text: bytes) -> bytes:
        inner = payload(text)
        addresses = IPv4Address(source).packed + IPv4Address("255.255.255.255").packed
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(inner), 0, 0, 64, protocol, 0)
        # A bridge drops packets with a wrong checksum.
        total = sum(struct.unpack("!10H", head + addresses))
        total = (total & 0xFFFF) + (total >> 16)
        head = head[:10] + struct.pack("!H", ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF)
        return head + addresses + inner

    return made


def arp(mac: str, address: str) -> Callable[[bytes], bytes]:
    theirs = _mac(EVERYBODY) + IPv4Address("10.77.0.1").packed
    said = struct.pack("!HHBBH", 1, IP, 6, 4, 2) + _mac(mac) + IPv4Address(address).packed + theirs
    return lambda text: said + text


def advertisement(target: str, *, kind: int = 136) -> Callable[[bytes], bytes]:
    inner = struct.pack("!BBHI", kind, 0, 0, 0x20000000) + IPv6Address(target).packed
    return six(58, lambda text: inner + text)


def six(protocol: int, payload: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    ends = IPv6Address("fe80::2").packed + IPv6Address("ff02::1").packed

    def made(text: bytes) -> bytes:
        inner = payload(text)
        return struct.pack("!IHBB", 0x60000000, len(inner), protocol, 255) + ends + inner

    return made


def udp(ports: tuple[int, int]) -> Callable[[bytes], bytes]:
    return lambda text: struct.pack("!HHHH", *ports, 8 + len(text), 0) + text


def tagged(inner: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda text: struct.pack("!HH", 7, IP) + inner(text)


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def frames(name: str, other: str) -> Mapping[str, bytes]:
    """Return honest and spoofed frames of a guest, by name."""
    own, hers = MACS[name], MACS[other]
    mine, theirs = f"10.77.0.{NUMBERS[name]}", f"10.77.0.{NUMBERS[other]}"
    sent = {
        "honest": (own, IP, datagram(mine)),
        "honest-arp": (own, ARP, arp(own, mine)),
        "asks-for-an-address": (own, IP, datagram("0.0.0.0", ports=(68, 67))),
        "is-an-address-free": (own, ARP, arp(own, "0.0.0.0")),
        "honest-link-local": (own, IP6, advertisement("fe80::2")),
        "second-address": (own, IP, datagram("10.77.0.200")),
        "inner-guest": ("52:54:00:00:99:01", IP, datagram("10.77.0.201")),
        "her-address": (own, IP, datagram(theirs)),
        "her-mac": (hers, IP, datagram(mine)),
        "her-address-from-no-machine": ("52:54:00:00:99:01", IP, datagram(theirs)),
        "arp-of-her-address": (own, ARP, arp(own, theirs)),
        "arp-with-her-mac": (own, ARP, arp(hers, mine)),
        "advertises-her-address": (own, IP6, advertisement(f"fd77::{NUMBERS[other]:x}")),
        "in-a-vlan": (own, VLAN, tagged(datagram(theirs))),
        **{name: (hers, kind, payload) for name, kind, payload in poses_wholly(hers, theirs)},
    }
    return {name: frame(source, kind, payload, name) for name, (source, kind, payload) in sent.items()}


def poses_wholly(mac: str, address: str) -> list[tuple[str, int, Callable[[bytes], bytes]]]:
    return [("both", IP, datagram(address)), ("both-arp", ARP, arp(mac, address))]


def honest(name: str) -> Mapping[str, bytes]:
    return {"hello": frame(MACS[name], IP, datagram(f"10.77.0.{NUMBERS[name]}"), "hello")}


def taps_of_host(site: Site) -> list[Tap]:
    """Return the taps as a process in the host's namespace finds them."""
    script = (
        "import json, pathlib, sys; from forewarn.cli.live.filter_watch import taps_of;"
        "print(json.dumps([[t.device, t.index, t.macs] for t in taps_of(pathlib.Path(sys.argv[1]))]))"
    )
    said = site.network.shell("host", f"{sys.executable} -c '{script}' {site.status}")
    return [Tap(device=device, index=index, macs=tuple(macs)) for device, index, macs in json.loads(said)]


HONEST = {
    *("honest", "honest-arp", "asks-for-an-address", "is-an-address-free", "honest-link-local"),
    *("second-address", "inner-guest"),
}
BOTH = {"both", "both-arp"}
END = frame("52:54:00:00:99:02", IP, datagram("10.77.0.254"), "end")
MACHINES = [
    *(machine(name, mac=mac, address=f"10.77.0.{NUMBERS[name]}") for name, mac in MACS.items()),
    machine("alice-six", mac=MACS["alice"], address=f"fd77::{NUMBERS['alice']:x}"),
]


def test_without_taps_an_address_is_bound_to_its_mac(site: Site) -> None:
    sent = frames("mallory", "alice")
    assert site.heard("vnet1", sent) == sent.keys()
    site.load()
    assert site.heard("vnet1", sent) == HONEST | BOTH
    assert site.heard("vnet0", honest("alice")) == {"hello"}


def test_no_guest_spoofs_the_endpoint_the_gateway_a_router_or_dhcp(site: Site) -> None:
    own = MACS["mallory"]
    made: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
        "arp-of-the-endpoint": (ARP, arp(own, ENDPOINT)),
        "answer-of-the-endpoint": (IP, datagram(ENDPOINT)),
        "arp-of-the-gateway": (ARP, arp(own, GATEWAY)),
        "advertises-the-gateway": (IP6, advertisement(GATEWAY_SIX)),
        "advertises-a-router": (IP6, advertisement("::", kind=134)),
        "redirects": (IP6, advertisement("fe80::2", kind=137)),
        "redirects-four": (IP, icmp_redirect("10.77.0.12")),
        "offers-an-address": (IP, datagram("10.77.0.12", ports=(67, 68))),
        "offers-an-address-six": (IP6, six(17, udp((547, 546)))),
    }
    posed = {name: frame(own, kind, payload, name) for name, (kind, payload) in made.items()}
    sent = {
        **posed,
        "looks-for-a-router": frame(own, IP6, advertisement("::", kind=133), "looks-for-a-router"),
        "asks-for-an-address-six": frame(own, IP6, six(17, udp((546, 547))), "asks-for-an-address-six"),
    }
    assert site.heard("vnet1", sent) == sent.keys()
    site.load(taps=True)
    assert site.heard("vnet1", sent) == sent.keys() - posed.keys()
    assert site.heard_from_router(posed) == posed.keys()


def test_a_tap_that_libvirt_names_is_bound_to_its_guest(site: Site) -> None:
    site.load(taps=True)
    site.load(taps=True)  # again, as after each change
    assert site.heard("vnet1", frames("mallory", "alice")) == HONEST
    assert site.heard("vnet0", honest("alice")) == {"hello"}


def test_a_router_on_the_bridge_forwards_for_machines_elsewhere(site: Site) -> None:
    site.load(taps=True)
    forwarded = {"hers": frame("52:54:00:00:99:03", IP, datagram("10.77.0.11"), "hers")}
    assert site.heard_from_router(forwarded) == {"hers"}


def test_a_guest_on_a_reused_tap_is_not_blocked_before_libvirt_reports_it(site: Site) -> None:
    site.load(taps=True)
    site.end("vnet0")
    site.start("bob", "vnet0")
    assert site.heard("vnet0", honest("bob")) == {"hello"}


def test_a_tap_whose_guest_differs_from_libvirts_state_is_not_bound(site: Site) -> None:
    site.end("vnet0")
    site.start("bob", "vnet0")  # libvirt's state still names alice
    assert [tap.device for tap in taps_of_host(site)] == ["vnet1"]
    site.load(taps=True)
    assert site.heard("vnet0", honest("bob")) == {"hello"}


def test_the_filter_follows_libvirt_and_the_fleet_and_can_be_checked(site: Site, tmp_path: Path) -> None:
    (tmp_path / "fleet.toml").write_text(FLEET + SIX)
    inside = site.network.inside("host")
    with Program(tmp_path, "--fleet", "fleet.toml", before=inside) as program:
        words = [FOREWARN, "--server", program.operators, "host", "filter", "kvm04"]
        words += ["--libvirt-status", str(site.status), "--reserve", GATEWAY, "--state", str(tmp_path)]

        def check() -> tuple[int, list[str]]:
            command = [*inside, *words, "--check", "--json"]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
            assert done.stdout, done.stderr
            return done.returncode, json.loads(done.stdout)["differences"]

        assert check() == (1, ["no filter is loaded"])
        with running([*inside, *words, "--watch"], tmp_path) as process:
            until(lambda: check() == (0, []), what="the filter is loaded")
            assert site.heard("vnet1", frames("mallory", "alice")) == HONEST

            site.end("vnet0")
            site.start("bob", "vnet0")
            assert site.heard("vnet0", honest("bob")) == {"hello"}
            site.write_status(bob="vnet0", mallory="vnet1")
            until(lambda: check() == (0, []), what="the new guest is bound")
            assert site.heard("vnet0", frames("bob", "alice")) == HONEST
            assert process.poll() is None

            program.stop()
            site.write_status(bob="vnet0")
            bound = "nft list set bridge forewarn tap_macs"
            until(lambda: MACS["mallory"] not in site.network.shell("host", bound), what="taps are followed")
            assert site.heard("vnet0", frames("bob", "alice")) == HONEST
        site.network.shell("host", "nft flush ruleset")  # the host boots while the server is unreachable
        with running([*inside, *words, "--watch"], tmp_path):
            until(lambda: "bridge forewarn" in site.network.shell("host", "nft list tables"), what="rules")
            assert site.heard("vnet0", frames("bob", "alice")) == HONEST
