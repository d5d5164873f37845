"""Due times in every store."""

from dataclasses import replace
from datetime import datetime

from forewarn.core.basic_types import GroupName, OrderId
from forewarn.core.model.clock_slew import Absence
from forewarn.core.model.constraints import Waiting
from forewarn.store.store import Store
from tests.contract.samples import NOW, SECOND, event, group, host, order, order_id, save
from tests.helpers.database.transactions import writing


def due(store: Store, now: datetime = NOW, limit: int = 10) -> list[OrderId]:
    with store.read() as snapshot:
        return list(snapshot.due.orders(now, limit=limit))


def test_due_orders_are_sorted_by_due_time(store: Store) -> None:
    save(
        store,
        orders=(
            order(1, due_at=NOW),
            order(2, due_at=NOW - SECOND),
            order(3, due_at=NOW + SECOND),
            order(4),
            order(5, due_at=NOW - SECOND),
        ),
    )
    assert due(store) == [order_id(2), order_id(5), order_id(1)]
    assert due(store, limit=1) == [order_id(2)]


def test_due_orders_of_one_time_are_sorted_by_announcement(store: Store) -> None:
    save(
        store,
        orders=(
            order(1, due_at=NOW - SECOND),
            order(2, due_at=NOW, announced_at=NOW - SECOND),
            order(3, due_at=NOW, announced_at=NOW - 2 * SECOND),
        ),
    )
    assert due(store) == [order_id(3), order_id(2), order_id(1)]


def test_the_next_order_due_is_known(store: Store) -> None:
    with store.read() as snapshot:
        assert snapshot.due.moments(after=NOW).order is None
    save(store, orders=(order(1, due_at=NOW + SECOND), order(2, due_at=NOW), order(3)))
    with store.read() as snapshot:
        assert snapshot.due.moments(after=NOW).order == NOW


def test_a_past_order_is_never_due(store: Store) -> None:
    save(store, orders=(order(1, due_at=NOW),))
    save(store, orders=(order(1, due_at=NOW, ended_at=NOW),))
    assert due(store) == []
    with store.read() as snapshot:
        assert snapshot.due.moments(after=NOW).order is None


def test_orders_that_wait_for_a_group_wake_when_it_is_free(store: Store) -> None:
    web, db = (Waiting(what="it", reason="busy", group=GroupName(name)) for name in ("web", "db"))
    save(
        store,
        orders=(
            order(1, waiting=(web,)),
            order(2, waiting=(db, web), due_at=NOW + 60 * SECOND),
            order(3, waiting=(db,)),
            order(4, waiting=(Waiting(what="it", reason="other"),)),
            order(5, waiting=(web,), ended_at=NOW),
        ),
    )
    save(store, relieved_groups=frozenset({GroupName("web")}))
    assert due(store) == [order_id(1), order_id(2)]


def test_an_order_that_begins_to_wait_in_the_same_change_wakes(store: Store) -> None:
    web = Waiting(what="it", reason="busy", group=GroupName("web"))
    save(store, orders=(order(1, waiting=(web,)),), relieved_groups=frozenset({GroupName("web")}))
    assert due(store) == [order_id(1)]


def test_an_order_that_no_longer_waits_does_not_wake(store: Store) -> None:
    waiting = order(1, waiting=(Waiting(what="it", reason="busy", group=GroupName("web")),))
    save(store, orders=(waiting,))
    save(store, orders=(replace(waiting, waiting=()),))
    save(store, relieved_groups=frozenset({GroupName("web")}))
    assert due(store) == []


def test_a_due_order_keeps_its_place(store: Store) -> None:
    web = Waiting(what="it", reason="busy", group=GroupName("web"))
    save(store, orders=(order(1, due_at=NOW - SECOND), order(2, waiting=(web,), due_at=NOW - 2 * SECOND)))
    save(store, relieved_groups=frozenset({GroupName("web")}))
    assert due(store) == [order_id(2), order_id(1)]


def test_open_orders_on_a_host_wake_when_it_gets_a_machine(store: Store) -> None:
    there = host("host-1").name
    save(store, orders=(order(1, host=there), order(2), order(3, host=there, ended_at=NOW)))
    save(store, hosts_to_recheck=frozenset({there}))
    assert due(store) == [order_id(1)]


def test_the_next_group_to_become_ready_is_known(store: Store) -> None:
    save(store, groups=(group("a", ready_at=NOW), group("b", ready_at=NOW + SECOND), group("c")))
    with store.read() as snapshot:
        assert snapshot.due.moments(after=NOW - SECOND).ready == NOW
        assert snapshot.due.moments(after=NOW).ready == NOW + SECOND
        assert snapshot.due.moments(after=NOW + SECOND).ready is None


def test_events_do_not_make_orders_due(store: Store) -> None:
    save(store, orders=(order(1),), events=(event(1),))
    assert due(store) == []


def test_the_times_with_and_without_a_server_are_saved(store: Store) -> None:
    absences = (
        Absence(since=NOW - 90 * SECOND, until=NOW - 20 * SECOND),
        Absence(since=NOW - 10 * SECOND, until=NOW),
    )
    with store.read() as snapshot:
        assert (snapshot.time.present_at(), snapshot.time.absences()) == (None, ())
    with writing(store) as tx:
        tx.time.set_present(NOW)
        tx.time.set_absences(absences)
    save(store, now=NOW + SECOND, hosts=(host("host-1"),))  # perhaps by another program
    with store.read() as snapshot:
        assert (snapshot.time.present_at(), snapshot.time.absences()) == (NOW, absences)
        assert snapshot.time.reached() == NOW + SECOND
