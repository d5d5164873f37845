"""A fleet file is read whole, or refused with the name of the field and what was expected."""

import tomllib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.cli.views.fleet_view import fleet_file
from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    GroupKind,
    GroupName,
    HostName,
    MachineName,
    Mobility,
    Priority,
)
from forewarn.core.errors import Invalid
from forewarn.core.model.declaration import (
    FleetDefaults,
    FleetSpec,
    GroupSpec,
    HostSpec,
    MachineSpec,
)
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.host import HostResource
from forewarn.core.model.project import Project
from forewarn.wire.declarations import read_group, read_host, read_machine, read_one_project
from forewarn.wire.fleet import (
    read_fleet,
    unreadable_fleet_file,
    write_fleet,
)

FILE = """
[projects.default]

[groups.web]
kind = "availability-set"
update-domains = 3
project = "default"
[groups.web.policy]

[defaults]
driver = "simulated"

[hosts.host-1]

[[machines]]
name = "web-0"
group = "web"
host = "host-1"
update-domain = 2
fault-domain = 1
address = "127.0.0.11"
port = 8301
priority = "spot"
tags = { role = "front" }

[[machines]]
name = "db"
host = "host-1"
network = "lab"
address = "FD00::0:1"
"""


def declared() -> dict[str, Any]:
    return tomllib.loads(FILE)


def refusal(fleet: object) -> str:
    with pytest.raises(Invalid) as caught:
        read_fleet(fleet)
    return str(caught.value)


def test_a_file_is_read() -> None:
    assert read_fleet(declared()) == FleetSpec(
        projects=(Project(name=DEFAULT_PROJECT),),
        groups=(GroupSpec(name=GroupName("web"), kind=GroupKind.AVAILABILITY_SET, update_domains=3),),
        defaults=FleetDefaults(driver="simulated"),
        hosts=(HostSpec(name=HostName("host-1")),),
        machines=(
            MachineSpec(
                name=MachineName("web-0"),
                group=GroupName("web"),
                host=HostName("host-1"),
                update_domain=2,
                fault_domain=1,
                address="127.0.0.11",
                port=8301,
                priority=Priority.SPOT,
                tags={"role": "front"},
            ),
            MachineSpec(name=MachineName("db"), host=HostName("host-1"), network="lab", address="fd00::1"),
        ),
    )


def test_an_empty_file_is_an_empty_fleet() -> None:
    assert read_fleet({}) == FleetSpec()


def test_keys_may_be_written_with_underscores() -> None:
    fleet = declared()
    fleet["groups"]["web"]["update_domains"] = fleet["groups"]["web"].pop("update-domains")
    fleet["machines"][0]["update_domain"] = fleet["machines"][0].pop("update-domain")
    assert read_fleet(fleet) == read_fleet(declared())


def test_a_machine_takes_the_project_of_its_group() -> None:
    fleet = declared()
    fleet["projects"] = {"shop": {}}
    fleet["groups"]["web"]["project"] = "shop"
    spec = read_fleet(fleet)
    assert [project.name for project in spec.projects] == ["default", "shop"]
    assert [machine.project for machine in spec.machines] == ["shop", "default"]


def test_an_ipv4_address_written_as_ipv6_is_the_same_address() -> None:
    fleet = declared()
    fleet["machines"][1]["address"] = "::ffff:10.0.0.1"
    assert read_fleet(fleet).machines[1].address == "10.0.0.1"


def test_an_id_is_compared_without_its_case() -> None:
    fleet = declared()
    fleet["machines"][1]["vm-id"] = "4C4C4544-0051-4B10-8052-C8C04F4D4E32"
    assert read_fleet(fleet).machines[1].vm_id == "4c4c4544-0051-4b10-8052-c8c04f4d4e32"
    fleet["machines"][1]["vm-id"] = "web-0"
    assert refusal(fleet) == (
        'machines[1] "db": vm-id: expected a UUID such as 4c4c4544-0051-4b10-8052-c8c04f4d4e32, got "web-0"'
    )


@pytest.mark.parametrize(
    "written", ["52:54:00:AB:34:56", "52-54-00-ab-34-56", "5254.00ab.3456", "525400ab3456"]
)
def test_a_mac_is_read_in_every_usual_spelling(written: str) -> None:
    fleet = declared()
    fleet["machines"][1]["mac"] = written
    assert read_fleet(fleet).machines[1].mac == "52:54:00:ab:34:56"


MACHINE = 'machines[0] "web-0": '
NAME = "expected a name of 1 to 64 letters, digits, dots, underscores and hyphens, and not . or .., got "


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("host", "host-9", "host: expected one of the hosts, got 'host-9'"),
        ("host", 7, f"host: {NAME}7"),
        ("mac", "52:54", 'mac: expected a MAC address such as 52:54:00:12:34:56, got "52:54"'),
        ("mac", 525400, "mac: expected a MAC address such as 52:54:00:12:34:56, got 525400"),
        ("group", "shop", "group: expected one of the groups, got 'shop'"),
        ("update-domain", 3, "update-domain: expected 0 to 2, got 3"),
        ("update-domain", -1, "update-domain: expected a whole number from 0 to 9999, got -1"),
        ("fault-domain", True, "fault-domain: expected a whole number from 0 to 9999, got true"),
        ("fault-domain", 1.5, "fault-domain: expected a whole number from 0 to 9999, got 1.5"),
        ("address", "10.0.0", 'address: expected an IPv4 or IPv6 address, got "10.0.0"'),
        ("address", "fe80::1%eth0", 'address: expected an IPv4 or IPv6 address, got "fe80::1%eth0"'),
        ("port", 65536, "port: expected a whole number from 1 to 65535, got 65536"),
        ("priority", "low", 'priority: expected regular or spot, got "low"'),
        ("tags", ["a"], "tags: expected a table of texts, got a list"),
        ("tags", {"a": 1}, "tags.a: expected one line of at most 256 characters, got 1"),
        ("size", "a\nb", 'size: expected one line of at most 256 characters, got "a\\nb"'),
        ("project", "shop", 'project: expected "default", the project of its group, got "shop"'),
        ("adress", "10.0.0.1", "adress: there is no such field; did you mean address?"),
        ("fault-domian", 1, "fault-domian: there is no such field; did you mean fault-domain?"),
        ("fault_domain", 1, "fault_domain: expected it once, but it is also written with - or _"),
    ],
)
def test_a_bad_field_of_a_machine_is_named(key: str, value: object, message: str) -> None:
    fleet = declared()
    fleet["machines"][0][key] = value
    assert refusal(fleet) == MACHINE + message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("web 0", f'machines[0] "web 0": name: {NAME}"web 0"'),
        ("", f'machines[0] "": name: {NAME}""'),
        (7, f"machines[0]: name: {NAME}7"),
        ("DB", 'machines[1] "db": name: expected a unique one, but machines[0] "DB" has it too'),
    ],
)
def test_a_bad_name_of_a_machine_is_named(name: object, message: str) -> None:
    fleet = declared()
    fleet["machines"][0] |= {"name": name, "group": None, "update-domain": 0}
    assert refusal(fleet) == message


def test_a_machine_needs_a_name_and_a_host() -> None:
    assert refusal({"machines": [{}]}) == "machines[0]: name: expected a name, but it is missing"
    message = 'machines[0] "a": host: expected a name, but it is missing'
    assert refusal({"machines": [{"name": "a"}]}) == message


@pytest.mark.parametrize(
    ("fleet", "message"),
    [
        ([], "expected a table, got a list"),
        ({"machine": []}, "machine: there is no such field; did you mean machines?"),
        ({"machines": {}}, "machines: expected a list such as [[machines]] before each machine, got a table"),
        (
            {"machines": ["web-0"]},
            'machines[0]: expected a table such as [[machines]] with name = "web-0" below it, got "web-0"',
        ),
        ({"hosts": ["a"]}, "hosts: expected a table such as [hosts.host-1], got a list"),
        ({"hosts": {"a b": {}}}, f'hosts.a b: {NAME}"a b"'),
        (
            {"hosts": {"a": {"rack": 1}}},
            "hosts.a: rack: there is no such field; expected one of driver, uri, at-once, "
            "resources, labels, bare-metal",
        ),
        (
            {"hosts": {"a": {"resources": {"vcpus": "many"}}}},
            'hosts.a: resources.vcpus: expected a number from 0 to 1,000,000,000,000,000, got "many"',
        ),
        (
            {"hosts": {"a": {"resources": {"vcpus": {"amount": 4, "ratio": 0}}}}},
            "hosts.a: resources.vcpus.ratio: expected a number above 0, up to 1000, got 0",
        ),
        (
            {"hosts": {"a": {"resources": {"vcpus": {"ratio": 2}}}}},
            "hosts.a: resources.vcpus.amount: expected a number, but it is missing",
        ),
        (
            {"hosts": {"a": {"resources": {"my cpus": 2}}}},
            f'hosts.a: resources.my cpus: {NAME}"my cpus"',
        ),
        (
            {"hosts": {"a": {"bare-metal": True}}, "machines": [{"name": "b", "host": "a"}]},
            'machines[0] "b": host: expected another host, because "a" is bare metal',
        ),
        (
            {"hosts": {"a": {"bare-metal": True}, "b": {}}, "machines": [{"name": "a", "host": "b"}]},
            'machines[0] "a": host: expected "a", which is bare metal, or nothing, got "b"',
        ),
        (
            {"hosts": {"a": {"bare-metal": True}}, "machines": [{"name": "a", "mobility": "live"}]},
            'machines[0] "a": mobility: expected "none" because it is bare metal, got "live"',
        ),
        (
            {"groups": {"web": {"kind": "vmss"}}},
            'groups.web: kind: expected cloud-service, availability-set or scale-set, got "vmss"',
        ),
        (
            {"groups": {"web": {"kind": "standalone"}}},
            'groups.web: kind: expected cloud-service, availability-set or scale-set, got "standalone"',
        ),
        (
            {"groups": {"web": {}}},
            "groups.web: kind: expected cloud-service, availability-set or scale-set, but it is missing",
        ),
        (
            {"groups": {"web": {"kind": "scale-set", "update-domains": 0}}},
            "groups.web: update-domains: expected a whole number from 1 to 10000, got 0",
        ),
        (
            {"groups": {"web": {"kind": "scale-set", "project": "shop"}}},
            "groups.web: project: expected one of the projects, got 'shop'",
        ),
        (
            {"groups": {"web": {"kind": "scale-set", "policy": {"notice": "soon"}}}},
            'groups.web: policy.notice: expected a time from 0 s to 30 d, such as 90 or 15m, got "soon"',
        ),
        ({"hosts": {"a": {"at-once": 0}}}, "hosts.a: at-once: expected a whole number from 1 to 100, got 0"),
        (
            {"hosts": {"a": {"uri": "kvm-1"}}},
            'hosts.a: uri: expected a URI such as qemu+ssh://host-1/system, got "kvm-1"',
        ),
        (
            {"hosts": {"a": {"uri": "https://root:secret@kvm-1/"}}},
            "hosts.a: uri: expected no password in the URI: use another credential of the driver, such as a "
            "key file",
        ),
        (
            {"projects": {"default": {"subscription-id": "x"}}},
            "projects.default: subscription-id: not supported yet: leave it out",
        ),
    ],
)
def test_other_errors_name_the_field(fleet: object, message: str) -> None:
    assert refusal(fleet) == message


def test_omitted_fields_of_a_machine_stay() -> None:
    present = read_fleet(declared()).machines[0]
    changed = read_machine({"host": "host-2", "tags": {}}, name="web-0", present=present)
    assert (changed.host, changed.tags, changed.port) == ("host-2", {}, 8301)


def test_one_machine_can_become_standalone() -> None:
    present = read_fleet(declared()).machines[0]
    assert read_machine({"group": None}, name="web-0", present=present).group is None


def test_null_resets_a_field_of_a_machine() -> None:
    present = read_fleet(declared()).machines[0]
    changed = read_machine({"port": None, "tags": None}, name="web-0", present=present)
    assert (changed.port, changed.tags, changed.host) == (None, {}, present.host)


def test_null_resets_a_field_of_a_host() -> None:
    host = read_host(
        {"driver": "external", "uri": "qemu:///system", "at_once": 3, "labels": {"rack": "a"}},
        name="host-1",
        present=None,
    )
    cleared = {"driver": None, "uri": None, "at-once": None, "labels": None, "bare_metal": None}
    assert read_host(cleared, name="host-1", present=host) == HostSpec(name=HostName("host-1"))
    assert read_host({}, name="host-1", present=host) == host


def test_null_resets_a_rule_of_a_policy() -> None:
    body = {"kind": "scale-set", "update_domains": 3, "policy": {"notice": "1h", "gang": True}}
    group = read_group(body, name="web", present=None)
    changed = read_group({"update_domains": None, "policy": {"notice": None}}, name="web", present=group)
    assert changed == replace(group, update_domains=1, policy=replace(group.policy, notice=None))
    assert read_group({"policy": None}, name="web", present=group).policy == GroupPolicy()
    with pytest.raises(Invalid, match="kind: expected"):
        read_group({"kind": None}, name="web", present=group)


@pytest.mark.parametrize("nothing", [None, []])
def test_null_and_an_empty_list_remove_the_windows_of_a_project(nothing: object) -> None:
    body = {"windows": [{"start": "22:00", "length": "4h"}], "blackout": ["2026-12-24"], "rehearsal": True}
    project = read_one_project(body, name="shop", present=None)
    changed = read_one_project({"windows": nothing, "blackout": nothing}, name="shop", present=project)
    assert (changed.calendar.always, changed.rehearsal) == (True, True)


def test_null_for_an_unknown_field_is_refused() -> None:
    with pytest.raises(Invalid, match="drivr: there is no such field"):
        read_host({"drivr": None}, name="host-1", present=None)
    with pytest.raises(Invalid, match="window: there is no such field"):
        read_one_project({"window": None}, name="shop", present=None)


drivers = st.sampled_from([None, "simulated", "external"])
uris = st.sampled_from([None, "qemu:///system", "qemu+ssh://root@kvm-1/system"])
limits = st.sampled_from([None, 1, 100])
names = st.from_regex(r"\A[A-Za-z0-9._-]{1,20}\Z").filter(lambda name: name not in (".", ".."))
texts = st.text(st.characters(exclude_categories=["C", "Zl", "Zp", "Zs"]), max_size=10)


amounts = st.integers(0, 10**15) | st.floats(0, 10**6)
resources = st.dictionaries(names, amounts, max_size=2)
host_resources = st.dictionaries(
    names,
    st.builds(HostResource, amount=amounts, ratio=st.sampled_from([1.0, 1.5, 16.0])),
    max_size=2,
)
labels = st.dictionaries(texts, texts, max_size=2)


@st.composite
def fleets(draw: st.DrawFn) -> FleetSpec:
    hosts = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    groups = draw(st.lists(names, max_size=3, unique=True))
    machines = draw(st.lists(names, max_size=5, unique_by=str.casefold))
    return FleetSpec(
        defaults=FleetDefaults(driver=draw(drivers)),
        hosts=tuple(
            HostSpec(
                name=HostName(name),
                driver=draw(drivers),
                uri=draw(uris),
                at_once=draw(limits),
                resources=draw(host_resources),
                labels=draw(labels),
            )
            for name in hosts
        ),
        groups=tuple(
            GroupSpec(name=GroupName(name), kind=GroupKind.SCALE_SET, update_domains=5) for name in groups
        ),
        machines=tuple(
            MachineSpec(
                name=MachineName(name),
                host=draw(st.sampled_from([HostName(hosts[0]), None])),
                group=GroupName(draw(st.sampled_from(groups))) if groups else None,
                update_domain=draw(st.integers(0, 4)),
                port=draw(st.sampled_from([None, 9000 + place])),
                address=draw(st.sampled_from([None, f"10.0.0.{place}"])),
                mac=draw(st.sampled_from([None, "52:54:00:12:34:56"])),
                tags=draw(st.dictionaries(texts, texts, max_size=2)),
                location=draw(texts),
                mobility=draw(st.sampled_from(Mobility)),
                resources=draw(resources),
                labels=draw(labels),
            )
            for place, name in enumerate(machines)
        ),
    )


@given(fleets())
def test_a_fleet_that_is_written_is_read_back_the_same(spec: FleetSpec) -> None:
    written = write_fleet(spec)
    assert read_fleet(written) == spec
    assert read_fleet(tomllib.loads(fleet_file(written))) == spec


def test_bare_metal_is_a_host_and_its_one_machine() -> None:
    declared = {
        "hosts": {"gpu01": {"bare-metal": True}, "gpu02": {"bare-metal": True}},
        "groups": {"train": {"kind": "scale-set"}},
        "machines": [{"name": "gpu02", "group": "train", "address": "10.0.0.2"}],
    }
    spec = read_fleet(declared)
    facts = [(each.name, each.host, each.group, each.mobility) for each in spec.machines]
    assert facts == [("gpu02", "gpu02", "train", Mobility.NONE), ("gpu01", "gpu01", None, Mobility.NONE)]
    assert read_fleet(write_fleet(spec)) == spec
    assert read_fleet(tomllib.loads(fleet_file(write_fleet(spec)))) == spec


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (FileNotFoundError(2, "No such file or directory"), "No such file or directory"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), "it is not UTF-8"),
    ],
)
def test_an_unreadable_file_has_a_plain_reason(error: OSError | UnicodeDecodeError, why: str) -> None:
    assert str(unreadable_fleet_file("a.toml", error)) == f"fleet file a.toml cannot be read: {why}"
