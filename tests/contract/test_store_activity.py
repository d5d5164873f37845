"""The last polls of groups and machines: saved separately, and removed with their group or machine."""

from dataclasses import replace
from datetime import datetime

from sqlalchemy import func, select

from forewarn.core.basic_types import GroupName, MachineState
from forewarn.core.feed import Delta
from forewarn.core.model.changes import Changes
from forewarn.store import tables
from forewarn.store.opening.database import parse_database
from forewarn.store.opening.engines import create_engines
from forewarn.store.store import Store
from tests.contract.samples import (
    NOW,
    SECOND,
    group,
    host,
    machine,
    machine_id,
    save,
    save_fleet,
)
from tests.helpers.database.transactions import holding, writing

A, B, C = GroupName("a"), GroupName("b"), GroupName("c")


def oldest(store: Store) -> datetime | None:
    with store.read() as snapshot:
        return snapshot.due.moments(after=NOW).oldest_activity


def idle(store: Store, *, since: datetime, limit: int = 10) -> list[GroupName]:
    with store.read() as snapshot:
        return [found.name for found in snapshot.due.idle_groups(since=since, limit=limit)]


def test_enabled_groups_are_idle_since_their_last_activity(store: Store) -> None:
    began = NOW - 9 * SECOND
    never = group("b", enabled_at=NOW - 6 * SECOND)
    save(store, groups=(group("a", enabled_at=began), never, group("c", enabled_at=began), group("d")))
    store.save_activity({A: NOW - 5 * SECOND, C: NOW, GroupName("d"): NOW - 8 * SECOND}, {})
    assert idle(store, since=NOW - 5 * SECOND) == [B, A]
    assert idle(store, since=NOW - 5 * SECOND, limit=1) == [B]
    assert oldest(store) == NOW - 6 * SECOND
    with store.read() as snapshot:
        assert snapshot.due.idle_groups(since=NOW - 6 * SECOND, limit=1) == [never]


def test_without_enabled_groups_none_is_silent(store: Store) -> None:
    save(store, groups=(group("d"),))
    store.save_activity({GroupName("d"): NOW}, {})
    assert oldest(store) is None


def test_activity_is_saved_unless_it_is_older(store: Store) -> None:
    save(store, groups=(group("a", enabled_at=NOW),))
    for at in (NOW + SECOND, NOW - SECOND):
        store.save_activity({A: at, GroupName("gone"): at}, {})
    assert oldest(store) == NOW + SECOND


def test_no_activity_changes_nothing(store: Store) -> None:
    store.save_activity({}, {})
    assert oldest(store) is None


def test_a_group_that_is_saved_again_stays_as_active_as_it_was(store: Store) -> None:
    enabled = group("a", enabled_at=NOW)
    save(store, groups=(enabled,))
    store.save_activity({A: NOW + SECOND}, {})
    save(store, groups=(replace(enabled, incarnation=7),))
    assert oldest(store) == NOW + SECOND


def test_a_disabled_or_removed_group_is_not_silent(store: Store) -> None:
    off, gone = group("a", enabled_at=NOW), group("b", enabled_at=NOW)
    save(store, groups=(off, gone))
    save(store, groups=(replace(off, enabled_at=None),), removed_groups=(gone.name,))
    store.save_activity({A: NOW + SECOND, B: NOW + SECOND}, {})
    assert oldest(store) is None
    save(store, groups=(replace(off, enabled_at=NOW + 2 * SECOND),))
    assert oldest(store) == NOW + 2 * SECOND


def test_a_group_enabled_and_disabled_in_one_transaction_is_not_silent(store: Store) -> None:
    off = group("a")
    save(store, groups=(off,))
    with writing(store) as tx:
        tx.rules.everything()
        tx.changes.save(Changes(now=NOW, groups=(replace(off, enabled_at=NOW),)))
        tx.changes.save(Changes(now=NOW, groups=(off,)))
    assert oldest(store) is None


def test_machines_are_last_seen_at_the_newest_time(store: Store) -> None:
    seen, unseen = machine_id("web-0"), machine_id("web-1")
    save_fleet(store, [machine("web-0"), machine("web-1")])
    for at in (NOW, NOW - SECOND):
        store.save_activity({}, {seen: at, machine_id("gone"): at})
    save(store, machines=(machine("web-0", state=MachineState.FROZEN),))
    with store.read() as snapshot:
        assert snapshot.fleet.last_seen([seen, unseen, machine_id("gone")]) == {seen: NOW}
        assert snapshot.fleet.last_seen([]) == {}
        assert list(snapshot.rollouts.machines_never_seen([host("host-1").name])) == [unseen]


def test_a_machine_that_is_added_again_was_not_seen(store: Store) -> None:
    seen = machine_id("web-0")
    save_fleet(store, [machine("web-0")])
    store.save_activity({}, {seen: NOW})
    save(store, removed_machines=(seen,))
    store.save_activity({}, {seen: NOW + SECOND})
    save(store, machines=(machine("web-0"),))
    with store.read() as snapshot:
        assert snapshot.fleet.last_seen([seen]) == {}


def test_activity_takes_no_change_number(store: Store) -> None:
    number = save_fleet(store, [machine("web-0")])
    store.save_activity({GroupName("web"): NOW}, {machine_id("web-0"): NOW})
    with store.read() as snapshot:
        assert snapshot.feed.since(number) == Delta(number=number, events={})


def test_activity_is_saved_during_another_transaction(store_at_url: Store, url: str) -> None:
    if url.startswith("sqlite"):
        return  # it serializes all writers
    save_fleet(store_at_url, [machine("web-0")])
    with holding(store_at_url):
        engines = create_engines(parse_database(url))
        other = Store(parse_database(url), engines)
        other.save_activity({}, {machine_id("web-0"): NOW})
        with engines.reading.connect() as connection:
            count = connection.scalar(select(func.count()).select_from(tables.machine_activity))
        other.close()
    assert count == 1
