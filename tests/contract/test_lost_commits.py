"""Commits of the engine whose answer is lost and that succeed later, on PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from forewarn.core.basic_types import Action, OrderState, Work
from forewarn.core.errors import Unavailable, Uncertain
from forewarn.store.batch import Batch
from tests.helpers.service.harness import Service, fleet, group, machine


@contextmanager
def answer_lost(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Lose the answer to the commit that starts an order; return its connection, before the commit."""
    commit, close = Batch.commit, Batch.close
    under_way: list[Any] = []

    def lose(batch: Batch) -> None:
        orders = [order for each in batch.state.saved for order in each.changes.orders]
        if under_way or not any(order.state is OrderState.STARTED for order in orders):
            commit(batch)
            return
        batch.write_rest()
        assert batch.connection is not None
        under_way.append(batch.connection.connection.dbapi_connection)
        raise Uncertain("the answer is lost")

    def leave(batch: Batch) -> None:
        connection = batch.connection
        if under_way and connection and connection.connection.dbapi_connection is under_way[0]:
            kept.append((batch.connecting, connection))
            batch.connecting = batch.connection = None
        close(batch)

    kept: list[Any] = []
    with monkeypatch.context() as patched:
        patched.setattr(Batch, "commit", lose)
        patched.setattr(Batch, "close", leave)
        yield under_way


def test_a_stage_is_carried_out_even_if_the_commit_of_its_start_succeeds_after_its_answer_was_lost(
    migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Service(migrated_postgres_url)
    service.apply(fleet(group("web"), machine("web-0", "host-1", group="web")))
    service.poll("web-0")
    service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    service.advance(minutes=14, seconds=59)
    service.clock.set(service.clock.now() + timedelta(seconds=1))
    with answer_lost(monkeypatch) as under_way:
        with pytest.raises(Uncertain):
            service.tick()
        with pytest.raises(Unavailable):
            service.order_work.tell_drivers(
                service.clock.now()
            )  # it cannot know yet which steps have started
    under_way[0].commit()
    service.tick()
    assert [name for _, name, _ in service.driver.begun] == ["web-0"]
    service.close()
