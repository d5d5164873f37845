"""The rules for a host's bridge, as they are written; tests/system loads them."""

from typing import Any

import pytest

from forewarn.cli.views.host_filter import filter_rules, read_ports
from forewarn.core.errors import Invalid
from forewarn.core.words import MachineState
from forewarn.wire.answers.fleet_answers import MachineAnswer

MAC = "52:54:00:77:00:15"


def machine(name: str = "web-0", **more: Any) -> MachineAnswer:
    given: dict[str, Any] = {"project": "default", "address": "10.0.0.7", "mac": MAC, "tags": {}} | more
    return MachineAnswer(
        vm_id=f"{given['project']}/{name}",
        name=name,
        group=None,
        host="kvm04",
        state=MachineState.RUNNING,
        enabled=True,
        last_seen=None,
        **given,
    )


def rules(*machines: MachineAnswer, **ports: str) -> list[str]:
    written = filter_rules("kvm04", machines, {name.replace("_", "-"): port for name, port in ports.items()})
    return [line.strip() for line in written.splitlines()]


def test_a_machine_is_told_by_its_port_as_it_is_said_or_tagged() -> None:
    said = rules(machine("web-0"), machine("web-1", tags={"interface": "tap1"}), web_0="vnet3")
    assert 'iifname "vnet3" jump machine_1' in said
    assert 'iifname "tap1" jump machine_2' in said
    assert rules(machine(tags={"interface": "tap1"}), web_0="vnet3")[7] == 'iifname "vnet3" jump machine_1'


def test_a_machine_whose_port_is_not_known_is_told_by_its_mac_and_says_so() -> None:
    said = rules(machine())
    assert f"ether saddr {MAC} jump machine_1" in said
    assert "# web-0; no interface is known (a tag, or --port web-0=DEVICE)" in said


def test_what_a_machine_does_not_declare_is_not_checked_and_said() -> None:
    said = rules(machine(mac=None, address=None), web_0="vnet3")
    assert said[9:] == [
        "",
        "# web-0; it declares no mac, which is not checked; it declares no address, which is not checked",
        "chain machine_1 {",
        "}",
        "}",
    ]


def test_the_rules_take_the_place_of_those_before_in_one_go() -> None:
    assert rules(machine())[2:5] == [
        "table bridge forewarn",
        "delete table bridge forewarn",
        "table bridge forewarn {",
    ]


def test_machines_of_one_name_are_told_apart_by_their_projects() -> None:
    both = (machine(project="a"), machine(project="b", mac="52:54:00:77:00:16"))
    with pytest.raises(Invalid, match="--port: several are called web-0: say PROJECT/web-0=vnet3"):
        rules(*both, web_0="vnet3")
    assert 'iifname "vnet3" jump machine_2' in filter_rules("kvm04", both, {"b/web-0": "vnet3"})


@pytest.mark.parametrize("given", ["web-0", "=vnet3", "web-0="])
def test_a_port_is_said_of_a_machine(given: str) -> None:
    with pytest.raises(Invalid, match="--port: expected MACHINE=DEVICE"):
        read_ports([given])


def test_a_port_of_a_machine_elsewhere_is_refused() -> None:
    with pytest.raises(Invalid, match='--port: machine "web-9" is not on this host'):
        rules(machine(), web_9="vnet3")


@pytest.mark.parametrize("device", ['vnet3" accept; #', "a-name-far-too-long", "eth 0"])
def test_what_is_no_device_never_reaches_the_rules(device: str) -> None:
    with pytest.raises(Invalid, match="interface: expected the name of a device"):
        rules(machine(tags={"interface": device}))
