"""Splitting the changes of a declaration into parts; each part leaves a valid fleet."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.core.basic_types import GroupKind, GroupName, HostName, MachineId, MachineName, ProjectName
from forewarn.core.draft import Draft
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.fleet import applying
from forewarn.core.fleet.fleet_changes import FleetChange, cut, difference
from forewarn.core.model.declaration import FleetDefaults, FleetSpec, GroupSpec, HostSpec, MachineSpec
from forewarn.core.model.project import Project
from forewarn.core.model.slice import Slice

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
P, Q = ProjectName("p"), ProjectName("q")


def group(name: str, *, project: ProjectName = P, domains: int = 2) -> GroupSpec:
    return GroupSpec(name=GroupName(name), kind=GroupKind.SCALE_SET, update_domains=domains, project=project)


def machine(name: str, *, group: str | None = None, host: str = "h", **more: Any) -> MachineSpec:
    return MachineSpec(
        name=MachineName(name),
        host=HostName(host),
        group=None if group is None else GroupName(group),
        **{"project": P, **more},
    )


def spec(*things: GroupSpec | MachineSpec, hosts: Iterable[str] = ("h",), **more: Any) -> FleetSpec:
    return FleetSpec(
        projects=(Project(name=P), Project(name=Q)),
        groups=tuple(each for each in things if isinstance(each, GroupSpec)),
        machines=tuple(each for each in things if isinstance(each, MachineSpec)),
        hosts=tuple(HostSpec(name=HostName(name)) for name in hosts),
        **more,
    )


class Fleet:
    """A fleet that applies declarations part by part."""

    def __init__(self, declared: FleetSpec | None = None) -> None:
        self.base = Slice(number=0)
        self._ids = count(1)
        if declared is not None:
            self.apply(declared, at_once=1000)

    def parts(self, declared: FleetSpec, *, at_once: int) -> list[FleetChange]:
        applying.validate(declared)
        return cut(difference(self.base, declared), self.base, at_once=at_once)

    def apply(self, declared: FleetSpec, *, at_once: int) -> list[str]:
        return [line for part in self.parts(declared, at_once=at_once) for line in self.apply_part(part)]

    def apply_part(self, part: FleetChange) -> tuple[str, ...]:
        draft = Draft(self.base, now=NOW, new_id=lambda: f"ID-{next(self._ids)}")
        lines = applying.apply(draft, part, by="test")
        self.base = replace(
            self.base,
            defaults=draft.defaults,
            projects=draft.projects,
            hosts=draft.hosts,
            groups=draft.groups,
            machines=draft.machines,
        )
        self.check()
        return lines

    def check(self) -> None:
        """Assert that all references exist, and that no property is used twice."""
        machines = self.base.machines.values()
        for each in machines:
            own = self.base.groups[each.group]
            assert (each.project, each.host in self.base.hosts) == (own.project, True)
            assert each.update_domain < own.update_domains
            assert each.project in self.base.projects
        names = [(each.project, each.name.casefold()) for each in machines]
        addresses = [(each.network, each.address) for each in machines if each.address is not None]
        assert len(set(names)) == len(names)
        assert len(set(addresses)) == len(addresses)


def test_an_unchanged_declaration_has_no_parts() -> None:
    declared = spec(group("g"), machine("a", group="g"), machine("b"))
    assert Fleet(declared).parts(declared, at_once=1) == []


def test_a_small_change_is_one_part() -> None:
    fleet = Fleet()
    declared = spec(group("g"), machine("a", group="g"), machine("b"))
    assert fleet.parts(declared, at_once=100) == [difference(fleet.base, declared)]


def test_objects_are_added_before_and_removed_after_their_references() -> None:
    fleet = Fleet()
    hosts = ("h", "i")
    declared = spec(group("g"), *(machine(f"m{n}", group="g", host="i") for n in range(3)), hosts=hosts)
    assert [line.split()[:2] for line in fleet.apply(declared, at_once=1)] == [
        *(["+", "project"] for _ in range(2)),
        *(["+", "host"] for _ in range(2)),
        ["+", "group"],
        *(["+", "machine"] for _ in range(3)),
    ]
    gone = replace(spec(), projects=(Project(name=P),))
    assert [line.split()[:2] for line in fleet.apply(gone, at_once=1)] == [
        *(["-", "machine"] for _ in range(3)),
        ["-", "group"],
        ["-", "host"],
        ["-", "project"],
    ]


def test_new_machines_are_split_by_host() -> None:
    declared = spec(*(machine(f"m{n}", host=f"h{n % 2}") for n in range(6)), hosts=("h0", "h1"))
    last = Fleet(spec(hosts=("h0", "h1"))).parts(declared, at_once=3)
    assert [{each.spec.host for each in part.machines} for part in last] == [{"h0"}, {"h1"}]


def test_a_known_host_counts_for_its_machines_too() -> None:
    fleet, names = Fleet(spec(hosts=("a", "b"))), ("a", "b", "c", "d")
    declared = replace(
        spec(hosts=names), hosts=tuple(HostSpec(name=HostName(name), driver="external") for name in names)
    )
    parts = fleet.parts(declared, at_once=3)
    assert [[each.name for each in part.hosts] for part in parts] == [["a"], ["b"], ["c", "d"]]


def test_defaults_are_part_of_the_first() -> None:
    declared = spec(machine("a"), defaults=FleetDefaults(driver="simulated"))
    fleet = Fleet()
    assert [part.defaults is not None for part in fleet.parts(declared, at_once=2)] == [True, False]
    assert "~ defaults: driver none to simulated" in fleet.apply(declared, at_once=2)


def test_machines_that_swap_addresses_are_changed_together() -> None:
    before = spec(*(machine(f"m{n}", address=f"10.0.0.{n}") for n in range(6)))
    turned = {0: 1, 1: 2, 2: 0, 3: 9, 4: 3, 5: 5}
    after = spec(*(machine(f"m{n}", address=f"10.0.0.{turned[n]}") for n in range(6)))
    fleet = Fleet(before)
    parts = fleet.parts(after, at_once=1)
    assert [[each.spec.name for each in part.machines] for part in parts] == [
        ["m0", "m1", "m2"],
        ["m3", "m4"],
    ]
    assert len(fleet.apply(after, at_once=1)) == 5


def test_machines_that_swap_ports_are_changed_together() -> None:
    fleet = Fleet(spec(machine("a", port=8301), machine("b", port=8302)))
    assert len(fleet.parts(spec(machine("a", port=8302), machine("b", port=8301)), at_once=1)) == 1


def test_a_freed_address_is_assigned_in_a_later_part() -> None:
    fleet = Fleet(spec(machine("old", address="10.0.0.1"), machine("kept", address="10.0.0.2")))
    after = spec(machine("kept", address="10.0.0.1"), machine("new", address="10.0.0.2"))
    assert [line[:2] for line in fleet.apply(after, at_once=1)] == ["- ", "~ ", "+ "]


def test_a_group_that_moves_to_another_project_takes_its_machines_along() -> None:
    def declared(one: ProjectName, other: ProjectName) -> FleetSpec:
        return spec(
            *(group("g", project=one), group("i", project=other)),
            *(machine(f"m{n}", group="g", project=one) for n in range(3)),
            *(machine(f"m{n}", group="i", project=other) for n in range(3)),
        )

    fleet = Fleet(declared(P, Q))
    # The machines of both have the same names.
    assert len(fleet.parts(declared(Q, P), at_once=2)) == 1
    fleet.apply(declared(Q, P), at_once=2)
    assert {each.project for each in fleet.base.machines.values() if each.group == "g"} == {Q}


def test_a_group_with_fewer_update_domains_changes_with_its_machines() -> None:
    before = spec(group("g", domains=3), *(machine(f"m{n}", group="g", update_domain=n) for n in range(3)))
    after = spec(group("g", domains=1), *(machine(f"m{n}", group="g") for n in range(3)))
    fleet = Fleet(before)
    parts = fleet.parts(after, at_once=1)
    assert [(len(part.groups), len(part.machines)) for part in parts] == [(1, 2)]
    fleet.apply(after, at_once=1)


def test_a_change_that_someone_else_made_in_between_is_accepted() -> None:
    fleet = Fleet(spec(group("g"), machine("gone"), machine("away"), hosts=("h", "i")))
    after = spec(machine("new"), machine("away", zone="2"))
    added, *removed = fleet.parts(after, at_once=100), fleet.parts(spec(), at_once=100)
    fleet.apply(spec(machine("new", zone="9")), at_once=100)
    assert [line for part in added for line in fleet.apply_part(part)] == [
        "~ machine new: zone 9 to none",
        "+ machine away on h",
    ]
    fleet.apply(spec(), at_once=100)
    assert [line for parts in removed for part in parts for line in fleet.apply_part(part)] == []


def test_a_group_or_project_that_came_into_use_is_not_removed() -> None:
    fleet = Fleet(spec(group("g"), group("i", project=Q)))
    none = replace(spec(), projects=(Project(name=P),))
    groups = FleetChange(removed_groups=(GroupName("g"),))
    assert difference(fleet.base, none).removed_groups == ("g", "i")
    fleet.apply(
        spec(group("g"), group("i", project=Q), machine("a", group="g"), machine("b", project=Q)), at_once=9
    )
    with pytest.raises(Conflict, match='groups: "g" still has "a": remove it, or keep the group'):
        fleet.apply_part(groups)
    with pytest.raises(Conflict, match='projects: "q" still has "b": remove it, or keep the project'):
        fleet.apply_part(FleetChange(removed_projects=(Q,)))


# Machines are identified by their ids


ONE, TWO = (
    MachineId("aaaaaaaa-0000-4000-8000-000000000001"),
    MachineId("aaaaaaaa-0000-4000-8000-000000000002"),
)


def test_a_new_machine_gets_its_declared_id() -> None:
    fleet = Fleet(spec(machine("a", vm_id=ONE), machine("b")))
    assert {each.name: each.id for each in fleet.base.machines.values()} == {"a": ONE, "b": "id-1"}
    assert fleet.parts(spec(machine("a"), machine("b")), at_once=9) == []
    assert fleet.parts(spec(machine("a", vm_id=ONE), machine("b")), at_once=9) == []


def test_a_machine_is_renamed_by_its_id() -> None:
    fleet = Fleet(spec(machine("a", vm_id=ONE), machine("b", vm_id=TWO)))
    swapped = spec(machine("b", vm_id=ONE), machine("a", vm_id=TWO), machine("c"))
    assert fleet.apply(swapped, at_once=1) == [
        "~ machine b: name a to b",
        "~ machine a: name b to a",
        "+ machine c on h",
    ]
    named = spec(machine("d", vm_id=ONE), machine("b"))  # one machine is removed, and one is added
    assert fleet.apply(named, at_once=9)[-1] == "+ machine b on h"
    assert TWO not in fleet.base.machines


def test_the_id_of_a_machine_cannot_change() -> None:
    fleet = Fleet(spec(machine("a", vm_id=ONE)))
    with pytest.raises(Conflict) as refused:
        fleet.apply(spec(machine("a", vm_id=TWO)), at_once=9)
    assert str(refused.value) == (
        f'machine "a": vm-id: it is {ONE} and cannot become {TWO}: leave vm-id out, or, if this is another '
        "machine, first remove the one there (forewarn machine delete a)"
    )


def test_two_machines_with_one_id_are_both_named() -> None:
    with pytest.raises(Invalid) as refused:
        applying.validate(spec(machine("a", vm_id=ONE), machine("b", vm_id=ONE)))
    assert str(refused.value) == (
        'machines[1] "b": vm-id: expected a unique one, but machines[0] "a" has it too'
    )


def test_an_id_that_was_assigned_in_between_identifies_the_machine() -> None:
    fleet = Fleet(spec())
    parts = fleet.parts(spec(machine("b", vm_id=ONE)), at_once=9)
    fleet.apply(spec(machine("a", vm_id=ONE)), at_once=9)
    assert [line for part in parts for line in fleet.apply_part(part)] == ["~ machine b: name a to b"]


@st.composite
def declarations(draw: st.DrawFn) -> FleetSpec:
    """Draw fleets with few names, so that two of them overlap."""
    projects = {name: draw(st.sampled_from((P, Q))) for name in ("g", "i")}
    groups = [group(name, project=of, domains=draw(st.integers(1, 3))) for name, of in projects.items()]
    addresses = draw(st.permutations(["10.0.0.1", "10.0.0.2", "10.0.0.3", None, None]))
    chosen: dict[tuple[ProjectName, str], MachineSpec] = {}
    for name, address in zip("abcde", addresses, strict=True):
        own = draw(st.sampled_from([None, *groups, *groups]))
        domain = 0 if own is None else draw(st.integers(0, own.update_domains - 1))
        project = draw(st.sampled_from((P, Q))) if own is None else own.project
        made = machine(name, group=own and own.name, project=project, update_domain=domain, address=address)
        chosen[project, name] = made
    machines = draw(st.lists(st.sampled_from(list(chosen.values())), unique_by=lambda each: each.name))
    return spec(*draw(st.sampled_from([groups, groups])), *machines)


@given(declarations(), declarations(), st.integers(1, 5))
def test_every_split_leads_to_the_declared_fleet(before: FleetSpec, after: FleetSpec, at_once: int) -> None:
    fleet = Fleet(before)
    fleet.apply(after, at_once=at_once)
    assert difference(fleet.base, after) == FleetChange()
