"""Groups that a source calls the same: each keeps the name that it has, whatever others are called."""

from forewarn.core.basic_types import GroupName, HostName, MachineId, MachineName, ProjectName
from forewarn.core.fleet import applying, importing
from forewarn.core.fleet.import_terms import ImportTerms
from forewarn.core.model.found_fleet import FoundFleet, FoundGroup, FoundHost, FoundMachine
from tests.unit.slices import Fleet

HOST = HostName("compute1")
MINE, OTHERS = "1", "2"


def group(id_: str, project: str = "shop", called: str | None = "db") -> FoundGroup:
    name = f"db-{id_}" if called else id_
    return FoundGroup(
        name=GroupName(name), called=GroupName(called) if called else None, project=ProjectName(project)
    )


def vm(name: str, of: FoundGroup | None, project: str = "shop") -> FoundMachine:
    return FoundMachine(
        vm_id=MachineId(f"id-{name}"),
        name=MachineName(name),
        host=HOST,
        running=True,
        group=None if of is None else of.name,
        project=ProjectName(project),
    )


def imported(fleet: Fleet, *machines: FoundMachine, groups: tuple[FoundGroup, ...]) -> dict[str, str]:
    """Import what was found; return the groups that machines are in then."""
    found = FoundFleet(machines=machines, groups=groups, hosts=(FoundHost(name=HOST),))
    fleet.turn()
    part = importing.plan(fleet.draft, found, ImportTerms(source="openstack")).part
    applying.apply(fleet.draft, part, by="test")
    fleet.turn()
    return {each.name: each.group for each in fleet.draft.machines.values()}


MY_GROUP, THEIR_GROUP = group(MINE), group(OTHERS, "rival")
WEB, THEIRS = vm("web", MY_GROUP), vm("theirs", THEIR_GROUP, "rival")


def test_a_group_is_called_as_its_source_calls_it() -> None:
    assert imported(Fleet(), WEB, groups=(MY_GROUP,)) == {"web": "db"}


def test_groups_of_one_name_that_are_new_are_told_apart() -> None:
    both = imported(Fleet(), WEB, THEIRS, groups=(MY_GROUP, THEIR_GROUP))
    assert both == {"web": "db-1", "theirs": "db-2"}


def test_nobody_renames_anothers_group_by_making_one_of_the_same_name() -> None:
    fleet = Fleet()
    imported(fleet, WEB, groups=(MY_GROUP,))
    both = imported(fleet, WEB, THEIRS, groups=(MY_GROUP, THEIR_GROUP))
    assert both == {"web": "db", "theirs": "db-2"}


def test_nobody_renames_anothers_group_by_removing_one_of_the_same_name() -> None:
    fleet = Fleet()
    imported(fleet, WEB, THEIRS, groups=(MY_GROUP, THEIR_GROUP))
    assert imported(fleet, WEB, groups=(MY_GROUP,)) == {"web": "db-1"}


def test_of_two_groups_in_one_project_the_one_whose_machines_are_there_keeps_the_name() -> None:
    fleet, second = Fleet(), group(OTHERS)
    imported(fleet, WEB, groups=(MY_GROUP,))
    more = vm("more", second)
    assert imported(fleet, more, WEB, groups=(second, MY_GROUP)) == {"web": "db", "more": "db-2"}


def test_a_group_whose_servers_are_all_new_is_called_as_before_in_its_project() -> None:
    fleet, second = Fleet(), group(OTHERS)
    imported(fleet, WEB, groups=(MY_GROUP,))
    new = vm("new", second)
    after = imported(fleet, new, groups=(second,))  # all servers of the group were made anew
    assert after["new"] == "db"


def test_servers_do_not_get_into_a_group_of_another_project_that_is_called_so() -> None:
    fleet = Fleet()
    named_so = FoundGroup(name=GroupName("db"), project=ProjectName("rival"))
    imported(fleet, vm("theirs", named_so, "rival"), groups=(named_so,))
    after = imported(fleet, vm("theirs", named_so, "rival"), WEB, groups=(named_so, MY_GROUP))
    assert after == {"theirs": "db", "web": "db-1"}


def test_a_name_that_machines_alone_use_does_not_make_a_group_of_another_project() -> None:
    named_so = FoundGroup(name=GroupName("db"), project=ProjectName("rival"))
    fleet = Fleet()
    after = imported(
        fleet, vm("theirs", named_so, "rival"), WEB, vm("alone", None), groups=(named_so, MY_GROUP)
    )
    assert after["web"] == "db"
    assert after["theirs"] not in ("db", "db-1")
    assert fleet.draft.groups[GroupName("db")].project == "shop"


def test_importing_twice_changes_no_name() -> None:
    fleet = Fleet()
    first = imported(fleet, WEB, THEIRS, groups=(MY_GROUP, THEIR_GROUP))
    assert imported(fleet, WEB, THEIRS, groups=(MY_GROUP, THEIR_GROUP)) == first
