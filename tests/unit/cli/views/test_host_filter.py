"""The filter rules of a host: their text, and differences to loaded rules. tests/system loads them."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from forewarn.cli.views.host_filter import (
    ENDPOINT,
    Filter,
    LoadedFilter,
    Tap,
    differences,
    filter_rules,
    read_loaded,
)
from forewarn.core.basic_types import DECLARED, MachineState
from forewarn.wire.answers.fleet_answers import MachineAnswer

MAC, OTHER = "52:54:00:77:00:15", "52:54:00:77:00:16"
RULES = [
    ("prerouting", "guests"),
    *(("guests", name) for name in ("tap-mac", "ipv4", "arp-frame", "arp", "ipv6", "advertisement")),
    *(("guests", name) for name in ("router", "redirect", "dhcp-server")),
]


def machine(name: str = "web-0", **more: Any) -> MachineAnswer:
    given: dict[str, Any] = {
        "project": "default",
        "host": "kvm04",
        "address": "10.0.0.7",
        "mac": MAC,
        "bound_for": None,
        **more,
    }
    return MachineAnswer(
        vm_id=f"{given['project']}/{name}",
        name=name,
        group=None,
        state=MachineState.RUNNING,
        enabled=True,
        last_seen=None,
        source=DECLARED,
        tags={},
        **given,
    )


def wanted(*machines: MachineAnswer, taps: Sequence[Tap] = ()) -> Filter:
    return Filter(host="kvm04", machines=machines, taps=taps)


def tap(device: str = "vnet0", index: int = 7, mac: str = MAC) -> Tap:
    return Tap(device=device, index=index, macs=(mac,))


def as_loaded(filter_: Filter) -> LoadedFilter:
    return LoadedFilter(rules=RULES, sets=filter_.sets)


def test_the_rules_have_the_addresses_of_machines_on_all_hosts() -> None:
    rules = filter_rules(wanted(machine(), machine("web-9", host="kvm09", mac=OTHER, address="10.0.0.9")))
    assert f"elements = {{ {MAC} . 10.0.0.7, {OTHER} . 10.0.0.9 }}" in rules
    assert f"elements = {{ 10.0.0.7, 10.0.0.9, {ENDPOINT} }}" in rules


def test_no_rule_names_a_tap() -> None:
    rules = filter_rules(wanted(machine(), taps=[tap()]))
    assert "vnet" not in rules
    assert "iifname" not in rules
    assert f"elements = {{ 7 . {MAC} }}" in rules


def test_new_rules_replace_the_old_ones_in_one_transaction() -> None:
    assert filter_rules(wanted(machine())).splitlines()[2:5] == [
        "table bridge forewarn",
        "delete table bridge forewarn",
        "table bridge forewarn {",
    ]


def test_the_rules_name_unprotected_machines_of_the_host() -> None:
    given = (machine("a", mac=None), machine("b", address=None, mac=None, host=None, bound_for="kvm04"))
    elsewhere = machine("c", mac=None, host="kvm09")
    rules = filter_rules(wanted(*given, elsewhere))
    assert "# default/a declares no mac: it is not protected" in rules
    assert "# default/b declares no mac and no address: it is not protected" in rules
    assert "default/c" not in rules
    assert [line.strip() for line in rules.splitlines() if "elements" in line] == [
        f"elements = {{ {ENDPOINT} }}"
    ]


def test_an_ipv6_address_is_also_bound_in_advertisements() -> None:
    sets = wanted(machine(address="fd77::7")).sets
    assert sets["pairs6"] == {(MAC, "fd77::7")}
    assert sets["advertisers"] == {(MAC, "0xfd770000000000000000000000000007")}
    assert sets["pairs4"] == frozenset()


def test_reserved_addresses_belong_to_no_mac() -> None:
    sets = Filter(host="kvm04", machines=[machine()], reserved=["10.0.0.1", "fd77::1"]).sets
    assert sets["addresses4"] == {("10.0.0.7",), ("10.0.0.1",), (ENDPOINT,)}
    assert sets["addresses6"] == {("fd77::1",)}
    assert sets["advertised"] == {("0xfd770000000000000000000000000001",)}
    assert sets["pairs4"] == {(MAC, "10.0.0.7")}
    assert sets["pairs6"] == sets["advertisers"] == frozenset()


def test_a_machine_that_serves_the_endpoint_declares_its_address() -> None:
    assert wanted(machine(address=ENDPOINT)).sets["pairs4"] == {(MAC, ENDPOINT)}


def test_a_correctly_loaded_filter_has_no_differences() -> None:
    filter_ = wanted(machine(), machine("six", mac=OTHER, address="fd77::7"), taps=[tap()])
    assert differences(filter_, as_loaded(filter_)) == []


def test_differences_name_the_machine_or_the_tap() -> None:
    filter_ = wanted(machine(), taps=[tap(), tap("vnet1", 8, OTHER)])
    before = wanted(machine(address="10.0.0.8"), taps=[tap(mac=OTHER)])
    assert differences(filter_, as_loaded(before)) == [
        f"machine default/web-0: {MAC} with 10.0.0.7 is not loaded",
        f"{MAC} with 10.0.0.8 is loaded, but no machine has it",
        f"tap vnet0 is not bound to {MAC} (default/web-0)",
        f"tap vnet1 is not bound to {OTHER} (not of the fleet)",
        f"tap vnet0 is bound to {OTHER}, which its guest does not have",
    ]


def test_a_missing_filter_and_missing_rules_are_differences() -> None:
    filter_ = wanted(machine())
    assert differences(filter_, None) == ["no filter is loaded"]
    without = LoadedFilter(rules=RULES[:-1], sets=filter_.sets)
    assert differences(filter_, without) == ["the loaded rules differ"]


@pytest.mark.parametrize("name", ["macs", "addresses4", "taps"])
def test_a_set_that_another_program_emptied_is_a_difference(name: str) -> None:
    filter_ = wanted(machine(), taps=[tap()])
    emptied = LoadedFilter(rules=RULES, sets={**filter_.sets, name: frozenset()})
    assert differences(filter_, emptied) == ["another program has changed the sets of the filter"]


def test_device_names_of_nft_become_indexes() -> None:
    listing = {
        "nftables": [
            {"metainfo": {}},
            {"set": {"name": "tap_macs", "elem": [{"concat": ["vnet0", MAC]}, {"concat": ["9", OTHER]}]}},
            {"set": {"name": "taps", "elem": ["vnet0", 9]}},
            {"set": {"name": "advertised", "elem": ["0xfd77"]}},
            {"set": {"name": "macs"}},
            {"rule": {"chain": "guests", "comment": "ipv4"}},
            {"rule": {"chain": "guests"}},
        ]
    }
    loaded = read_loaded(json.dumps(listing), {"vnet0": 7})
    assert loaded.sets["tap_macs"] == {("7", MAC), ("9", OTHER)}
    assert loaded.sets["taps"] == {("7",), ("9",)}
    assert loaded.sets["advertised"] == {("0xfd77",)}
    assert loaded.rules == [("guests", "ipv4"), ("guests", "")]
