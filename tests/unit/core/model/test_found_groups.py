"""Groups of the same name in a source: each keeps its present name in forewarn."""

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
    """Import a fleet; return the group of each machine afterwards."""
    found = FoundFleet(machines=machines, groups=groups, hosts=(FoundHost(name=HOST),))
    fleet.turn()
    part = importing.plan(fleet.draft, found, ImportTerms(source="openstack")).part
    applying.apply(fleet.draft, part, by="test")
    fleet.turn()
    return {each.name: each.group for each in fleet.draft.machines.values()}


MY_GROUP, THEIR_GROUP = group(MINE), group(OTHERS, "rival")
WEB, THEIRS = vm("web", MY_GROUP), vm("theirs", THEIR_GROUP, "rival")


def test_a_group_gets_its_name_in_the_source() -> None:
    assert imported(Fleet(), WEB, groups=(MY_GROUP,)) == {"web": "db"}


def test_new_groups_of_the_same_name_get_unique_names() -> None:
    both = imported(Fleet(), WEB, THEIRS, groups=(MY_GROUP, THEIR_GROUP))
    assert both == {"web": "db-1", "theirs": "db-2"}


def test_creating_a_group_of_the_same_name_renames_no_other_group() -> None:
    fleet = Fleet()
    imported(fleet, WEB, groups=(MY_GROUP,))
    both = imported(fleet, WEB, THEIRS, groups=(MY_GROUP, THEIR_GROUP))
    assert both == {"web": "db", "theirs": "db-2"}


def test_removing_a_group_of_the_same_name_renames_no_other_group() -> None:
    fleet = Fleet()
    imported(fleet, WEB, THEIRS, groups=(MY_GROUP, THEIR_GROUP))
    assert imported(fleet, WEB, groups=(MY_GROUP,)) == {"web": "db-1"}


def test_among_groups_of_one_project_the_one_with_known_machines_keeps_the_name() -> None:
    fleet, second = Fleet(), group(OTHERS)
    imported(fleet, WEB, groups=(MY_GROUP,))
    more = vm("more", second)
    assert imported(fleet, more, WEB, groups=(second, MY_GROUP)) == {"web": "db", "more": "db-2"}


def test_a_group_with_new_servers_only_keeps_its_name_in_its_project() -> None:
    fleet, second = Fleet(), group(OTHERS)
    imported(fleet, WEB, groups=(MY_GROUP,))
    new = vm("new", second)
    after = imported(fleet, new, groups=(second,))  # all servers of the group were recreated
    assert after["new"] == "db"


def test_servers_do_not_join_another_projects_group_of_the_same_name() -> None:
    fleet = Fleet()
    named_so = FoundGroup(name=GroupName("db"), project=ProjectName("rival"))
    imported(fleet, vm("theirs", named_so, "rival"), groups=(named_so,))
    after = imported(fleet, vm("theirs", named_so, "rival"), WEB, groups=(named_so, MY_GROUP))
    assert after == {"theirs": "db", "web": "db-1"}


def test_a_group_that_only_machines_name_is_not_created_for_another_project() -> None:
    named_so = FoundGroup(name=GroupName("db"), project=ProjectName("rival"))
    fleet = Fleet()
    after = imported(
        fleet, vm("theirs", named_so, "rival"), WEB, vm("alone", None), groups=(named_so, MY_GROUP)
    )
    assert after["web"] == "db"
    assert after["theirs"] not in ("db", "db-1")
    assert fleet.draft.groups[GroupName("db")].project == "shop"


def test_importing_again_changes_no_name() -> None:
    fleet = Fleet()
    first = imported(fleet, WEB, THEIRS, groups=(MY_GROUP, THEIR_GROUP))
    assert imported(fleet, WEB, THEIRS, groups=(MY_GROUP, THEIR_GROUP)) == first
