"""Basic behaviour of every store: saving, finding, counting and keeping values."""

import threading
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import update

from forewarn.core.basic_types import (
    DEFAULT_PROJECT,
    EventStatus,
    GroupName,
    HostState,
    MachineName,
    MachineState,
    OrderState,
    ProjectName,
    Source,
)
from forewarn.core.errors import Conflict, NotFound
from forewarn.core.filters import HistoryFilter
from forewarn.core.model.changes import Changes
from forewarn.core.model.constraints import Grace
from forewarn.core.model.project import Project
from forewarn.store import tables
from forewarn.store.store import Store
from tests.contract.samples import (
    NOW,
    SECOND,
    event,
    event_id,
    everything,
    group,
    host,
    machine,
    machine_id,
    order,
    order_id,
    record,
    save,
    save_fleet,
)
from tests.helpers.database.transactions import writing

ELSEWHERE = ProjectName("elsewhere")


def test_a_new_store_is_empty(store: Store) -> None:
    with store.read() as snapshot:
        assert snapshot.rules.everything().machines == {}
        assert snapshot.time.reached() is None
        assert snapshot.time.grace() is None
        assert snapshot.fleet_file.applied() is None
        assert snapshot.feed.lineage() == "LINEAGE"


def test_a_block_that_raises_saves_nothing(store: Store) -> None:
    def save_and_fail() -> None:
        with writing(store) as tx:
            tx.changes.save(Changes(now=NOW, groups=(group(),), records=(record(1),)))
            tx.fleet_file.set_applied("digest")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        save_and_fail()
    with store.read() as snapshot:
        assert snapshot.fleet.group(GroupName("web")) is None
        assert snapshot.fleet_file.applied() is None
        assert snapshot.rules.everything().number == 0


def test_a_snapshot_does_not_see_what_is_saved_after_it_was_opened(store: Store) -> None:
    save_fleet(store)
    with store.read() as before:
        assert len(before.fleet.projects()) == 1
        save(store, projects=(Project(name=ELSEWHERE),))
        assert len(before.fleet.projects()) == 1
    with store.read() as after:
        assert len(after.fleet.projects()) == 2


def test_a_transaction_sees_what_it_has_saved(store: Store) -> None:
    with writing(store) as tx:
        tx.changes.save(Changes(now=NOW, groups=(group(),), records=(record(1),)))
        assert tx.fleet.group(GroupName("web")) == group()
        assert tx.rules.everything().number == 1


def test_writers_are_serialized(store: Store) -> None:
    def write_some() -> None:
        for _ in range(10):
            with writing(store) as tx:
                number = tx.rules.everything().number + 1
                tx.changes.save(Changes(now=NOW, records=(record(number),)))

    writers = [threading.Thread(target=write_some) for _ in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    with store.read() as snapshot:
        assert [line.number for line in snapshot.records.history(HistoryFilter())] == list(range(30, 0, -1))


# Machines, groups, hosts


def test_a_machine_is_found_by_its_name_in_any_case(store: Store) -> None:
    save_fleet(store, [machine("Web-0")])
    with store.read() as snapshot:
        assert snapshot.fleet.machine("wEB-0", project=None) == machine("Web-0")
        assert snapshot.fleet.machine("web-0", project=DEFAULT_PROJECT) == machine("Web-0")


def test_the_error_names_an_unknown_machine(store: Store) -> None:
    with store.read() as snapshot, pytest.raises(NotFound, match=r'^machine "web-9" does not exist$'):
        snapshot.fleet.machine("web-9", project=None)


def test_a_machine_of_another_project_is_not_found(store: Store) -> None:
    save_fleet(store, [machine("web-0")])
    with store.read() as snapshot, pytest.raises(NotFound):
        snapshot.fleet.machine("web-0", project=ELSEWHERE)


def test_a_name_in_several_projects_needs_the_project(store: Store) -> None:
    other = machine("web-0", id=machine_id("other"), project=ELSEWHERE)
    save_fleet(store, [machine("web-0"), other])
    with store.read() as snapshot:
        assert snapshot.fleet.machine("WEB-0", project=ELSEWHERE) == other
        with pytest.raises(Conflict, match="default, elsewhere"):
            snapshot.fleet.machine("web-0", project=None)


def test_a_machine_is_found_by_its_id(store: Store) -> None:
    save_fleet(store, [machine("web-0")])
    with store.read() as snapshot:
        assert snapshot.rules.machine_by_id(machine_id("web-0")) == machine("web-0")
        assert snapshot.rules.machine_by_id(machine_id("web-1")) is None


def test_groups_and_hosts_are_found_by_name(store: Store) -> None:
    save_fleet(store)
    with store.read() as snapshot:
        assert snapshot.fleet.group(GroupName("web")) == group()
        assert snapshot.fleet.group(GroupName("db")) is None
        assert snapshot.fleet.host(host("host-1").name) == host("host-1")
        assert snapshot.fleet.host(host("host-2").name) is None


def test_projects_are_listed_by_name(store: Store) -> None:
    save(store, projects=(Project(name=ELSEWHERE), Project(name=DEFAULT_PROJECT)))
    with store.read() as snapshot:
        assert [project.name for project in snapshot.fleet.projects()] == ["default", "elsewhere"]


@pytest.mark.parametrize(
    ("clash", "message"),
    [
        ({"name": "WEB-0"}, "name"),
        ({"address": "10.0.0.1"}, "address"),
        ({"port": 8301}, "port"),
    ],
)
def test_the_name_or_address_of_another_machine_is_refused(
    store: Store, clash: dict[str, object], message: str
) -> None:
    save_fleet(store, [machine("web-0", address="10.0.0.1", port=8301)])
    with pytest.raises(Conflict, match=f"another machine .*{message}"):
        save(store, machines=(replace(machine("web-1"), **clash),))  # type: ignore[arg-type]
    assert len(everything(store).machines) == 1


def test_an_address_may_be_used_again_in_another_network(store: Store) -> None:
    save_fleet(store, [machine("web-0", address="10.0.0.1", network="blue")])
    save(store, machines=(machine("web-1", address="10.0.0.1", network="red"),))
    assert len(everything(store).machines) == 2


def test_machines_may_swap_names_addresses_and_ports(store: Store) -> None:
    one = machine("web-0", address="10.0.0.1", port=8301)
    two = machine("web-1", address="10.0.0.2", port=8302)
    save_fleet(store, [one, two])
    swapped = (
        replace(one, name=two.name, address=two.address, port=two.port),
        replace(two, name=one.name, address=one.address, port=one.port),
    )
    save(store, machines=swapped)
    assert everything(store).machines == {each.id: each for each in swapped}


def test_a_new_machine_may_take_the_place_of_a_removed_one(store: Store) -> None:
    old = machine("web-0", address="10.0.0.1", port=8301)
    save_fleet(store, [old])
    new = replace(old, id=machine_id("new"))
    save(store, machines=(new,), removed_machines=(old.id,))
    assert everything(store).machines == {new.id: new}


def test_removed_values_are_gone(store: Store) -> None:
    save_fleet(store, [machine("web-0")])
    save(
        store,
        removed_machines=(machine_id("web-0"),),
        removed_groups=(GroupName("web"),),
        removed_hosts=(host("host-1").name,),
        removed_projects=(DEFAULT_PROJECT,),
    )
    left = everything(store)
    assert (left.machines, left.groups, left.hosts, left.projects) == ({}, {}, {}, {})


def test_a_group_that_was_not_loaded_cannot_be_replaced(store: Store) -> None:
    save_fleet(store)
    with pytest.raises(Conflict), writing(store) as tx:
        tx.changes.save(Changes(now=NOW, groups=(group(incarnation=7),)))
    assert everything(store).groups == {"web": group()}


@pytest.mark.parametrize("removed", [False, True])
def test_a_group_that_changed_since_it_was_loaded_is_not_overwritten(store: Store, removed: bool) -> None:
    save_fleet(store)
    change: Any = {"removed_groups": (GroupName("web"),)} if removed else {"groups": (group(incarnation=7),)}
    with writing(store) as tx:
        tx.rules.everything()
        tx.transaction.connection.execute(update(tables.groups).values(version=tables.groups.c.version + 1))
        with pytest.raises(Conflict, match='another call changed group "web"'):
            tx.changes.save(Changes(now=NOW, **change))
    assert everything(store).groups == {"web": group()}


def test_a_group_can_be_saved_twice_in_a_transaction(store: Store) -> None:
    save_fleet(store)
    with writing(store) as tx:
        tx.rules.everything()
        tx.changes.save(Changes(now=NOW, groups=(group(incarnation=2),)))
        tx.changes.save(Changes(now=NOW, groups=(group(incarnation=3),)))
    assert everything(store).groups[GroupName("web")].incarnation == 3


def test_a_decision_on_an_outdated_state_is_refused(store: Store) -> None:
    save_fleet(store)
    older = everything(store).number
    save(store, machines=(machine("web-0"),))
    with pytest.raises(Conflict, match="meanwhile"), writing(store) as tx:
        tx.changes.save(Changes(now=NOW, as_of=older, hosts=(host("host-1", state=HostState.FAILED),)))


def test_each_record_number_is_used_once(store: Store) -> None:
    save(store, records=(record(1),))
    with pytest.raises(Conflict), writing(store) as tx:
        tx.changes.save(Changes(now=NOW, records=(record(1),)))


# Orders and events


def test_orders_are_found_by_id_in_any_case(store: Store) -> None:
    save(store, orders=(order(1), order(2, ended_at=NOW, state=OrderState.DONE)))
    with store.read() as snapshot:
        assert snapshot.work.order(order_id(1)) == order(1)
        found = snapshot.work.order(order_id(2).lower())  # type: ignore[arg-type]
        assert found is not None
        assert found.id == order_id(2)
        assert snapshot.work.order(order_id(3)) is None


def test_events_are_found_by_id_in_any_case(store: Store) -> None:
    over = event(2, ended_at=NOW, why="done")
    save(store, events=(event(1), over))
    with store.read() as snapshot:
        assert snapshot.work.event(event_id(1)) == event(1)
        assert snapshot.work.event(event_id(2).lower()) == over  # type: ignore[arg-type]
        assert snapshot.work.event(event_id(3)) is None


def test_an_order_lists_all_its_events_by_creation(store: Store) -> None:
    over = event(2, ended_at=NOW)
    save(store, events=(event(3), over, event(4, order=order_id(9))))
    with store.read() as snapshot:
        assert snapshot.work.events_of_order(order_id(1)) == [over, event(3)]


def test_a_query_for_a_group_finds_only_its_own_events(store: Store) -> None:
    over = event(2, ended_at=NOW)
    save(store, events=(event(1), over, event(3, group=GroupName("db")), event(4)))
    wanted = [event_id(number).lower() for number in (1, 2, 3, 9)]
    with store.read() as snapshot:
        assert snapshot.rules.events_of_group(GroupName("web"), wanted) == [event(1), over]  # type: ignore[arg-type]
        assert snapshot.rules.events_of_group(GroupName("web"), []) == []


def test_only_users_orders_that_have_not_started_count_as_scheduled(store: Store) -> None:
    save(
        store,
        orders=(
            order(1),
            order(2, state=OrderState.ANNOUNCED),
            order(3, state=OrderState.STARTED),
            order(4, source=Source.PLATFORM),
            order(5, project=ELSEWHERE),
            order(6, ended_at=NOW, state=OrderState.CANCELLED),
        ),
    )
    with store.read() as snapshot:
        assert snapshot.work.scheduled_user_orders(DEFAULT_PROJECT) == 2


def test_counts_by_state_cover_the_present_values(store: Store) -> None:
    save_fleet(store, [machine("web-0"), machine("web-1", state=MachineState.FROZEN)])
    save(
        store,
        orders=(order(1), order(2), order(3, ended_at=NOW, state=OrderState.DONE)),
        events=(event(1), event(2, status=EventStatus.STARTED), event(3, ended_at=NOW)),
    )
    with store.read() as snapshot:
        counts = snapshot.metrics.counts()
    assert counts["machines"] == {"running": 1, "frozen": 1, "restarting": 0, "moving": 0, "stopped": 0}
    assert counts["hosts"] == {"ok": 1, "cordoned": 0, "degraded": 0, "failed": 0, "lost": 0}
    assert counts["orders"] == {"queued": 2, "announced": 0, "started": 0, "failed": 0}
    assert counts["events"] == {"Scheduled": 1, "Started": 1}


# History and settings


def test_history_is_newest_first_and_can_be_narrowed(store: Store) -> None:
    lines = (
        record(1, machine=MachineName("Web-0"), project=DEFAULT_PROJECT),
        record(2, event=event_id(1), order=order_id(1), at=NOW + SECOND),
        record(3, order=order_id(2), project=ELSEWHERE, by="me", reason="because", at=NOW + SECOND),
        record(4, group=GroupName("web"), host=host("host-1").name, at=NOW + 2 * SECOND),
    )
    save(store, records=lines)

    def numbers(**wanted: object) -> list[int]:
        with store.read() as snapshot:
            found = snapshot.records.history(HistoryFilter(**wanted))  # type: ignore[arg-type]
        assert set(found) <= set(lines)
        return [line.number for line in found]

    assert numbers() == [4, 3, 2, 1]
    assert numbers(limit=2) == [4, 3]
    assert numbers(below=3) == [2, 1]
    assert numbers(machine="wEB-0") == [1]
    assert numbers(event=event_id(1).lower()) == [2]
    assert numbers(order=order_id(2).lower()) == [3]
    assert numbers(project=ELSEWHERE) == [3]
    assert numbers(since=NOW + SECOND) == [4, 3, 2]
    assert numbers(since=NOW + SECOND, order=order_id(1)) == [2]
    assert numbers(since=NOW + 3 * SECOND) == []


def test_the_reached_time_never_goes_back(store: Store) -> None:
    with writing(store) as tx:
        tx.time.set_reached(NOW)
        tx.time.set_reached(NOW - SECOND)
    save(store, now=NOW - 2 * SECOND, records=(record(1),))
    with store.read() as snapshot:
        assert snapshot.time.reached() == NOW
    save(store, now=NOW + SECOND, records=(record(2),))
    with store.read() as snapshot:
        assert snapshot.time.reached() == NOW + SECOND


def test_a_hold_is_kept_until_it_is_cleared(store: Store) -> None:
    grace = Grace(until=NOW + SECOND, announced_before=NOW)
    with writing(store) as tx:
        tx.time.set_grace(grace)
    save(store)
    with store.read() as snapshot:
        assert snapshot.time.grace() == grace
        assert snapshot.rules.around().grace == grace
        assert snapshot.rules.everything().grace == grace
    with writing(store) as tx:
        tx.time.set_grace(None)
    with store.read() as snapshot:
        assert snapshot.time.grace() is None


def test_the_digest_of_the_fleet_is_kept(store: Store) -> None:
    with writing(store) as tx:
        tx.fleet_file.set_applied("digest")
    with store.read() as snapshot:
        assert snapshot.fleet_file.applied() == "digest"


def test_a_naive_time_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="no time zone"), writing(store) as tx:
        tx.time.set_reached(datetime(2026, 3, 1))  # noqa: DTZ001


def test_times_come_back_in_utc(store: Store) -> None:
    there = NOW.astimezone(timezone(timedelta(hours=2)))
    with writing(store) as tx:
        tx.time.set_reached(there)
    with store.read() as snapshot:
        reached = snapshot.time.reached()
    assert reached is not None
    assert (reached, reached.utcoffset()) == (NOW, timedelta(0))
