"""Idempotent responses, and nested transactions."""

from datetime import timedelta
from typing import Any

import pytest

from forewarn.core.basic_types import ProjectName
from forewarn.core.scope import Scope
from forewarn.store.batch import Transaction
from forewarn.store.queries.callers import SavedAnswer
from forewarn.store.store import Store
from tests.contract.samples import NOW
from tests.contract.test_store_access import token
from tests.helpers.database.transactions import holding, writing

SECOND = timedelta(seconds=1)


def answer(number: int, **more: Any) -> SavedAnswer:
    defaults: dict[str, Any] = {
        "caller": "olga (operator)",
        "key": f"{number:064x}",
        "request": "f" * 64,
        "status": 202,
        "salt": f"salt {number}",
        "body": bytes(range(256)),
        "saved_at": NOW + number * SECOND,
    }
    return SavedAnswer(**defaults | more)


def keep(to: Store | Transaction, *answers: SavedAnswer) -> None:
    with writing(to) as tx:
        for each in answers:
            tx.answers.save(each)


def find(store: Store, wanted: SavedAnswer) -> SavedAnswer | None:
    with store.read() as snapshot:
        return snapshot.answers.find(wanted.caller, wanted.key)


def key_of(each: SavedAnswer) -> tuple[str, str]:
    return each.caller, each.key


# Responses


def test_an_answer_comes_back_as_it_was_saved_to_its_caller(store: Store) -> None:
    large, others = answer(2, body=None), answer(1, caller="anna (user of a)", status=200)
    keep(store, answer(1), large, others)
    assert [find(store, each) for each in (answer(1), large, others)] == [answer(1), large, others]
    assert find(store, answer(3)) is None
    assert find(store, answer(2, caller="anna (user of a)")) is None


def test_a_later_answer_to_the_same_key_replaces_the_first(store: Store) -> None:
    later = answer(1, status=201, body=b"", saved_at=NOW + 9 * SECOND)
    keep(store, answer(1), later)
    assert find(store, answer(1)) == later


def test_old_answers_are_listed_oldest_first_and_removed(store: Store) -> None:
    keep(store, answer(3), answer(1), answer(2))
    with writing(store) as tx:
        old = tx.answers.old(NOW + 3 * SECOND, limit=10)
        assert old == [key_of(answer(1)), key_of(answer(2))]
        assert tx.answers.old(NOW + 3 * SECOND, limit=1) == old[:1]
        tx.answers.remove(old)
    assert [find(store, answer(number)) for number in (1, 2, 3)] == [None, None, answer(3)]


def test_the_surplus_of_a_caller_is_its_oldest_responses(store: Store) -> None:
    others = [answer(number, caller="anna (user of a)") for number in range(3)]
    keep(store, *(answer(number) for number in range(5)), *others)
    with store.read() as snapshot:
        surplus = snapshot.answers.surplus("olga (operator)", keep=3, limit=10)
        assert sorted(surplus) == [key_of(answer(0)), key_of(answer(1))]
        assert len(snapshot.answers.surplus("olga (operator)", keep=0, limit=2)) == 2
        assert snapshot.answers.surplus("olga (operator)", keep=5, limit=10) == []


# Nested transactions


def save_in_parts(tx: Transaction) -> None:
    with tx.savepoint() as part:
        part.tokens.save(token(1))
    tx.scoped(Scope(caller=ProjectName("a"))).changes.save_notices({})
    keep(tx, answer(1))


def test_nested_transactions_are_saved_with_the_outer_one(store: Store) -> None:
    with writing(store) as tx:
        save_in_parts(tx)
        assert tx.tokens.in_force() == [token(1)]
    assert find(store, answer(1)) == answer(1)


def test_a_snapshot_sees_committed_values_and_a_transaction_also_its_own(store: Store) -> None:
    with writing(store) as tx:
        tx.answers.save(answer(1))
        assert tx.answers.find(*key_of(answer(1))) == answer(1)
        assert find(store, answer(1)) is None


def fail_after(*_: object) -> None:
    raise LookupError


def test_nested_transactions_are_rolled_back_with_the_outer_one(store: Store) -> None:
    with pytest.raises(LookupError), writing(store) as tx:
        fail_after(save_in_parts(tx))
    assert find(store, answer(1)) is None
    with store.read() as snapshot:
        assert not snapshot.tokens.any()


def test_a_nested_transaction_that_raises_is_rolled_back_alone(store: Store) -> None:
    with writing(store) as tx:
        keep(tx, answer(1))
        with pytest.raises(LookupError), tx.savepoint() as part:
            fail_after(part.answers.save(answer(2)))
        tx.answers.save(answer(3))
    assert [find(store, answer(number)) is None for number in (1, 2, 3)] == [False, True, False]


def test_after_the_outer_transaction_the_next_one_is_independent(store: Store) -> None:
    with holding(store):
        pass
    with pytest.raises(LookupError), writing(store) as tx:
        fail_after(tx.answers.save(answer(1)))
    assert find(store, answer(1)) is None
