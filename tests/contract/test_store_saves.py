"""Saving in every store: numbers, minimal writes, and counters."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import select

from forewarn.core.basic_types import GroupName, HostName, MachineState, ProjectName
from forewarn.core.errors import Conflict
from forewarn.core.model.changes import UNSAVED, Changes
from forewarn.core.model.constraints import Hold
from forewarn.core.model.project import Project
from forewarn.store import tables
from forewarn.store.store import Store
from tests.contract.samples import (
    NOW,
    changes_on,
    event,
    everything,
    group,
    machine,
    order,
    record,
    save,
    save_fleet,
    stage,
    step,
)
from tests.contract.test_store_rollouts import rollout
from tests.helpers.database.statements import Statements, counted
from tests.helpers.database.transactions import writing

HOLD = Hold(id="H", reason="heat", by="ops", at=NOW)


@pytest.fixture
def asked(store: Store) -> Iterator[Statements]:
    save_fleet(store, [machine("web-0"), machine("web-1")], hosts=["host-1", "host-2"])
    with counted(store) as statements:
        yield statements


def carried(store: Store) -> dict[str, int]:
    with store.read() as snapshot:
        query = select(tables.hosts.c.name, tables.hosts.c.carried)
        return {row[0]: row[1] for row in snapshot.transaction.connection.execute(query)}


def test_new_values_get_the_next_numbers(store: Store) -> None:
    before = save_fleet(store)
    new = {
        "orders": (replace(order(1), number=UNSAVED + 1),),
        "events": (replace(event(1), number=UNSAVED + 2),),
        "groups": (group("db", born=UNSAVED + 2),),
        "rollouts": (replace(rollout(), number=UNSAVED + 1),),
        "records": (record(UNSAVED + 1), record(UNSAVED + 2)),
    }
    with writing(store) as tx:
        saved = tx.changes.save(changes_on(tx.rules.everything(), **new))
    assert [each.number for each in saved.records] == [before + 1, before + 2]
    assert (saved.orders[0].number, saved.events[0].number) == (before + 1, before + 2)
    assert (saved.groups[0].born, saved.rollouts[0].number) == (before + 2, before + 1)
    found = everything(store)
    assert (found.number, *found.orders.values(), *found.events.values()) == (
        before + 2,
        *saved.orders,
        *saved.events,
    )


def test_a_decision_on_values_that_its_transaction_has_changed_is_refused(store: Store) -> None:
    save_fleet(store)
    with writing(store) as tx:
        first, second = tx.rules.around(), tx.rules.around()
        tx.changes.save(changes_on(first, records=(record(UNSAVED + 1), record(UNSAVED + 2))))
        with pytest.raises(Conflict, match="meanwhile"):
            tx.changes.save(changes_on(second, records=tuple(record(UNSAVED + n) for n in (1, 2, 3))))


def test_no_change_writes_nothing(store: Store, asked: Statements) -> None:
    with writing(store) as tx:
        assert tx.changes.save(changes_on(tx.rules.around())).empty
    assert [text for text in asked.texts if not text.startswith("SELECT")] == []


def test_the_metadata_of_a_batch_is_written_once(store: Store, asked: Statements) -> None:
    number = everything(store).number
    with store.batch() as batch:
        for _ in range(3):
            with batch.savepoint() as tx:
                tx.changes.save(Changes(now=NOW, records=(record(UNSAVED + 1),)))
    assert len([text for text in asked.texts if text.startswith("UPDATE meta")]) == 1
    assert everything(store).number == number + 3


def test_metadata_of_a_rolled_back_job_is_not_written(store: Store) -> None:
    number = save_fleet(store)

    def fail() -> None:
        with batch.savepoint() as tx:
            tx.changes.save(Changes(now=NOW, records=(record(UNSAVED + 1),)))
            tx.fleet_file.set_applied("undone")
            raise LookupError

    with store.batch() as batch:
        with batch.savepoint() as tx:
            tx.fleet_file.set_applied("kept")
        with pytest.raises(LookupError):
            fail()
        with batch.savepoint() as tx:
            assert (tx.fleet_file.applied(), tx.records.newest()) == ("kept", number)
    with store.read() as snapshot:
        assert (snapshot.fleet_file.applied(), snapshot.records.newest()) == ("kept", number)


# Projects and holds


def test_projects_and_holds_are_read_again_after_changes(store: Store, asked: Statements) -> None:
    def read() -> list[str]:
        with writing(store) as tx:
            around = tx.rules.around(groups=[GroupName("web")])
        return [*around.holds, *(str(each.sees_hosts) for each in around.projects.values())]

    read()
    asked.clear()
    assert read() == ["False"]
    assert [text for text in asked.texts if "FROM holds" in text or "FROM projects" in text] == []
    save(store, holds=(HOLD,))
    assert read() == ["H", "False"]
    save(store, projects=(replace(next(iter(everything(store).projects.values())), sees_hosts=True),))
    assert read() == ["H", "True"]
    save(store, removed_holds=("H",))
    assert read() == ["True"]


def test_a_rolled_back_hold_is_not_cached_even_if_another_follows(store: Store) -> None:
    save_fleet(store)

    def hold_and_fail() -> None:
        with writing(store) as tx:
            tx.changes.save(changes_on(tx.rules.around(), holds=(HOLD,)))
            assert list(tx.rules.around().holds) == ["H"]
            raise LookupError

    with pytest.raises(LookupError):
        hold_and_fail()
    save(store, holds=(replace(HOLD, id="I"),))
    with writing(store) as tx:
        assert list(tx.rules.around().holds) == ["I"]


def test_every_connection_sees_the_projects_of_its_own_snapshot(store: Store) -> None:
    save_fleet(store)
    with store.read() as before:
        assert list(before.rollouts.survey([]).projects) == ["default"]
        save(store, projects=(Project(name=ProjectName("b")),))
        assert list(before.rollouts.survey([]).projects) == ["default"]
    with store.read() as after:
        assert list(after.rollouts.survey([]).projects) == ["b", "default"]


# Counters and pairs


def test_hosts_count_the_machines_that_are_moving_to_them(store: Store) -> None:
    save_fleet(store, [machine("web-0"), machine("web-1")], hosts=["host-1", "host-2"])
    known = {each.name: each for each in everything(store).machines.values()}
    save(store, machines=(replace(known["web-0"], bound_for=HostName("host-2")), machine("web-2")))
    assert carried(store) == {"host-1": 2, "host-2": 1}
    save(store, removed_machines=(known["web-0"].id, known["web-1"].id))
    assert carried(store) == {"host-1": 1, "host-2": 0}


def test_work_on_machines_keeps_their_other_columns(store: Store, asked: Statements) -> None:
    known = list(everything(store).machines.values())
    frozen = tuple(replace(each, state=MachineState.FROZEN) for each in known)
    asked.clear()
    save(store, machines=frozen)
    assert [text for text in asked.texts if "machines" in text and not text.startswith("SELECT")] == [
        text for text in asked.texts if text.startswith("UPDATE machines SET")
    ]
    assert list(everything(store).machines.values()) == list(frozen)


def test_an_order_whose_machines_stay_writes_no_pairs(store: Store, asked: Statements) -> None:
    placed = order(1, machine=machine("web-0").id, stages=(stage(step("web-0")),))
    save(store, orders=(placed,))
    asked.clear()
    save(store, orders=(replace(placed, why="looked at"),))
    assert [text for text in asked.texts if "order_machines" in text or "order_waits" in text] == []


def test_the_events_of_several_orders_are_listed_by_creation(store: Store, asked: Statements) -> None:
    save(
        store,
        events=(event(3), event(1, order=order(2).id), event(2, ended_at=NOW), event(4, order=order(3).id)),
    )
    asked.clear()
    with store.read() as snapshot:
        found = snapshot.rollouts.events_of_orders([order(1).id.lower(), order(2).id])
    assert [each.number for each in found] == [1, 2, 3]
    assert len(asked) == 1
