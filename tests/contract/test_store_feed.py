"""The feed of every store: readers get all changes, and nothing else."""

from dataclasses import replace

import pytest

from forewarn.core.basic_types import DEFAULT_PROJECT, GroupName
from forewarn.core.feed import Delta
from forewarn.store.store import Store
from forewarn.store.writes import fleet_writes
from tests.contract.samples import (
    NOW,
    event,
    group,
    host,
    machine,
    machine_id,
    order,
    record,
    save,
    save_fleet,
)

WEB = GroupName("web")


def since(store: Store, number: int) -> Delta:
    with store.read() as snapshot:
        return snapshot.feed.since(number)


def test_the_feed_of_a_new_store_is_empty(store: Store) -> None:
    assert since(store, 0) == Delta(number=0, events={}, whole=True)


def test_a_new_reader_gets_everything(store: Store) -> None:
    number = save_fleet(store, [machine("web-0")])
    save(store, events=(event(2), event(1), event(3, ended_at=NOW)))
    assert since(store, 0) == Delta(
        number=number,
        groups=(group(),),
        events={WEB: (event(1), event(2))},
        machines=(machine("web-0"),),
        whole=True,
    )


def test_a_reader_that_is_up_to_date_gets_nothing(store: Store) -> None:
    number = save_fleet(store, [machine("web-0")])
    assert since(store, number) == Delta(number=number, events={})


def test_a_changed_group_comes_with_all_its_listed_events(store: Store) -> None:
    save(store, groups=(group(), group("db")))
    number = save(store, events=(event(1), event(2, group=GroupName("db"))))
    later = save(store, groups=(group(incarnation=2),), events=(event(3),), records=(record(number + 1),))
    assert since(store, number) == Delta(
        number=later, groups=(group(incarnation=2),), events={WEB: (event(1), event(3))}
    )


def test_a_changed_group_without_events_has_an_entry(store: Store) -> None:
    number = save_fleet(store)
    save(store, groups=(group(incarnation=2),))
    assert since(store, number).events == {WEB: ()}


def test_a_changed_machine_comes_without_its_group(store: Store) -> None:
    number = save_fleet(store, [machine("web-0"), machine("web-1")])
    moved = machine("web-0", host=None)
    later = save(store, machines=(moved,))
    assert since(store, number) == Delta(number=later, events={}, machines=(moved,))


def test_a_change_without_a_record_has_a_number_of_its_own(store: Store) -> None:
    first = save_fleet(store)
    second = save(store, groups=(group(incarnation=2),))
    third = save(store, removed_groups=(WEB,))
    assert first < second < third


def test_a_change_with_records_has_the_number_of_the_last(store: Store) -> None:
    assert save(store, groups=(group(),), records=(record(1), record(2))) == 2


def test_a_change_that_boards_do_not_need_takes_no_number(store: Store) -> None:
    number = save_fleet(store)
    assert save(store, orders=(order(1),)) == number


def test_removals_are_in_the_feed(store: Store) -> None:
    number = save_fleet(store, [machine("web-0"), machine("web-1")])
    save(store, removed_machines=(machine_id("web-0"),))
    later = save(store, removed_machines=(machine_id("web-1"),), removed_groups=(WEB,))
    assert since(store, number) == Delta(
        number=later,
        events={},
        removed_groups=(WEB,),
        removed_machines=(machine_id("web-0"), machine_id("web-1")),
    )
    assert since(store, later - 1).removed_machines == (machine_id("web-1"),)


def test_a_new_reader_gets_no_removals(store: Store) -> None:
    save_fleet(store, [machine("web-0")])
    save(store, removed_machines=(machine_id("web-0"),), removed_groups=(WEB,))
    assert since(store, 0) == Delta(number=2, events={}, whole=True)


def test_a_value_that_was_added_again_is_not_removed(store: Store) -> None:
    number = save_fleet(store, [machine("web-0")])
    save(store, removed_machines=(machine_id("web-0"),), removed_groups=(WEB,))
    save(store, groups=(group(),), machines=(machine("web-0"),))
    delta = since(store, number)
    assert (delta.groups, delta.machines) == ((group(),), (machine("web-0"),))
    assert (delta.removed_groups, delta.removed_machines) == ((), ())


# Removal of old tombstones


def remove(store: Store, name: str) -> int:
    """Add a machine with its own group, and remove both; return the number of the removal."""
    save(store, groups=(group(name),), machines=(machine(name, group=GroupName(name)),))
    return save(store, removed_machines=(machine_id(name),), removed_groups=(GroupName(name),))


def test_old_removals_are_forgotten(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_writes, "KEPT_NUMBERS", 4)
    save_fleet(store)
    first, second, third = (remove(store, name) for name in ("a", "b", "c"))
    assert first == third - 4
    assert since(store, first - 1) == replace(since(store, 0), whole=True)
    kept = since(store, first)
    assert (kept.whole, kept.removed_machines) == (False, (machine_id("b"), machine_id("c")))
    assert since(store, second).removed_groups == (GroupName("c"),)


def test_no_removal_is_forgotten_without_a_new_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_writes, "KEPT_NUMBERS", 0)
    save_fleet(store, [machine("web-0")])
    number = save(store, machines=(machine("web-0", host=None),))
    assert not since(store, number - 1).whole


def test_names_of_removed_hosts_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_writes, "KEPT_NUMBERS", 0)
    save_fleet(store, hosts=("host-1", "host-2"))
    save(store, removed_hosts=(host("host-2").name,))
    remove(store, "a")
    with store.read() as snapshot:
        assert "host-2" in snapshot.fleet.names_among(["host-2"], project=DEFAULT_PROJECT).hosts
