"""Removal of old records in every store."""

from dataclasses import replace
from datetime import timedelta

from forewarn.core.basic_types import HostName, Work
from forewarn.core.filters import HistoryFilter, RecordFilter
from forewarn.core.model.rollout import Rollout
from forewarn.core.retention import Pruning
from forewarn.store.store import Store
from tests.contract.samples import NOW, order, order_id, record, save
from tests.helpers.database.transactions import writing


def test_removed_records_are_gone_and_numbers_continue(store: Store) -> None:
    save(store, records=tuple(record(number) for number in range(1, 8)))
    with writing(store) as tx:
        tx.records.remove([1, 2, 4])
    with store.read() as snapshot:
        left = snapshot.records.following(0, RecordFilter(), limit=10).records
        assert [each.number for each in left] == [3, 5, 6, 7]
        assert snapshot.records.newest() == 7


def test_more_records_can_be_removed_than_one_statement_takes(store: Store) -> None:
    save(store, records=tuple(record(number) for number in range(1, 6002)))
    with writing(store) as tx:
        tx.records.remove(range(1, 6001))
    with store.read() as snapshot:
        assert [each.number for each in snapshot.records.history(HistoryFilter())] == [6001]


def test_the_progress_of_pruning_is_saved(store: Store) -> None:
    pruning = Pruning(up_to=5, unreported=3, next_at=NOW + timedelta(days=1))
    with store.read() as snapshot:
        assert snapshot.records.pruning() == Pruning()
    with writing(store) as tx:
        tx.records.set_pruning(pruning)
        assert tx.records.pruning() == pruning
    save(store, records=(record(1),))
    with store.read() as snapshot:
        assert snapshot.records.pruning() == pruning


def test_open_orders_differ_from_past_ones(store: Store) -> None:
    save(store, orders=(order(1), replace(order(2), ended_at=NOW)))
    with store.read() as snapshot:
        asked = [order_id(number) for number in (1, 2, 3)]
        assert snapshot.due.open_orders(asked) == {order_id(1)}
        assert snapshot.due.open_orders([]) == frozenset()


def test_open_rollouts_differ_from_past_ones(store: Store) -> None:
    def rollout(number: int) -> Rollout:
        id_ = f"BBBBBBBB-0000-4000-8000-{number:012X}"
        hosts = (HostName("host-1"),)
        return Rollout(id=id_, number=number, work=Work.FREEZE, hosts=hosts, by="test", created_at=NOW)

    save(store, rollouts=(rollout(2), rollout(1), replace(rollout(3), ended_at=NOW)))
    with store.read() as snapshot:
        assert list(snapshot.rollouts.open()) == [rollout(1), rollout(2)]


def test_history_above_a_number_is_oldest_first(store: Store) -> None:
    save(store, records=tuple(record(number) for number in range(1, 8)))
    with store.read() as snapshot:
        found = snapshot.records.history(HistoryFilter(above=2, limit=3))
        assert [each.number for each in found] == [3, 4, 5]
