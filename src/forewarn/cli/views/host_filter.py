"""Rules for the bridge of a host: each machine sends with its own MAC and from its own address alone.

They stand where frames come in, before the bridge or the host itself learns anything from them. A machine is
told by the bridge's port that its cable is in; where that is not known, by its MAC, which keeps it from using
another's address but nobody from using both.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

from forewarn.core.errors import Invalid
from forewarn.wire.answers.fleet_answers import MachineAnswer
from forewarn.wire.wording import shown

# The tag of a machine that names the device of the host that its cable is in.
INTERFACE = "interface"
# As Linux takes them, without what would mean something to nft.
_DEVICE = re.compile(r"[A-Za-z0-9._-]{1,15}")
_TABLE = "forewarn"


def filter_rules(host: str, machines: Sequence[MachineAnswer], ports: Mapping[str, str]) -> str:
    """Write the rules of a host as `nft -f` reads them; loaded again, they replace what was there."""
    devices = _devices(machines, ports)
    entries = [
        f'iifname "{devices[machine.vm_id]}" jump {_name(number)}'
        for number, machine in enumerate(machines)
        if machine.vm_id in devices
    ]
    entries += [
        f"ether saddr {machine.mac} jump {_name(number)}"
        for number, machine in enumerate(machines)
        if machine.vm_id not in devices and machine.mac
    ]
    lines = [
        "#!/usr/sbin/nft -f",
        f"# Machines of {host} send with their own MAC and address alone. Written by `forewarn host filter`.",
        f"table bridge {_TABLE}",
        f"delete table bridge {_TABLE}",
        f"table bridge {_TABLE} {{",
        "\tchain prerouting {",
        "\t\ttype filter hook prerouting priority -300; policy accept;",
        *(f"\t\t{entry}" for entry in entries),
        "\t}",
    ]
    for number, machine in enumerate(machines):
        lines += ["", *_chain(machine, _name(number), known=machine.vm_id in devices)]
    return "\n".join([*lines, "}"])


def read_ports(given: Iterable[str]) -> Mapping[str, str]:
    """Read what was said of ports, each as MACHINE=DEVICE."""
    ports: dict[str, str] = {}
    for each in given:
        machine, _, device = each.partition("=")
        if not machine or not device:
            raise Invalid(f"--port: expected MACHINE=DEVICE, as web-0=vnet3, got {shown(each)}")
        ports[machine] = device
    return ports


def _name(number: int) -> str:
    # Not by the machine: what it is called may be a word of nft.
    return f"machine_{number + 1}"


def _devices(machines: Sequence[MachineAnswer], ports: Mapping[str, str]) -> Mapping[str, str]:
    """Return the devices of machines by their vm-ids, as far as they are known."""
    devices = {each.vm_id: each.tags[INTERFACE] for each in machines if INTERFACE in each.tags}
    for name, device in ports.items():
        named = [each for each in machines if name in (each.name, f"{each.project}/{each.name}")]
        if not named:
            raise Invalid(f"--port: machine {shown(name)} is not on this host")
        if len(named) > 1:
            raise Invalid(f"--port: several are called {name}: say PROJECT/{name}={device}")
        devices[named[0].vm_id] = device
    for device in devices.values():
        if not _DEVICE.fullmatch(device):
            raise Invalid(f"{INTERFACE}: expected the name of a device, got {shown(device)}")
    return devices


def _chain(machine: MachineAnswer, name: str, *, known: bool) -> Iterator[str]:
    about = [
        "" if known else f"no {INTERFACE} is known (a tag, or --port {machine.name}=DEVICE)",
        "" if machine.mac else "it declares no mac, which is not checked",
        "" if machine.address else "it declares no address, which is not checked",
    ]
    yield f"\t# {machine.name}{''.join(f'; {each}' for each in about if each)}"
    yield f"\tchain {name} {{"
    yield from (f"\t\t{rule}" for rule in _rules(machine))
    yield "\t}"


def _rules(machine: MachineAnswer) -> Iterator[str]:
    if machine.mac:
        yield f"ether saddr != {machine.mac} drop"
        yield f"arp saddr ether != {machine.mac} drop"
    if machine.address is None:
        return
    # What only a host may say: that it gives out addresses, or is a way to others.
    yield "udp sport { 67, 547 } drop"
    yield "icmpv6 type { nd-router-advert, nd-redirect } drop"
    own = ip_address(machine.address)
    yield from _rules_of_four(own if isinstance(own, IPv4Address) else None)
    yield from _rules_of_six(own if isinstance(own, IPv6Address) else None)
    yield "drop"


def _rules_of_four(own: IPv4Address | None) -> Iterator[str]:
    # 0.0.0.0 asks whether an address is free, and for one.
    yield f"arp saddr ip {{ 0.0.0.0{f', {own}' if own else ''} }} accept"
    yield "ip saddr 0.0.0.0 udp sport 68 udp dport 67 accept"
    if own:
        yield f"ip saddr {own} accept"


def _rules_of_six(own: IPv6Address | None) -> Iterator[str]:
    # Whose address is advertised stands after the first eight bytes; those in fe80::/10 are everybody's own.
    yield "icmpv6 type nd-neighbor-advert @th,64,10 != 0x3fa" + (
        f" @th,64,128 != {int(own):#x} drop" if own else " drop"
    )
    yield f"ip6 saddr {{ ::, fe80::/10{f', {own}' if own else ''} }} accept"
