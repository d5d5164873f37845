"""Imports: imported things follow their source, and declarations of people stay."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.control.fleet.fleet_import import normalized
from forewarn.core.basic_types import (
    DECLARED,
    PUT,
    Action,
    GroupKind,
    GroupName,
    HostName,
    HostState,
    Kind,
    MachineId,
    MachineName,
    MachineState,
    Mobility,
    OrderState,
    Priority,
    ProjectName,
    StepState,
)
from forewarn.core.fleet import applying, importing
from forewarn.core.fleet.fleet_changes import FleetChange
from forewarn.core.fleet.found_machines import is_unsafe_name, to_valid_name
from forewarn.core.fleet.import_terms import ImportTerms
from forewarn.core.fleet.importing import ImportPlan
from forewarn.core.model.found_fleet import FoundFleet, FoundGroup, FoundHost, FoundMachine
from forewarn.core.model.host import Host, HostResource
from forewarn.core.model.order import Order
from forewarn.core.orders import interventions
from tests.unit.slices import MINUTE, Fleet, machine

A, B, C = (HostName(name) for name in ("host-a", "host-b", "host-c"))
WEB = GroupName("web")
LIBVIRT = ImportTerms(source="libvirt")


def host(name: HostName, **more: Any) -> FoundHost:
    return FoundHost(name=name, uri=f"test://{name}", **more)


def vm(id_: str, on: HostName | None = A, **more: Any) -> FoundMachine:
    return FoundMachine(vm_id=MachineId(id_), host=on, **{"name": MachineName(id_), "running": True, **more})


def found(*machines: FoundMachine, hosts: Sequence[HostName] = (A, B), **more: Any) -> FoundFleet:
    return FoundFleet(machines=machines, hosts=tuple(host(name) for name in hosts), **more)


def planned(fleet: Fleet, what: FoundFleet, terms: ImportTerms = LIBVIRT) -> ImportPlan:
    fleet.turn()
    return importing.plan(fleet.draft, what, terms)


def taken(fleet: Fleet, what: FoundFleet, terms: ImportTerms = LIBVIRT) -> tuple[str, ...]:
    """Import a fleet, and return each change as a line."""
    part = planned(fleet, what, terms).part
    lines = applying.apply(fleet.draft, part, by="test")
    fleet.turn()
    return lines


def imported(*machines: FoundMachine, **more: Any) -> Fleet:
    fleet = Fleet()
    taken(fleet, found(*machines, **more))
    return fleet


def declared(name: str, on: HostName = A, **more: Any) -> Fleet:
    """Make a machine that a person declares, on a host with the libvirt driver."""
    fleet = Fleet(machine(name, on, **more), hosts=[A, B])
    for each in (A, B):
        fleet.draft.put_host(Host(name=each, driver="libvirt", uri=f"test://{each}"))
    fleet.turn()
    return fleet


# New things


def test_an_empty_fleet_imports_everything() -> None:
    fleet = Fleet()
    lines = taken(
        fleet,
        found(
            vm("web-0", group=WEB, update_domain=1, macs=("52:54:00:00:00:01",), addresses=("10.0.0.1",)),
            vm("alone", B, project=ProjectName("shop"), mobility=Mobility.LIVE, tags={"a": "b"}),
        ),
    )
    assert lines == (
        "+ project shop",
        "+ host host-a",
        "+ host host-b",
        "+ group web",
        "+ machine alone on host-b",
        "+ machine web-0 on host-a",
    )
    web, alone = fleet.machine("web-0"), fleet.machine("alone")
    assert (web.group, web.update_domain, web.address, web.mac) == (WEB, 1, "10.0.0.1", "52:54:00:00:00:01")
    assert (alone.project, alone.mobility, alone.tags) == ("shop", Mobility.LIVE, {"a": "b"})
    made = fleet.draft.hosts[A]
    assert (made.driver, made.uri, made.source) == ("libvirt", "test://host-a", "libvirt")
    assert {web.source, alone.source, fleet.draft.groups[WEB].source} == {"libvirt"}
    assert fleet.draft.groups[WEB].update_domains == 2


def test_an_import_creates_the_default_project() -> None:
    fleet = Fleet()
    fleet.draft.projects.clear()
    fleet.turn()
    assert taken(fleet, found(vm("a"), hosts=[A]))[0] == "+ project default"
    assert fleet.draft.projects[ProjectName("default")].source == DECLARED


def test_a_machine_that_is_off_is_imported_as_stopped() -> None:
    fleet = Fleet()
    assert "+ machine a, stopped" in taken(fleet, found(vm("a", running=False), vm("b", None, running=False)))
    assert [(fleet.machine(name).host, fleet.machine(name).state) for name in "ab"] == [
        (None, MachineState.STOPPED)
    ] * 2


def test_a_machine_does_not_join_another_projects_group() -> None:
    shop, other = ProjectName("shop"), ProjectName("other")
    fleet = imported(vm("a", group=WEB, project=shop))
    joins = found(vm("a", group=WEB, project=shop), vm("b", group=WEB, update_domain=3, project=other))
    plan = planned(fleet, joins)
    assert plan.notes[:-1] == (
        "machine b: group web is not imported: it belongs to project shop, the machine to other",
    )
    taken(fleet, joins)
    assert (fleet.machine("b").group != WEB, fleet.machine("b").project) == (True, other)
    assert taken(fleet, joins) == ()


def test_a_new_group_belongs_to_one_project() -> None:
    shop, other = ProjectName("shop"), ProjectName("other")
    fleet = imported(vm("a", group=WEB, project=other), vm("b", group=WEB, project=shop), vm("c", group=WEB))
    assert (fleet.machine("a").group, fleet.machine("a").project) == (WEB, other)
    assert (fleet.machine("b").group != WEB, fleet.machine("b").project) == (True, shop)
    assert (fleet.machine("c").group, fleet.machine("c").project) == (WEB, other)


def test_names_are_made_valid_and_unique() -> None:
    same = [vm(f"{n}2345678-x", name=MachineName("my vm!")) for n in (1, 2)]
    fleet = imported(*same, vm("3", name=MachineName("€")))
    assert sorted(each.name for each in fleet.draft.machines.values()) == [
        "my-vm",
        "my-vm-22345678",
        "unnamed",
    ]
    assert taken(fleet, found(*reversed(same), vm("3", name=MachineName("€")))) == ()


def test_a_machine_that_changes_its_project_takes_no_name_there() -> None:
    shop = ProjectName("shop")
    one, two = vm("12345678-x", name=MachineName("a")), vm("22345678-x", name=MachineName("a"))
    fleet = imported(one, replace(two, project=shop))
    assert taken(fleet, found(replace(one, project=shop), replace(two, project=shop)))
    names = {id_: each.name for id_, each in fleet.draft.machines.items()}
    assert names == {one.vm_id: "a-12345678", two.vm_id: "a"}


def test_a_taken_address_is_not_imported() -> None:
    fleet = declared("web-0", address="10.0.0.1")
    plan = planned(fleet, found(vm("web-0"), vm("b", addresses=("10.0.0.1",))))
    assert plan.notes == ("machine b: address 10.0.0.1 is not imported: web-0 has it",)
    assert taken(fleet, found(vm("web-0"), vm("c", addresses=("10.0.0.1", "10.0.0.2")))) == (
        "+ machine c on host-a",
    )
    assert fleet.machine("c").address == "10.0.0.2"


def test_a_taken_address_is_imported_into_the_machines_own_network() -> None:
    fleet = imported(vm("1", addresses=("10.0.0.4",), own_network="shop.blue"))
    overlapping = vm("2", addresses=("10.0.0.4",), own_network="rival.blue")
    first = vm("1", addresses=("10.0.0.4",), own_network="shop.blue")
    taken(fleet, found(first, overlapping))
    assert where(fleet) == {"1": ("", "10.0.0.4"), "2": ("rival.blue", "10.0.0.4")}
    assert taken(fleet, found(first, overlapping)) == ()


def where(fleet: Fleet) -> dict[str, tuple[str, str | None]]:
    return {each.id: (each.network, each.address) for each in fleet.draft.machines.values()}


def test_leaving_its_own_network_takes_no_address_from_another_machine() -> None:
    fleet = imported(vm("2", addresses=("10.0.0.4",)))
    first = vm("1", addresses=("10.0.0.4",), own_network="shop.blue")
    silent = vm("2")  # its addresses are unknown at the moment
    for _ in range(2):
        taken(fleet, found(first, silent))
        assert where(fleet) == {"1": ("shop.blue", "10.0.0.4"), "2": ("", "10.0.0.4")}


def test_a_machine_uses_its_next_address_if_the_first_is_taken() -> None:
    fleet = imported(vm("1", addresses=("10.0.0.4",)))
    first, second = vm("1"), vm("2", addresses=("10.0.0.4",), own_network="shop.blue")
    taken(fleet, found(first, second))
    taken(fleet, found(first, vm("2", addresses=("10.0.0.4", "10.0.0.5"), network="")))
    assert where(fleet) == {"1": ("", "10.0.0.4"), "2": ("", "10.0.0.5")}


def test_a_declared_network_stays_even_if_the_address_is_taken_there() -> None:
    fleet = declared("web-0", address="10.0.0.4")
    theirs = next(iter(fleet.draft.machines.values()))
    there = vm(theirs.id, name=theirs.name, addresses=("10.0.0.5",), own_network="shop.blue")
    other = vm("2", addresses=("10.0.0.5",), own_network="shop.red")
    taken(fleet, found(other))
    plan = planned(fleet, found(there, other), replace(LIBVIRT, take=frozenset({"address"})))
    assert any("10.0.0.5 is not imported: 2 has it" in note for note in plan.notes)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (vm("b", manager="nova"), "nova manages it (--managed imports it anyway)"),
        (vm("b", C), "it is on host-c, which the source does not list"),
        (vm("b", B), "host host-b is failed"),
        (vm("b", A), "host host-a is declared as bare metal"),
    ],
)
def test_machines_that_are_not_imported_are_noted(what: FoundMachine, said: str) -> None:
    fleet = Fleet(hosts=[A, B])
    fleet.draft.put_host(Host(name=A, bare_metal=True))
    fleet.draft.put_host(Host(name=B, state=HostState.FAILED))
    plan = planned(fleet, found(what))
    assert plan.notes == (f"machine b is not imported: {said}",)
    assert plan.part.machines == ()


def test_machines_of_another_manager_are_imported_on_request() -> None:
    terms = replace(LIBVIRT, managed=True)
    assert "+ machine a on host-a" in taken(Fleet(), found(vm("a", manager="nova")), terms)


# Imported things


def test_imported_machines_follow_their_source() -> None:
    fleet = imported(vm("a", addresses=("10.0.0.1",), macs=("m1",)), vm("b", addresses=("10.0.0.2",)))
    again = found(
        vm("a", name=MachineName("c"), addresses=("10.0.0.2",), macs=("m2",), network="blue"),
        vm("b", addresses=("10.0.0.1",), group=WEB),
        hosts=[A],
    )
    uri = FoundHost(name=A, uri="test://moved", labels={"rack": "1"})
    assert taken(fleet, replace(again, hosts=(uri,))) == (
        "~ host host-a: uri test://host-a to test://moved, labels",
        "+ group web",
        "~ machine c: name a to c, network none to blue, address 10.0.0.1 to 10.0.0.2, mac m1 to m2",
        "~ machine b: group standalone/b to web, address 10.0.0.2 to 10.0.0.1",
    )


def test_fields_that_the_source_does_not_report_stay() -> None:
    full = vm("a", addresses=("10.0.0.1",), macs=("m1",), group=WEB, update_domain=2, tags={"a": "b"})
    fleet = imported(full)
    assert taken(fleet, found(vm("a"))) == ()
    assert taken(fleet, found(vm("a", addresses=("10.0.0.9", "10.0.0.1"), macs=("m0", "m1")))) == ()


def test_a_machine_that_changes_its_group_starts_in_update_domain_0() -> None:
    fleet = imported(vm("a", group=WEB, update_domain=2))
    taken(fleet, found(vm("a", group=GroupName("db"))))
    assert (fleet.machine("a").group, fleet.machine("a").update_domain) == ("db", 0)
    assert WEB not in fleet.draft.groups  # it is empty


def test_a_machine_named_in_an_event_keeps_its_name_and_group() -> None:
    fleet = imported(vm("a", group=WEB))
    fleet.draft.put_group(replace(fleet.draft.groups[WEB], enabled_at=fleet.now, heard=True))
    fleet.turn()
    fleet.order("a", Action.RESTART)
    plan = planned(fleet, found(vm("a", name=MachineName("z"), group=WEB, update_domain=1)))
    assert plan.part == FleetChange()
    assert set(plan.notes[:-1]) == {
        "machine a is named in an event: its update-domain stays until the event is over",
        "machine a is named in an event: its name stays until the event is over",
    }


def test_listed_groups_have_the_kind_and_domains_of_the_source() -> None:
    listed = FoundGroup(name=WEB, kind=GroupKind.SCALE_SET, update_domains=3, project=ProjectName("shop"))
    fleet = imported(vm("a", group=WEB), groups=(listed,))
    group = fleet.draft.groups[WEB]
    assert (group.kind, group.update_domains, group.project) == (GroupKind.SCALE_SET, 3, "shop")
    fewer = replace(listed, update_domains=None, kind=GroupKind.AVAILABILITY_SET)
    assert taken(fleet, found(vm("a", group=WEB, update_domain=1), groups=(fewer,))) == (
        "~ group web: kind scale-set to availability-set, update-domains 3 to 2",
        "~ machine a: update-domain 0 to 1",
    )
    fleet.draft.put_group(replace(fleet.draft.groups[WEB], enabled_at=fleet.now, heard=True))
    fleet.turn()
    fleet.order("a")
    assert taken(fleet, found(vm("a", group=WEB, update_domain=1), groups=(listed,))) == (
        "~ group web: update-domains 2 to 3",
    )


# Declared things


def test_a_declared_field_stays_and_is_shown_as_a_conflict() -> None:
    fleet = declared("web-0", address="10.0.0.1", tags={"a": "b"})
    source = vm(
        "web-0",
        name=MachineName("renamed"),
        addresses=("10.0.0.5",),
        tags={"a": "c"},
        group=GroupName("db"),
        update_domain=1,
        project=ProjectName("shop"),
    )
    plan = planned(fleet, replace(found(source), hosts=(FoundHost(name=A, uri="test://other"), host(B))))
    assert plan.part == FleetChange()
    assert plan.conflicts == (
        "host host-a: uri is test://host-a, libvirt has test://other (--take uri)",
        "machine web-0: update-domain is 0, libvirt has 1 (--take update-domain)",
        "machine web-0: address is 10.0.0.1, libvirt has 10.0.0.5 (--take address)",
        "machine web-0: tags is a=b, libvirt has a=c (--take tags)",
        "machine web-0: name is web-0, libvirt has renamed (--take name)",
        "machine web-0: group is web, libvirt has db (--take group)",
    )


def test_take_allows_the_source_to_change_single_fields() -> None:
    fleet = declared("web-0", address="10.0.0.1", mac="m1")
    terms = replace(LIBVIRT, take=frozenset({"address", "uri"}))
    what = replace(
        found(vm("web-0", addresses=("10.0.0.5",), macs=("m2",))), hosts=(FoundHost(name=A, uri="test://x"),)
    )
    assert taken(fleet, what, terms) == (
        "~ host host-a: uri test://host-a to test://x",
        "~ machine web-0: address 10.0.0.1 to 10.0.0.5",
    )
    assert fleet.machine("web-0").source == DECLARED
    assert planned(fleet, what, terms).conflicts == ("machine web-0: mac is m1, libvirt has m2 (--take mac)",)


def test_a_declared_group_without_the_update_domain_of_a_machine_refuses_it() -> None:
    fleet = declared("web-0")
    plan = planned(fleet, found(vm("web-0"), vm("b", group=WEB, update_domain=7)))
    assert plan.part.machines == ()
    assert plan.conflicts == (
        "group web: update-domains is 5, libvirt has 8 (--take update-domains)",
        "machine b: update-domain is 7, which group web does not have (--take update-domains, or forewarn "
        "group put web --update-domains 8)",
    )
    lines = taken(
        fleet,
        found(vm("web-0"), vm("b", group=WEB, update_domain=7)),
        replace(LIBVIRT, take=frozenset({"update_domains"})),
    )
    assert lines == ("~ group web: update-domains 5 to 8", "+ machine b on host-a")


def test_a_machine_that_its_declared_host_does_not_define_is_reported() -> None:
    fleet = declared("web-0")
    assert planned(fleet, found()).conflicts == (
        "machine web-0 is declared on host-a, which has no web-0: remove it (forewarn machine delete "
        "web-0), then declare the right vm-id or import it",
    )
    other = found(vm("another", name=MachineName("web-0")))
    assert "has no web-0, but one of that name, another: remove" in planned(fleet, other).conflicts[0]
    assert planned(fleet, found(hosts=[B])).conflicts == ()
    fleet.draft.put_host(Host(name=A, driver="external"))
    assert [each for each in planned(fleet, found()).conflicts if "machine" in each] == []


# Resources


def test_resources_of_machines_and_hosts_are_imported() -> None:
    has = {"memory": HostResource(amount=64.0), "vcpus": HostResource(amount=16.0, ratio=16.0)}
    there = FoundFleet(
        machines=(vm("a", resources={"memory": 2.0, "vcpus": 1.0}),), hosts=(host(A, resources=has),)
    )
    fleet = Fleet()
    taken(fleet, there)
    assert (fleet.machine("a").resources, fleet.draft.hosts[A].resources) == (
        {"memory": 2.0, "vcpus": 1.0},
        has,
    )
    grown = FoundFleet(
        machines=(vm("a", resources={"memory": 2.5, "vcpus": 1.0}),),
        hosts=(host(A, resources={**has, "memory": HostResource(amount=128.0)}),),
    )
    assert taken(fleet, grown) == (
        "~ host host-a: resources memory=64, vcpus=16x16 to memory=128, vcpus=16x16",
        "~ machine a: resources memory=2, vcpus=1 to memory=2.5, vcpus=1",
    )


def test_other_resources_and_ratios_stay() -> None:
    fleet = imported(vm("a", resources={"memory": 2.0}))
    fleet.draft.put_machine(replace(fleet.machine("a"), resources={"memory": 2.0, "gpus": 1.0}))
    own = {"memory": HostResource(amount=8.0, ratio=1.5), "gpus": HostResource(amount=2.0)}
    fleet.draft.put_host(replace(fleet.draft.hosts[A], resources=own))
    fleet.turn()
    seen = host(A, resources={"memory": HostResource(amount=16.0)})
    taken(fleet, FoundFleet(machines=(vm("a", resources={"memory": 4.0}),), hosts=(seen,)))
    assert fleet.machine("a").resources == {"memory": 4.0, "gpus": 1.0}
    now = {"memory": HostResource(amount=16.0, ratio=1.5), "gpus": HostResource(amount=2.0)}
    assert fleet.draft.hosts[A].resources == now


def test_declared_resources_stay() -> None:
    fleet = declared("a", resources={"memory": 1.0})
    seen = FoundFleet(
        machines=(vm("a", resources={"memory": 2.0}),),
        hosts=(host(A, resources={"memory": HostResource(amount=64.0, ratio=2.0)}),),
    )
    plan = planned(fleet, seen)
    assert (plan.part.hosts, plan.part.machines) == ((), ())
    assert plan.conflicts == (
        "host host-a: resources is none, libvirt has memory=64x2 (--take resources)",
        "machine a: resources is memory=1, libvirt has memory=2 (--take resources)",
    )
    taken(fleet, seen, replace(LIBVIRT, take=frozenset({"resources"})))
    assert fleet.machine("a").resources == {"memory": 2.0}


# Warnings


def test_machines_without_an_address_are_noted() -> None:
    there = [vm("bare"), vm("off", running=False), vm("told", addresses=("10.0.0.9",))]
    fleet = Fleet()
    way = "(forewarn machine put NAME --address ADDRESS)"
    warned = (f"1 machine has no address, and gets no events: bare {way}",)
    assert planned(fleet, found(*there)).notes == warned
    taken(fleet, found(*there))
    assert planned(fleet, found(*there)).notes == warned
    many = planned(Fleet(), found(*(vm(f"vm{n}") for n in range(7))))
    names = "vm0, vm1, vm2, vm3, vm4 and 2 more"
    assert many.notes == (f"7 machines have no address, and get no events: {names} {way}",)
    bare = fleet.machine("bare")
    for identified in (replace(bare, port=8301), replace(bare, address="10.0.0.1")):
        fleet.draft.put_machine(identified)
        assert planned(fleet, found(*there)).notes == ()


# Hosts of machines


def test_a_move_outside_forewarn_is_followed_and_recorded() -> None:
    fleet = imported(vm("a"))
    assert taken(fleet, found(vm("a", B))) == ("~ machine a: moved from host-a to host-b outside forewarn",)
    assert (fleet.machine("a").host, fleet.machine("a").state) == (B, MachineState.RUNNING)
    assert fleet.history(Kind.UNANNOUNCED_IMPACT) == ["moved from host-a to host-b outside forewarn"]
    assert fleet.history(Kind.MACHINE_MOVED) == ["host-a to host-b"]


def test_stops_and_starts_outside_forewarn_are_followed() -> None:
    fleet = imported(vm("a"))
    assert taken(fleet, found(vm("a", running=False))) == ("~ machine a: stopped on host-a outside forewarn",)
    assert (fleet.machine("a").host, fleet.machine("a").state) == (None, MachineState.STOPPED)
    assert taken(fleet, found(vm("a", running=False))) == ()
    assert taken(fleet, found(vm("a", B))) == ("~ machine a: started on host-b outside forewarn",)
    assert (fleet.machine("a").host, fleet.machine("a").state) == (B, MachineState.RUNNING)
    assert fleet.history(Kind.UNANNOUNCED_IMPACT) == [
        "stopped on host-a outside forewarn",
        "started on host-b outside forewarn",
    ]


def test_a_machine_destroyed_outside_forewarn_leaves_the_fleet() -> None:
    fleet = imported(vm("a"), vm("b"))
    plan = planned(fleet, found(vm("b")))
    assert (plan.removes, plan.of) == (1, 2)
    assert taken(fleet, found(vm("b"))) == ("- machine a: destroyed outside forewarn",)
    assert fleet.history(Kind.MACHINE_REMOVED) == ["destroyed outside forewarn"]
    assert fleet.history(Kind.UNANNOUNCED_IMPACT) == ["destroyed outside forewarn"]


def test_a_recreated_machine_takes_the_name_of_the_destroyed_one() -> None:
    fleet = imported(vm("1", name=MachineName("a"), addresses=("10.0.0.1",)))
    recreated = vm("2", name=MachineName("a"), addresses=("10.0.0.1",))
    assert taken(fleet, found(recreated)) == (
        "- machine a: destroyed outside forewarn",
        "+ machine a on host-a",
    )


def test_a_change_that_an_event_announced_is_not_an_unannounced_impact() -> None:
    fleet = imported(vm("web-0", group=WEB))
    fleet.draft.put_group(replace(fleet.draft.groups[WEB], enabled_at=fleet.now, heard=True))
    fleet.turn()
    fleet.maintain(A, driver="external")
    assert taken(fleet, found(vm("web-0", B))) == (
        "~ machine web-0: moved from host-a to host-b outside forewarn",
    )
    assert len(fleet.history(Kind.UNANNOUNCED_IMPACT)) == 1  # before NotBefore
    assert not fleet.draft.events_of(next(iter(fleet.draft.orders)))
    fleet.order("web-0", Action.REDEPLOY, scheduled=0, driver="external")
    fleet.turn(20 * MINUTE)  # past NotBefore, and the work has not begun
    assert taken(fleet, found(vm("web-0", A))) != ()
    assert len(fleet.history(Kind.UNANNOUNCED_IMPACT)) == 1


def test_a_change_by_forewarn_is_not_an_outside_change() -> None:
    fleet = imported(vm("web-0", group=WEB))
    order = fleet.order("web-0", Action.REDEPLOY, driver="external")  # no guest listens, so it begins at once
    assert order.steps[0].begun_at is not None
    assert taken(fleet, found(vm("web-0", B))) == ()
    assert taken(fleet, found(vm("web-0", running=False))) == ()
    assert taken(fleet, found()) == ()
    assert fleet.machine("web-0").host == A


def failed(fleet: Fleet, action: Action, name: str = "web-0", **terms: Any) -> Order:
    """Place an order for a group that does not listen, and let its step fail."""
    order = fleet.order(name, action, **terms)
    fleet.fail(order.id)
    fleet.turn()
    assert fleet.draft.orders[order.id].state is OrderState.FAILED
    return fleet.draft.orders[order.id]


def retried(fleet: Fleet, order: Order) -> Order:
    return interventions.retry(fleet.draft, order.id, by="ops", policy=fleet.policy)


def test_a_failed_order_does_not_hide_where_its_machine_is() -> None:
    fleet = imported(vm("web-0", group=WEB), hosts=[A, B, C])
    order = failed(fleet, Action.REDEPLOY)
    (target,) = {B, C} - {order.steps[0].target}
    plan = planned(fleet, found(vm("web-0", target, group=WEB), hosts=[A, B, C]))
    assert plan.notes[:-1] == (
        f"machine web-0 is in order {order.id} (redeploy), which has failed: "
        "retry it from where the machine is now, or abandon it",
    )
    moved = taken(fleet, found(vm("web-0", target, group=WEB), hosts=[A, B, C]))
    assert moved == (f"~ machine web-0: moved from host-a to {target} outside forewarn",)
    assert (fleet.machine("web-0").host, fleet.machine("web-0").state) == (target, MachineState.RUNNING)
    assert fleet.draft.orders[order.id].state is OrderState.FAILED
    (step,) = retried(fleet, order).steps
    assert (step.state, step.attempt) == (StepState.RUNNING, 2)
    assert step.target not in (None, target)
    fleet.finish(order.id)
    assert fleet.draft.orders[order.id].steps[0].state is StepState.DONE


def test_a_retried_move_is_done_if_the_machine_is_on_its_target() -> None:
    fleet = imported(vm("web-0", group=WEB))
    order = failed(fleet, Action.REDEPLOY)
    assert order.steps[0].target == B
    taken(fleet, found(vm("web-0", B, group=WEB)))
    (step,) = retried(fleet, order).steps
    assert (step.state, step.why) == (StepState.DONE, "done already, outside forewarn")
    assert (fleet.machine("web-0").host, fleet.machine("web-0").bound_for) == (B, None)
    fleet.pass_(MINUTE * 2)
    assert fleet.history(Kind.STEP_DONE) == ["redeploy to host-b, simulated; done already, outside forewarn"]


def test_a_machine_moved_outside_forewarn_leaves_a_failed_order_on_its_host() -> None:
    fleet = imported(vm("web-0", group=WEB))
    order = fleet.maintain(A, driver="simulated")
    fleet.pass_(15 * MINUTE)
    fleet.fail(order.id)
    fleet.turn()
    assert taken(fleet, found(vm("web-0", B, group=WEB))) != ()
    assert fleet.machine("web-0").state is MachineState.RUNNING
    fleet.pass_(MINUTE * 2)
    assert not fleet.draft.orders[order.id].open


def test_a_machine_recovered_outside_forewarn_leaves_the_failure_of_its_host() -> None:
    fleet = imported(vm("web-0", group=WEB))
    order = fleet.maintain(A, Action.FAIL, fenced="it is off", driver="simulated")
    fleet.fail(order.id)
    fleet.turn()
    taken(fleet, found(vm("web-0", B, group=WEB), hosts=[B]))
    assert (fleet.machine("web-0").host, fleet.machine("web-0").state) == (B, MachineState.RUNNING)
    fleet.pass_(MINUTE * 2)
    assert not fleet.draft.orders[order.id].open


def test_a_machine_down_after_a_failed_step_is_noted_and_kept() -> None:
    web, other = vm("web-0", group=WEB, addresses=("10.0.0.1",)), vm("other", addresses=("10.0.0.2",))
    fleet = imported(web, other)
    order = failed(fleet, Action.REDEPLOY)
    for state, what in (("off", [replace(web, running=False)]), ("gone", [])):
        plan = planned(fleet, found(other, *what))
        assert plan.part.seen == ()
        assert plan.notes == (
            f"machine web-0 is {state}, and order {order.id} (redeploy) has failed: "
            "retry or abandon it, then import again",
        )
    assert planned(fleet, found(other, web)).notes == ()
    interventions.abandon(fleet.draft, order.id, by="ops")
    assert taken(fleet, found(other))[0] == "- machine web-0: destroyed outside forewarn"


def test_an_order_for_a_machine_stopped_outside_forewarn_fails_with_a_reason() -> None:
    fleet = imported(vm("web-0", group=WEB))
    fleet.draft.put_group(replace(fleet.draft.groups[WEB], enabled_at=fleet.now, heard=True))
    fleet.turn()
    order = fleet.order("web-0")
    taken(fleet, found(vm("web-0", running=False, group=WEB)))
    fleet.pass_(15 * MINUTE)
    (step,) = fleet.draft.orders[order.id].steps
    assert (step.state, step.why) == (
        StepState.FAILED,
        '"web-0" is stopped: abandon this order, or start the machine outside forewarn and import that, '
        "then retry",
    )
    fleet.turn()
    taken(fleet, found(vm("web-0", B, group=WEB)))
    assert retried(fleet, order).steps[0].state is StepState.RUNNING


def test_an_eviction_is_done_if_its_machine_is_stopped_outside_forewarn() -> None:
    fleet = imported(vm("web-0", group=WEB))
    fleet.draft.put_machine(replace(fleet.machine("web-0"), priority=Priority.SPOT))
    fleet.turn()
    order = fleet.order("web-0", Action.EVICT)
    taken(fleet, found(vm("web-0", running=False, group=WEB)))
    fleet.pass_(MINUTE)
    assert fleet.draft.orders[order.id].steps[0].state is StepState.DONE


def test_a_retried_start_is_done_if_the_machine_was_started_outside_forewarn() -> None:
    """A second start could run it on two hosts."""
    fleet = imported(vm("web-0", group=WEB))
    taken(fleet, found(vm("web-0", running=False, group=WEB)))
    order = failed(fleet, Action.START)
    (other,) = {A, B} - {order.steps[0].target}
    taken(fleet, found(vm("web-0", other, group=WEB)))
    (step,) = retried(fleet, order).steps
    assert (step.state, fleet.machine("web-0").host) == (StepState.DONE, other)


def test_a_report_from_before_a_change_by_forewarn_is_stale() -> None:
    fleet = imported(vm("web-0", group=WEB))
    moved, off = (planned(fleet, found(each)) for each in (vm("web-0", B), vm("web-0", running=False)))
    fleet.order("web-0", Action.RESTART, driver="external")
    fleet.turn()
    assert applying.apply(fleet.draft, off.part, by="test") == ()
    fleet.draft.put_machine(replace(fleet.machine("web-0"), host=HostName("host-9")))
    assert applying.apply(fleet.draft, moved.part, by="test") == ()
    del fleet.draft.machines[MachineId("web-0")]
    assert applying.apply(fleet.draft, moved.part, by="test") == ()


def test_declarations_made_while_the_source_is_asked_count() -> None:
    fleet = imported(vm("a", mobility=Mobility.NONE))
    before = fleet.draft
    fleet.turn()
    fleet.draft.put_machine(replace(fleet.machine("a"), mobility=Mobility.COLD, source=PUT))
    fleet.turn()
    plan = importing.plan(fleet.draft, found(vm("a", mobility=Mobility.LIVE)), LIBVIRT, before=before)
    assert plan.part.machines == ()
    assert plan.conflicts == ("machine a: mobility is cold, libvirt has live (--take mobility)",)


def test_moves_and_additions_while_the_source_is_asked_are_not_outside_changes() -> None:
    fleet = imported(vm("a"), vm("b"))
    before = fleet.draft
    fleet.turn()
    fleet.draft.put_machine(replace(fleet.machine("a"), host=B))
    fleet.draft.put_machine(replace(fleet.machine("b"), id=MachineId("c"), name=MachineName("c")))
    fleet.turn()
    plan = importing.plan(fleet.draft, found(vm("a"), vm("b")), LIBVIRT, before=before)
    assert (plan.part.seen, plan.removes) == ((), 0)


def test_a_machine_is_not_followed_to_a_failed_host() -> None:
    fleet = imported(vm("a"))
    fleet.draft.put_host(replace(fleet.draft.hosts[B], state=HostState.FAILED))
    assert taken(fleet, found(vm("a", B))) == ()


def test_a_machine_on_its_reserved_host_was_not_moved() -> None:
    fleet = imported(vm("a"))
    fleet.draft.put_machine(replace(fleet.machine("a"), bound_for=B))
    assert taken(fleet, found(vm("a", B))) == ()


def test_a_migrating_machine_is_neither_a_duplicate_nor_moved() -> None:
    fleet = imported(vm("a"))
    sides = found(vm("a", moving=True), vm("a", B, running=False, moving=True))
    plan = planned(fleet, sides)
    assert (plan.part, plan.notes) == (FleetChange(), ("machine a is being moved: left as it is",))
    new = planned(Fleet(), sides)
    assert (new.part.machines, new.notes) == ((), ("machine a is being moved: left as it is",))


def test_a_machine_that_runs_twice_is_noted_and_not_changed() -> None:
    fleet = imported(vm("a"))
    plan = planned(fleet, found(vm("a"), vm("a", B)))
    assert plan.part == FleetChange()
    assert plan.notes == ("machine a (a) runs on host-a and host-b at once: left as it is; stop one of them",)


def test_a_machine_is_on_the_host_that_runs_it() -> None:
    fleet = imported(vm("a", B), vm("a", running=False))
    assert fleet.machine("a").host == B
    assert taken(fleet, found(vm("a", A, running=False), vm("a", B))) == ()
    assert taken(fleet, found(vm("a", A, running=False), vm("a", B, running=False))) == (
        "~ machine a: stopped on host-b outside forewarn",
    )


def test_a_stopped_machine_that_two_hosts_define_is_not_changed() -> None:
    fleet = imported(vm("1", B, name=MachineName("b")))
    both = found(
        vm("1", A, name=MachineName("a"), running=False), vm("1", B, name=MachineName("b"), running=False)
    )
    taken(fleet, both)
    assert (fleet.machine("1").name, fleet.machine("1").state) == ("b", MachineState.STOPPED)
    assert taken(fleet, both) == ()


def test_an_unreachable_host_removes_nothing_and_is_noted() -> None:
    fleet = imported(vm("a"), vm("b", B), vm("c", running=False))
    plan = planned(fleet, found(hosts=[A], unreachable={B: "no route"}))
    assert plan.part == FleetChange()
    assert plan.notes == (
        "host host-b cannot be reached: no route",
        "machine a is not on host-a any more: not removed while host-b cannot be reached",
    )


def test_only_a_complete_report_removes_hosts_and_their_machines() -> None:
    fleet = imported(vm("a", group=WEB), vm("b", B))
    assert taken(fleet, found(vm("b", B), hosts=[B])) == ()
    whole = replace(LIBVIRT, whole=True)
    assert taken(fleet, found(vm("b", B), hosts=[B]), whole) == (
        "- machine a: destroyed outside forewarn",
        "- group web",
        "- host host-a",
    )


def test_things_of_another_source_are_not_changed() -> None:
    fleet = imported(vm("a"))
    other = replace(LIBVIRT, source="cloud", whole=True)
    plan = planned(fleet, found(hosts=[]), other)
    assert (plan.part, plan.of) == (FleetChange(), 0)
    assert planned(fleet, found(vm("a", addresses=("10.0.0.1",))), other).conflicts[-1] == (
        "machine a: address is none, cloud has 10.0.0.1 (--take address)"
    )


# Properties

IDS = st.sampled_from(["1", "2", "3", "4"])
MACHINES = st.builds(
    FoundMachine,
    vm_id=IDS.map(MachineId),
    name=st.sampled_from(["a", "b", "c d"]).map(MachineName),
    host=st.sampled_from([A, B]),
    running=st.booleans(),
    moving=st.sampled_from([False, False, False, True]),
    macs=st.sampled_from([(), ("m1",), ("m2", "m1")]),
    addresses=st.sampled_from([(), ("10.0.0.1",), ("10.0.0.2", "10.0.0.1"), ("10.0.0.2",)]),
    network=st.sampled_from([None, "", "blue"]),
    own_network=st.sampled_from([None, "shop.blue", "other.blue"]),
    group=st.sampled_from([None, WEB, *map(GroupName, ("db", "web-1", "web-2"))]),
    update_domain=st.sampled_from([None, 0, 3, 7]),
    mobility=st.sampled_from([None, *Mobility]),
    tags=st.sampled_from([None, {}, {"a": "b"}]),
    project=st.sampled_from([None, ProjectName("shop")]),
    manager=st.sampled_from([None, None, "nova"]),
)
_CALLED_WEB = [
    FoundGroup(name=GroupName("web-1"), called=WEB, project=ProjectName("shop")),
    FoundGroup(name=GroupName("web-2"), called=WEB, project=ProjectName("default")),
]
FOUND = st.builds(
    FoundFleet,
    machines=st.lists(MACHINES, max_size=5).map(tuple),
    hosts=st.just((host(A), host(B))),
    groups=st.sampled_from(
        [
            (),
            (FoundGroup(name=WEB, update_domains=2),),
            (_CALLED_WEB[0],),
            (*_CALLED_WEB, FoundGroup(name=WEB)),
        ]
    ),
    unreachable=st.sampled_from([{}, {}, {C: "silent"}]),
)
TERMS = st.builds(
    ImportTerms,
    source=st.just("libvirt"),
    take=st.sampled_from([frozenset(), frozenset({"address", "name", "group"})]),
    managed=st.booleans(),
    whole=st.booleans(),
)


@settings(max_examples=40)
@given(FOUND, FOUND, TERMS)
def test_importing_again_changes_nothing(first: FoundFleet, then: FoundFleet, terms: ImportTerms) -> None:
    fleet = declared("1", address="10.0.0.2", source=PUT)
    taken(fleet, first, terms)
    taken(fleet, then, terms)
    assert planned(fleet, then, terms).part == FleetChange()
    names = [(each.project, each.name.casefold()) for each in fleet.draft.machines.values()]
    addresses = [
        (each.network, each.address) for each in fleet.draft.machines.values() if each.address is not None
    ]
    assert (len(set(names)), len(set(addresses))) == (len(names), len(addresses))
    for each in fleet.draft.machines.values():
        own = fleet.draft.groups[each.group]
        assert each.project == own.project
        assert own.kind is GroupKind.STANDALONE or each.update_domain < own.update_domains


def test_hosts_that_disagree_about_a_group_rename_none() -> None:
    off = FoundMachine(vm_id=MachineId("2"), name="a", host=A, running=False, group=WEB)
    found = FoundFleet(
        machines=(off, replace(off, host=B, group=_CALLED_WEB[1].name)),
        hosts=(host(A), host(B)),
        groups=(*_CALLED_WEB, FoundGroup(name=WEB)),
    )
    fleet = declared("1")
    taken(fleet, found)
    assert fleet.machine("2").group == WEB
    assert planned(fleet, found).part == FleetChange()


@settings(max_examples=40)
@given(FOUND, FOUND)
def test_declared_fields_survive_every_import(first: FoundFleet, then: FoundFleet) -> None:
    fleet = declared("1", address="10.0.0.2", mac="mine", tags={"kept": "yes"})
    before = fleet.machine("1")
    for each in (first, then):
        taken(fleet, each)
    after = fleet.machine("1")
    place = {"host": before.host, "last_host": before.last_host, "state": before.state}
    assert replace(after, **place) == before  # type: ignore[arg-type]


def test_an_import_without_reachable_hosts_creates_nothing() -> None:
    plan = importing.plan(Fleet().draft, FoundFleet(unreachable={A: "no route to host"}), LIBVIRT)
    assert (plan.part, plan.notes) == (FleetChange(), ("host host-a cannot be reached: no route to host",))


@pytest.mark.parametrize(
    ("called", "name"), [(".", "unnamed"), ("..", "unnamed"), ("-.-", "unnamed"), ("-x", "x"), ("...", "...")]
)
def test_no_machine_is_imported_with_a_name_that_paths_drop(called: str, name: str) -> None:
    assert to_valid_name(called) == name


def test_names_that_paths_or_commands_misread_are_awkward() -> None:
    awkward = [each for each in ("", ".", "..", "-x", "x-", "a.b", "...") if is_unsafe_name(each)]
    assert awkward == ["", ".", "..", "-x"]


@pytest.mark.parametrize(("called", "name"), [("..", "unnamed"), ("-x", "x")])
def test_an_import_notes_a_name_that_it_changes(called: str, name: str) -> None:
    machine = FoundMachine(
        vm_id=MachineId("0" * 8 + "-0000-0000-0000-" + "0" * 12), name=called, host=A, running=True
    )
    assert normalized(FoundFleet(machines=(machine,))).notes == (
        f'machine "{called}" has an invalid name: it is imported as {name}',
    )
