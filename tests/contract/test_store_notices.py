"""When machines first received events, on both databases."""

from datetime import timedelta
from typing import Any

import pytest

from forewarn.core.basic_types import Kind, ProjectName
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.record import MonthlyPromises
from forewarn.core.scope import Scope
from forewarn.store.store import Store
from tests.contract.samples import NOW, event, event_id, machine_id, order, record, save, save_fleet
from tests.helpers.database.transactions import writing

ONE, TWO = machine_id("web-0"), machine_id("web-1")
LATER = NOW + timedelta(minutes=1)


def test_notices_are_found_by_their_event(store: Store) -> None:
    with writing(store) as tx:
        tx.changes.save_notices({event_id(1): {ONE: NOW, TWO: LATER}, event_id(2): {ONE: LATER}})
    with store.read() as snapshot:
        assert snapshot.work.notices([event_id(1)]) == {event_id(1): {ONE: NOW, TWO: LATER}}
        assert snapshot.work.notices([]) == {}


def test_the_first_time_is_kept(store: Store) -> None:
    for sent in ({ONE: NOW}, {ONE: LATER, TWO: LATER}):
        with writing(store) as tx:
            tx.changes.save_notices({event_id(1): sent})
    with store.read() as snapshot:
        assert snapshot.work.notices([event_id(1)]) == {event_id(1): {ONE: NOW, TWO: LATER}}


def test_ids_are_case_insensitive(store: Store) -> None:
    with writing(store) as tx:
        tx.changes.save_notices({event_id(1).lower(): {ONE.upper(): NOW}})  # type: ignore[dict-item]
    with store.read() as snapshot:
        assert snapshot.work.notices([event_id(1).lower()]) == {event_id(1): {ONE: NOW}}  # type: ignore[list-item]


def test_when_events_were_deferred_is_found_by_their_records(store: Store) -> None:
    moved = (
        record(1, kind=Kind.EVENT_DEFERRED, event=event_id(1)),
        record(2, kind=Kind.EVENT_STARTED, event=event_id(1)),
        record(3, kind=Kind.EVENT_DEFERRED, event=event_id(2)),
        record(4, kind=Kind.EVENT_DEFERRED, event=event_id(1), at=LATER),
    )
    save(store, records=moved)
    with store.read() as snapshot:
        assert snapshot.work.deferrals([event_id(1), event_id(3)]) == {event_id(1): [NOW, LATER]}


def test_no_notices_save_nothing(store: Store) -> None:
    with writing(store) as tx:
        tx.changes.save_notices({})
    with store.read() as snapshot:
        assert snapshot.work.notices([event_id(1)]) == {}


def test_a_slice_has_the_notices_of_its_events(store: Store) -> None:
    save_fleet(store)
    save(store, orders=(order(1),), events=(event(2),))
    with writing(store) as tx:
        tx.changes.save_notices({event_id(2): {ONE: NOW}, event_id(9): {ONE: NOW}})
        around = tx.rules.around(orders=[order(1).id])
        assert dict(around.sent) == {event_id(2): {ONE: NOW}}


def test_orders_that_wait_for_a_person_are_counted(store: Store) -> None:
    said = Waiting(what='"stuck": true', reason='says "stuck": true')
    stuck = Waiting(what="web", reason="never", stuck=True)
    save(
        store,
        orders=(
            order(1, waiting=(said,)),
            order(2, waiting=(said, stuck)),
            order(3, waiting=(stuck,), ended_at=NOW),
        ),
    )
    with store.read() as snapshot:
        assert snapshot.metrics.stuck_orders() == 1


def month(project: str, month: str, **counts: Any) -> MonthlyPromises:
    more = {"simulated": False} | counts
    return MonthlyPromises(project=ProjectName(project), month=month, **more)


def test_promises_add_up_by_project_month_and_whether_they_were_simulated(store: Store) -> None:
    save(
        store, promises=(month("a", "2026-03", kept=3, late=1), month("a", "2026-03", simulated=True, kept=9))
    )
    save(store, promises=(month("a", "2026-03", never=2, kept=1), month("b", "2026-02", broken=1)))
    save(store, promises=(month("a", "2026-04", broken=2),))
    with store.read() as snapshot:
        first, more = snapshot.work.promises(after=None, limit=2)
        second, end = snapshot.work.promises(after=more, limit=2)
        (of_march, _) = snapshot.work.promises(month="2026-03", after=None, limit=9)
    assert [*first, *second] == [
        month("a", "2026-03", kept=4, late=1, never=2),
        month("a", "2026-03", simulated=True, kept=9),
        month("a", "2026-04", broken=2),
        month("b", "2026-02", broken=1),
    ]
    assert end is None
    assert of_march == [*first]
    with store.scoped(Scope(caller=ProjectName("b"))).read() as snapshot:
        assert snapshot.work.promises(after=None, limit=9)[0] == [month("b", "2026-02", broken=1)]


def test_promises_of_a_rolled_back_transaction_are_not_counted(store: Store) -> None:
    def count_and_fail() -> None:
        with writing(store) as tx:
            save(tx, promises=(month("a", "2026-03", kept=3),))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        count_and_fail()
    with store.read() as snapshot:
        assert snapshot.work.promises(after=None, limit=9) == ([], None)


def test_tallies_add_up(store: Store) -> None:
    none = dict.fromkeys(("notice-late", "notice-never", "promise-broken", "unannounced-impact"), 0)
    with store.read() as snapshot:
        assert snapshot.metrics.tallies() == none
    save(store, tallies={Kind.NOTICE_LATE: 2})
    save(store, tallies={Kind.NOTICE_LATE: 3, Kind.NOTICE_NEVER: 1})
    with store.read() as snapshot:
        assert snapshot.metrics.tallies() == {**none, "notice-late": 5, "notice-never": 1}
