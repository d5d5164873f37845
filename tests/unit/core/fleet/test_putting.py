"""Putting one host, group or project: its source afterwards, and errors."""

from dataclasses import replace
from typing import Any

import pytest

from forewarn.core.basic_types import (
    DECLARED,
    DEFAULT_PROJECT,
    PUT,
    GroupKind,
    GroupName,
    HostName,
    MachineId,
    MachineName,
    Mobility,
    ProjectName,
)
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.fleet import applying, fleet_changes
from forewarn.core.model.declaration import GroupSpec, HostSpec
from forewarn.core.model.found_fleet import FoundFleet, FoundGroup, FoundMachine, confirmed, together
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.project import Project
from tests.unit.slices import Fleet, machine

HOST, WEB, SHOP = HostName("host-1"), GroupName("web"), ProjectName("shop")


def made() -> Fleet:
    return Fleet(machine("web-0"), machine("web-1", domain=1))


def group(**more: Any) -> GroupSpec:
    return GroupSpec(name=WEB, kind=GroupKind.AVAILABILITY_SET, **{"update_domains": 5, **more})


def put_group(fleet: Fleet, wanted: GroupSpec, *, new: bool = False) -> tuple[str, ...]:
    members = () if new else tuple(fleet.draft.machines.values())
    part = fleet_changes.group_part(fleet.draft, None if new else fleet.draft.groups[WEB], wanted, members)
    return applying.apply(fleet.draft, part, by="test")


def test_a_new_object_has_the_source_put() -> None:
    fleet = made()
    new = HostName("gpu")
    assert fleet_changes.host_part(None, HostSpec(name=new)).machines == ()
    lines = applying.apply(
        fleet.draft, fleet_changes.host_part(None, HostSpec(name=new, bare_metal=True)), by="test"
    )
    assert lines == ("+ host gpu", "+ machine gpu on gpu")
    own = next(each for each in fleet.draft.machines.values() if each.name == "gpu")
    assert (fleet.draft.hosts[new].source, own.source, own.mobility) == (PUT, PUT, Mobility.NONE)
    part = fleet_changes.group_part(fleet.draft, None, replace(group(), name=GroupName("db")), ())
    assert part.groups[0].source == PUT
    assert fleet_changes.project_part(None, Project(name=SHOP)).projects[0].source == PUT


@pytest.mark.parametrize(("source", "then"), [(DECLARED, DECLARED), (PUT, PUT), ("libvirt", PUT)])
def test_putting_a_change_makes_put_the_source(source: str, then: str) -> None:
    fleet = made()
    host = replace(fleet.draft.hosts[HOST], source=source)
    same = HostSpec(name=HOST, source=source)
    assert fleet_changes.host_part(host, same).hosts[0].source == source
    assert fleet_changes.host_part(host, replace(same, at_once=2)).hosts[0].source == then
    project = Project(name=SHOP, source=source)
    assert fleet_changes.project_part(project, project).projects[0].source == source
    assert fleet_changes.project_part(project, replace(project, rehearsal=True)).projects[0].source == then


def test_a_group_takes_its_machines_to_another_project() -> None:
    fleet = made()
    fleet.draft.projects[SHOP] = Project(name=SHOP)
    assert put_group(fleet, group(project=SHOP)) == (
        "~ group web: project default to shop",
        "~ machine web-0: project default to shop",
        "~ machine web-1: project default to shop",
    )
    assert put_group(fleet, group(project=SHOP)) == ()


@pytest.mark.parametrize(
    ("wanted", "kind", "said"),
    [
        (group(project=SHOP), Invalid, "project: expected one of the projects, got 'shop'"),
        (group(update_domains=1), Conflict, 'update-domains: expected at least 2, because "web-1" is in'),
        (group(policy=GroupPolicy(budget=2)), Conflict, "policy.budget: expected fewer than its 2 machines"),
    ],
)
def test_an_invalid_group_is_refused(wanted: GroupSpec, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind) as refused:
        put_group(made(), wanted)
    assert str(refused.value).startswith(f'group "web": {said}')


def test_a_project_with_a_group_is_not_dropped() -> None:
    fleet = made()
    fleet.draft.machines.clear()
    with pytest.raises(Conflict, match='projects: "default" still has "web"'):
        applying.apply(fleet.draft, fleet_changes.FleetChange(removed_projects=(DEFAULT_PROJECT,)), by="test")


# Inventories of several hosts


def vm(id_: str) -> FoundMachine:
    return FoundMachine(vm_id=MachineId(id_), name=MachineName(id_), host=HOST, running=True)


def test_the_inventories_of_hosts_are_merged() -> None:
    silent = FoundFleet(unreachable={HostName("b"): "no route"}, notes=("odd",))
    whole = together([FoundFleet(machines=(vm("1"),), groups=(FoundGroup(name=WEB),)), silent])
    assert (len(whole.machines), len(whole.groups), whole.notes) == (1, 1, ("odd",))
    assert whole.unreachable == {"b": "no route"}


def test_machines_found_in_a_second_look_were_moving() -> None:
    first, second = FoundFleet(machines=(vm("1"),)), FoundFleet(machines=(vm("1"), vm("2")))
    seen = confirmed(first, replace(second, unreachable={HOST: "gone"}))
    assert [(each.vm_id, each.moving) for each in seen.machines] == [("1", False), ("2", True)]
    assert seen.unreachable == {HOST: "gone"}
