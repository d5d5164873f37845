"""Prefetched reads of every store: loaded together, with the same results as separate reads."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest
from sqlalchemy import update

from forewarn.core.basic_types import GroupName, Source
from forewarn.core.errors import Conflict
from forewarn.core.model.slice import Slice
from forewarn.store import tables
from forewarn.store.batch import Transaction
from forewarn.store.prefetch import Prefetch
from forewarn.store.store import Store
from tests.contract.samples import (
    changes_on,
    event,
    everything,
    group,
    host,
    machine,
    order,
    save,
    stage,
    step,
)
from tests.contract.test_store_answers import answer, find, key_of
from tests.helpers.database.statements import counted
from tests.helpers.database.transactions import writing

NAMES = ("web-0", "web-1", "db-0")
CALLS = [Prefetch(machine=name, answer=("alice", f"key-{name}")) for name in NAMES]


@pytest.fixture
def fleet(store: Store) -> Store:
    save_three(store)
    return store


def save_three(store: Store) -> None:
    """Save three machines, one with an order."""
    machines = [
        machine("web-0", host="r1"),
        machine("web-1", host="r2"),
        machine("db-0", host="r1", group=GroupName("db")),
    ]
    save(store, hosts=[host("r1"), host("r2")], groups=[group("web"), group("db")], machines=machines)
    announce(store, "web-1", 7)


def announce(to: Store | Transaction, name: str, number: int) -> Slice:
    """Place and announce a user order on a machine; return what was loaded."""
    with writing(to) as tx:
        around = around_machine(tx, name)
        assert tx.work.scheduled_user_orders(around.machines[machine(name).id].project) >= 0
        (own,) = (
            each for each in around.groups.values() if each.name == around.machines[machine(name).id].group
        )
        tx.changes.save(
            changes_on(
                around,
                groups=[replace(own, incarnation=own.incarnation + 1)],
                orders=[
                    order(number, machine=machine(name).id, source=Source.USER, stages=(stage(step(name)),))
                ],
                events=[event(number, group=own.name)],
            )
        )
        tx.answers.save(answer(number))
    return around


def around_machine(tx: Transaction, name: str) -> Slice:
    return tx.rules.around(machines=[tx.fleet.machine(name).id])


@contextmanager
def prefetched(store: Store) -> Iterator[Transaction]:
    with store.batch() as batch:
        batch.prefetch(CALLS)
        with batch.savepoint() as tx:
            yield tx


def test_a_common_load_has_what_each_call_would_have_loaded(fleet: Store) -> None:
    with writing(fleet) as tx:
        alone = [around_machine(tx, name) for name in NAMES]
        counts = [tx.work.scheduled_user_orders(machine(name).project) for name in NAMES]
    with prefetched(fleet) as tx, counted(fleet) as asked:
        assert [around_machine(tx, name) for name in NAMES] == alone
        assert [tx.work.scheduled_user_orders(machine(name).project) for name in NAMES] == counts
        assert [tx.answers.find("alice", f"key-{name}") for name in NAMES] == [None] * len(NAMES)
    assert asked.texts == []


def test_common_changes_are_written_table_by_table(fleet: Store) -> None:
    with counted(fleet) as asked, fleet.batch() as batch:
        batch.prefetch(CALLS)
        for number, name in enumerate(("web-0", "db-0")):
            with batch.savepoint() as tx:
                announce(tx, name, number)
    assert not [text for text in asked.texts if text.startswith("SAVEPOINT")]
    assert len([text for text in asked.texts if text.startswith("INSERT INTO orders ")]) == 1
    assert {each.machine for each in everything(fleet).orders.values()} == {
        machine(name).id for name in NAMES
    }


def test_a_job_sees_the_changes_of_earlier_jobs(fleet: Store) -> None:
    with fleet.batch() as batch:
        batch.prefetch(CALLS)
        with batch.savepoint() as tx:
            before = announce(tx, "web-0", 1)
        with batch.savepoint() as tx:
            assert tx.work.scheduled_user_orders(machine("db-0").project) == 2
            after = around_machine(tx, "web-0")
            assert tx.answers.find(*key_of(answer(1))) is not None
    own = GroupName("web")
    assert sum(after.listed[own].values()) == sum(before.listed[own].values()) + 1
    assert after.groups[own].incarnation == before.groups[own].incarnation + 1
    assert len(after.orders) == len(before.orders) + 1


@pytest.mark.parametrize("failing", ["web-0", "db-0"])
def test_a_failed_job_leaves_the_others(fleet: Store, failing: str) -> None:
    with fleet.batch() as batch:
        batch.prefetch(CALLS)
        for number, name in enumerate(("web-0", "db-0")):
            with suppress(LookupError), batch.savepoint() as tx:
                announce(tx, name, number)
                if name == failing:
                    raise LookupError
    kept = {each.machine for each in everything(fleet).orders.values()}
    assert kept == {machine(name).id for name in NAMES if name != failing}
    assert [find(fleet, answer(number)) is not None for number in (0, 1)] == [
        name != failing for name in ("web-0", "db-0")
    ]


def test_a_group_changed_by_another_process_rolls_back_the_batch(fleet: Store) -> None:
    def save_over() -> None:
        with fleet.batch() as batch:
            batch.prefetch(CALLS)
            with batch.savepoint() as tx:
                tx.transaction.connection.execute(update(tables.groups).values(version=99))
            with batch.savepoint() as tx:
                announce(tx, "db-0", 1)

    with pytest.raises(Conflict, match="try again"):
        save_over()
    assert find(fleet, answer(1)) is None
