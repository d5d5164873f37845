"""nftables rules for the bridges of a host, which prevent guests from spoofing addresses.

A guest cannot use the address or the MAC of another machine of the fleet. It cannot act as the guest
endpoint, as a router or as a DHCP server.

The rules bind a tap by its index, because the kernel never reuses one. libvirt gives the name of a tap,
such as vnet0, to the next guest.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv6Address, ip_address
from typing import Any

from forewarn.wire.answers.fleet_answers import MachineAnswer

TABLE = "forewarn"
# The guest endpoint: a guest that answered at this address could forge the events of its neighbours.
ENDPOINT = "169.254.169.254"
NOT_OURS = "not of the fleet"
# The sets and the types of their elements.
_TYPES = {
    "macs": "type ether_addr",
    "addresses4": "type ipv4_addr",
    "pairs4": "type ether_addr . ipv4_addr",
    "addresses6": "type ipv6_addr",
    "pairs6": "type ether_addr . ipv6_addr",
    # The address in a neighbour advertisement: 16 bytes after the first 8. nft 1.0.6 has no name for it.
    "advertised": "typeof @th,64,128",
    "advertisers": "typeof ether saddr . @th,64,128",
    "taps": "type iface_index",
    "tap_macs": "type iface_index . ether_addr",
}
_ADVERTISEMENT = "icmpv6 type nd-neighbor-advert @th,64,128 @advertised"
# Each rule carries its name as a comment, so that `--check` can find missing rules.
_RULES = {
    "tap-mac": "iif @taps ether saddr @macs iif . ether saddr != @tap_macs drop",
    "ipv4": "ip saddr @addresses4 ether saddr . ip saddr != @pairs4 drop",
    "arp-frame": "arp saddr ip @addresses4 ether saddr . arp saddr ip != @pairs4 drop",
    "arp": "arp saddr ip @addresses4 arp saddr ether . arp saddr ip != @pairs4 drop",
    "ipv6": "ip6 saddr @addresses6 ether saddr . ip6 saddr != @pairs6 drop",
    "advertisement": f"{_ADVERTISEMENT} ether saddr . @th,64,128 != @advertisers drop",
    # With these a guest could become the router, or announce another endpoint (DHCP option 245).
    "router": "icmpv6 type { nd-router-advert, nd-redirect } drop",
    "redirect": "icmp type redirect drop",
    "dhcp-server": "udp sport { 67, 547 } drop",
}
# Only frames from taps are checked. Other ports carry forwarded traffic of machines elsewhere.
_ENTRY = {"guests": 'meta iifkind "tun" jump guests'}

Element = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tap:
    """The tap of a running guest."""

    device: str
    index: int
    macs: tuple[str, ...]  # all MACs of the guest, in lower case


@dataclass(frozen=True, kw_only=True)
class Filter:
    """The filter that a host should load."""

    host: str
    machines: Sequence[MachineAnswer]  # of the whole fleet, as any of them may move here
    taps: Sequence[Tap] = ()
    reserved: Sequence[str] = ()  # addresses that no guest may use, such as the router's

    @property
    def unbound(self) -> Sequence[str]:
        """The machines of the host that the rules cannot protect, with their missing fields."""
        here = (each for each in self.machines if self.host in (each.host, each.bound_for))
        found = []
        for machine in here:
            missing = [name for name in ("mac", "address") if not getattr(machine, name)]
            if missing:
                found.append(
                    f"{_full_name(machine)} declares no {' and no '.join(missing)}: it is not protected"
                )
        return sorted(found)

    @cached_property
    def sets(self) -> Mapping[str, frozenset[Element]]:
        """Return the elements of each set."""
        sets: dict[str, set[Element]] = {name: set() for name in _TYPES}
        for mac, address in self.owners:
            sets["macs"].add((mac,))
            own = ip_address(address)
            sets[f"pairs{own.version}"].add((mac, address))
            if isinstance(own, IPv6Address):
                sets["advertisers"].add((mac, hex(int(own))))
        # A reserved address has no pair, so no guest can use it.
        for own in map(ip_address, {ENDPOINT, *self.reserved, *(address for _, address in self.owners)}):
            sets[f"addresses{own.version}"].add((str(own),))
            if isinstance(own, IPv6Address):
                sets["advertised"].add((hex(int(own)),))
        for tap in self.taps:
            sets["taps"].add((str(tap.index),))
            sets["tap_macs"].update((str(tap.index), mac) for mac in tap.macs)
        return {name: frozenset(elements) for name, elements in sets.items()}

    @cached_property
    def owners(self) -> Mapping[Element, str]:
        """Return the machines that declare both a MAC and an address, by these."""
        return {
            (each.mac.lower(), str(ip_address(each.address))): _full_name(each)
            for each in self.machines
            if each.mac and each.address
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedFilter:
    """The filter that nft has loaded."""

    rules: Sequence[tuple[str, str]]  # chain and name
    sets: Mapping[str, frozenset[Element]]


def filter_rules(wanted: Filter) -> str:
    """Write rules for `nft -f`, which replaces the loaded ones in one transaction."""
    lines = [
        "#!/usr/sbin/nft -f",
        f"# Filter for the guests of {wanted.host}. Written by `forewarn host filter`.",
        *(f"# {line}" for line in wanted.unbound),
        f"table bridge {TABLE}",
        f"delete table bridge {TABLE}",
        f"table bridge {TABLE} {{",
    ]
    for name, elements in wanted.sets.items():
        lines += [f"\tset {name} {{", f"\t\t{_TYPES[name]}"]
        if elements:
            lines += [f"\t\telements = {{ {', '.join(' . '.join(each) for each in sorted(elements))} }}"]
        lines += ["\t}"]
    lines += [
        "\tchain prerouting {",
        "\t\ttype filter hook prerouting priority -300; policy accept;",
        *_commented(_ENTRY),
        "\t}",
        "\tchain guests {",
        *_commented(_RULES),
        "\t}",
        "}",
    ]
    return "\n".join(lines)


def read_loaded(text: str, indexes: Mapping[str, int]) -> LoadedFilter:
    """Parse the output of `nft -j list table`, and replace device names by their indexes."""
    rules: list[tuple[str, str]] = []
    sets: dict[str, frozenset[Element]] = {}
    for each in json.loads(text)["nftables"]:
        if rule := each.get("rule"):
            rules.append((rule["chain"], rule.get("comment", "")))
        elif found := each.get("set"):
            elements = frozenset(_element(found["name"], given, indexes) for given in found.get("elem", ()))
            sets[found["name"]] = elements
    return LoadedFilter(rules=rules, sets=sets)


def differences(wanted: Filter, loaded: LoadedFilter | None) -> Sequence[str]:
    """Return the differences between the wanted and the loaded filter, by machine and tap."""
    if loaded is None:
        return ["no filter is loaded"]
    expected = [*(("prerouting", name) for name in _ENTRY), *(("guests", name) for name in _RULES)]
    found = [] if loaded.rules == expected else ["the loaded rules differ"]
    found += _machine_differences(wanted, loaded.sets)
    found += _tap_differences(wanted, loaded.sets)
    if not found and loaded.sets != wanted.sets:
        found.append("another program has changed the sets of the filter")
    return found


def _machine_differences(wanted: Filter, loaded: Mapping[str, frozenset[Element]]) -> list[str]:
    owners = wanted.owners
    pairs = frozenset(loaded.get("pairs4", frozenset()) | loaded.get("pairs6", frozenset()))
    missing = sorted((name, pair) for pair, name in owners.items() if pair not in pairs)
    return [
        *(f"machine {name}: {_written(pair)} is not loaded" for name, pair in missing),
        *(f"{_written(pair)} is loaded, but no machine has it" for pair in sorted(pairs - owners.keys())),
    ]


def _tap_differences(wanted: Filter, loaded: Mapping[str, frozenset[Element]]) -> list[str]:
    names = {mac: name for (mac, *_), name in wanted.owners.items()}
    devices = {str(tap.index): tap.device for tap in wanted.taps}
    bound = loaded.get("tap_macs", frozenset())
    missing = [(tap, mac) for tap in wanted.taps for mac in tap.macs if (str(tap.index), mac) not in bound]
    others = sorted(bound - wanted.sets["tap_macs"])
    return [
        *(f"tap {tap.device} is not bound to {mac} ({names.get(mac, NOT_OURS)})" for tap, mac in missing),
        *(
            f"tap {devices.get(index, index)} is bound to {mac}, which its guest does not have"
            for index, mac in others
        ),
    ]


def _commented(rules: Mapping[str, str]) -> Iterable[str]:
    return (f'\t\t{rule} comment "{name}"' for name, rule in rules.items())


def _element(name: str, given: Any, indexes: Mapping[str, int]) -> Element:
    parts = [str(part) for part in (given["concat"] if isinstance(given, dict) else [given])]
    if name in ("taps", "tap_macs"):
        parts[0] = str(indexes.get(parts[0], parts[0]))
    elif name in ("advertised", "advertisers"):
        parts[-1] = hex(int(parts[-1], 0))
    return tuple(parts)


def _full_name(machine: MachineAnswer) -> str:
    return f"{machine.project}/{machine.name}"


def _written(pair: Iterable[str]) -> str:
    return " with ".join(pair)
