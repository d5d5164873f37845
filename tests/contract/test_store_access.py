"""Tokens, and the limits of what a project sees."""

from datetime import timedelta
from operator import attrgetter
from typing import Any

import pytest

from forewarn.core.access import Role, Token
from forewarn.core.basic_types import GroupKind, GroupName, HostName, OrderState, ProjectName
from forewarn.core.errors import NotFound
from forewarn.core.filters import HistoryFilter, OrderFilter
from forewarn.core.model.project import Project
from forewarn.core.model.record import Record
from forewarn.core.scope import Scope
from forewarn.store.opening.schema import any_token
from forewarn.store.store import Store
from tests.contract.samples import NOW, event, event_id, group, machine, order, order_id, save, save_fleet
from tests.contract.test_store_lists import pages
from tests.helpers.database.transactions import writing, writing_as

A, B = ProjectName("a"), ProjectName("b")


def token(number: int, **more: Any) -> Token:
    defaults: dict[str, Any] = {
        "name": f"token-{number}",
        "role": Role.USER,
        "project": A,
        "digest": f"{number:064x}",
        "created_at": NOW,
        "created_by": "test",
    }
    return Token(number=number, **defaults | more)


def keep(store: Store, *tokens: Token) -> None:
    with writing(store) as tx:
        for each in tokens:
            tx.tokens.save(each)


# Tokens


def test_tokens_come_back_as_they_were_saved_in_their_order(store: Store) -> None:
    whole = token(3, role=Role.OPERATOR, project=None, expires_at=NOW + timedelta(days=1), revoked_at=NOW)
    keep(store, whole, token(1), token(2))
    assert pages(store, "tokens.page", limit=2) == [[token(1), token(2)], [whole]]


def test_a_revoked_token_is_not_in_force(store: Store) -> None:
    keep(store, token(1), token(2))
    keep(store, token(1, revoked_at=NOW))
    with store.read() as snapshot:
        assert snapshot.tokens.in_force() == [token(2)]


def test_a_store_with_only_revoked_tokens_has_had_tokens(store: Store) -> None:
    with store.read() as snapshot:
        assert not snapshot.tokens.any()
    keep(store, token(1, revoked_at=NOW))
    with store.read() as snapshot:
        assert snapshot.tokens.any()
        assert snapshot.tokens.in_force() == []


def test_the_existence_of_tokens_is_known_without_opening_the_store(store_at_url: Store, url: str) -> None:
    assert not any_token(url)
    keep(store_at_url, token(1))
    assert any_token(url)


def test_a_missing_database_has_no_token_and_is_not_created(url: str, tmp_path: Any) -> None:
    assert not any_token(url)
    assert not any_token(f"sqlite:///{tmp_path / 'none.db'}")
    assert list(tmp_path.iterdir()) == []


# The view of a project


@pytest.fixture
def shared(store: Store) -> Store:
    """Two projects with equal names on one host, and orders for each and for the host."""
    save_fleet(
        store,
        [
            machine("web-0", id="a0", project=A, group=GroupName("a-web")),
            machine("web-1", id="a1", project=A, group=GroupName("a-web")),
            machine("web-0", id="b0", project=B, group=GroupName("b-web")),
        ],
    )
    save(
        store,
        projects=(Project(name=A), Project(name=B)),
        groups=(
            group("a-web", project=A),
            group("b-web", project=B),
            group("a-alone", project=A, kind=GroupKind.STANDALONE),
        ),
        orders=(
            order(1, project=A),
            order(2, project=B),
            order(3, project=None, host=HostName("host-1")),
            order(4, project=A, state=OrderState.DONE, ended_at=NOW),
            order(5, project=A),
        ),
        records=tuple(
            Record(number=number, at=NOW, kind="event-scheduled", project=project)
            for number, project in enumerate((A, B, None, A, A, B), start=1)
        ),
        events=(
            event(1, group=GroupName("a-web")),
            event(2, group=GroupName("b-web")),
            event(4, group=GroupName("gone"), ended_at=NOW),
            event(5, group=GroupName("a-web")),
            # Its group belonged to b at the announcement, and belongs to a now.
            event(6, group=GroupName("a-web"), ended_at=NOW),
        ),
    )
    return store


def listed(store: Store, name: str, project: ProjectName | None, *, limit: int = 1, **more: Any) -> list[Any]:
    found, after = [], None
    while True:
        with store.scoped(Scope(caller=project)).read() as snapshot:
            page, after = attrgetter(name)(snapshot)(after=after, limit=limit, **more)
        found += page
        if after is None:
            return found


def test_the_lists_of_a_project_have_only_its_own_values(shared: Store) -> None:
    for limit in (1, 2, 10):
        machines = listed(shared, "fleet.machines", A, limit=limit)
        assert [each.id for each in machines] == ["a0", "a1"]
        assert [each.name for each in listed(shared, "fleet.groups", A, limit=limit)] == ["a-web"]
        orders = listed(shared, "work.orders", A, limit=limit)
        assert [each.number for each in orders] == [5, 4, 1]
        assert [each.number for each in listed(shared, "work.events", A, limit=limit)] == [1, 5]
    assert len(listed(shared, "fleet.machines", None)) == 3
    assert len(listed(shared, "work.events", None)) == 3


def test_the_orders_of_a_project_can_be_filtered_by_state(shared: Store) -> None:
    done = listed(shared, "work.orders", A, wanted=OrderFilter(state=OrderState.DONE))
    assert [each.number for each in done] == [4]


def test_a_project_finds_its_own_machine_even_if_another_has_the_same_name(shared: Store) -> None:
    with shared.scoped(Scope(caller=B)).read() as snapshot:
        assert snapshot.fleet.machine("web-0", project=None).project == B
        assert snapshot.fleet.machine("web-0", project=B).project == B
        for name, project in (("web-0", A), ("web-1", None)):
            with pytest.raises(NotFound):
                snapshot.fleet.machine(name, project=project)


def test_values_of_other_projects_do_not_exist_for_a_project(shared: Store) -> None:
    with shared.scoped(Scope(caller=B)).read() as snapshot:
        assert snapshot.fleet.group(GroupName("a-web")) is None
        assert snapshot.fleet.group(GroupName("b-web")) is not None
        assert [each.name for each in snapshot.fleet.projects()] == [B]
        found = [number for number in range(1, 6) if snapshot.work.order(order_id(number)) is not None]
        assert found == [2]
        assert [number for number in range(1, 7) if snapshot.work.event(event_id(number))] == [2, 6]


def test_a_past_event_belongs_to_the_project_it_was_announced_to(shared: Store) -> None:
    with shared.scoped(Scope(caller=A)).read() as snapshot:
        assert [number for number in range(1, 7) if snapshot.work.event(event_id(number))] == [1, 4, 5]


def test_the_history_of_a_project_has_only_its_own_records_for_every_filter(shared: Store) -> None:
    with shared.scoped(Scope(caller=A)).read() as snapshot:
        assert [each.number for each in snapshot.records.history(HistoryFilter())] == [5, 4, 1]
        assert [each.number for each in snapshot.records.history(HistoryFilter(below=5, limit=1))] == [4]
        assert snapshot.records.history(HistoryFilter(project=B)) == []


def test_a_transaction_finds_what_a_snapshot_would(shared: Store) -> None:
    with writing_as(shared, Scope(caller=B)) as tx:
        assert tx.work.order(order_id(1)) is None
        assert tx.work.order(order_id(2)) is not None


def test_the_rules_load_complete_values(shared: Store) -> None:
    with shared.scoped(Scope(caller=B)).read() as snapshot:
        assert len(snapshot.rules.around(hosts=[HostName("host-1")]).machines) == 3


def test_a_project_keeps_the_events_of_its_orders_after_their_records_are_removed(
    shared: Store,
) -> None:
    with writing(shared) as tx:
        tx.records.remove(range(1, 7))
    with shared.scoped(Scope(caller=A)).read() as snapshot:
        assert 4 in [each.number for each in snapshot.work.events_of_order(order_id(1))]
    with shared.scoped(Scope(caller=B)).read() as snapshot:
        assert snapshot.work.events_of_order(order_id(1)) == []
