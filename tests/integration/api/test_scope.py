"""Reads and transactions are limited to the scope of their caller."""

import asyncio
from collections.abc import Iterator
from inspect import getattr_static
from pathlib import Path
from typing import Any

import pytest

from forewarn.api.app import ENDPOINTS
from forewarn.api.inputs import TransactionInput, TransactionScope
from forewarn.api.services import ApiDependencies, Services
from forewarn.control.all_use_cases import FleetReads
from forewarn.control.naming import narrowed
from forewarn.control.use_case import Reading, ScopedReading, UseCase
from forewarn.core.access import RIGHTS, Role
from forewarn.core.errors import NotFound, Refused
from forewarn.core.scope import EVERYTHING, Scope
from forewarn.server.threads.inventories import DriverInventories
from forewarn.store.batch import ScopedTransaction, Transaction
from forewarn.store.snapshots import ScopedSnapshot, Snapshot, SnapshotPart
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
from tests.helpers.service.served import Health, NoDeliveries, Worker
from tests.helpers.service.tenants import A, B, two_projects

WRITING = (ScopedTransaction, Transaction)
# Queries of a project's snapshot that see others: only numbers, and what the rules need to decide.
NO_PROJECTS_OWN = {
    *("rules.around", "records.newest", "records.pruning", "work.absences"),
    *("webhooks.count", "work.scheduled_user_orders"),
}
# Queries about resources that other queries have found.
OF_WHAT_WAS_FOUND = {
    *("work.projects_of_events", "work.simulated_events"),
    *("work.notices", "work.deferrals"),
}
# Names to hide. Only `control/disclosing.py` may use this query.
LOOKED_UP_TO_HIDE = {"fleet.names_among"}
FOUND_BY_PROJECT = {
    *("fleet.machine", "fleet.machines", "fleet.summary", "fleet.last_seen", "fleet.group", "fleet.groups"),
    *("fleet.host", "fleet.hosts", "fleet.project", "fleet.projects", "fleet.page_of_projects"),
    *("fleet.names_like", "fleet.stopped", "fleet.unreachable_hosts"),
    *("work.order", "work.orders", "work.event", "work.events", "work.events_of_order"),
    *("work.listed_events", "work.promises"),
    *("records.history", "records.following", "records.count_following", "webhooks.find", "webhooks.page"),
}
# Changes that a project's transaction can make.
CHANGED_FOR_PROJECT = {
    *("changes.save", "changes.save_notices", "rehearsals.save"),
    *("webhooks.save", "webhooks.remove"),
}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(two_projects())
    yield service
    service.close()


def services(service: Service, scope: Scope) -> Services:
    return Services(
        ApiDependencies(
            use_cases=service.use_cases,
            run=Worker(service),
            run_for=lambda _: Worker(service),
            read=Worker(service).read,
            read_for=lambda *_: Worker(service).read,
            pushing=NoDeliveries(),
            timekeeper=service.time,
            probes=Health(),
            inventories=DriverInventories(service.drivers),
        ),
        scope,
    )


def use_cases(of: object) -> dict[str, Reading | ScopedReading]:
    return {name: each for name, each in vars(of).items() if isinstance(each, Reading | ScopedReading)}


@pytest.mark.parametrize("scope", [EVERYTHING, Scope(caller=A), EVERYTHING.narrowed(B)])
def test_changes_run_in_a_transaction_with_the_callers_scope(service: Service, scope: Scope) -> None:
    async def opened() -> tuple[type, Scope]:
        return await services(service, scope).run(lambda tx: (type(tx), tx.scope))

    kind = Transaction if scope.project is None else ScopedTransaction
    assert asyncio.run(opened()) == (kind, scope)


def test_a_transaction_on_everything_is_refused_to_users_of_projects(service: Service) -> None:
    async def open_it(scope: Scope) -> type:
        return await services(service, scope).run_whole(type)

    assert asyncio.run(open_it(EVERYTHING)) is Transaction
    with pytest.raises(Refused, match="limited to project a"):
        asyncio.run(open_it(Scope(caller=A)))


def test_endpoints_for_users_of_projects_have_no_transaction_on_everything() -> None:
    theirs = [route for route in ENDPOINTS if route.right in RIGHTS[Role.USER]]
    scopes = {
        route.operation: each.scope
        for route in theirs
        for each in route.inputs.values()
        if isinstance(each, TransactionInput)
    }
    wider = {name for name, scope in scopes.items() if scope is not TransactionScope.CALLER}
    assert wider == {"begin_session", "end_session"}
    assert {"restart_machine", "approve_event", "cancel_order", "add_webhook"} <= scopes.keys()


@pytest.mark.parametrize("scope", [EVERYTHING, Scope(caller=A), EVERYTHING.narrowed(B)])
def test_reads_have_the_callers_scope_and_cannot_write(service: Service, scope: Scope) -> None:
    reached = use_cases(services(service, scope).reads)
    assert reached.keys() == {"views", "records", "webhooks", "rehearsals"}
    for each in reached.values():
        assert isinstance(each, ScopedReading)
        assert not isinstance(each, UseCase)
        assert each.scope == scope


def test_services_without_a_scope_are_refused_to_users_of_projects(
    service: Service,
) -> None:
    mine = services(service, Scope(caller=A))
    for name in ("fleet", "answering", "timekeeper", "inventories"):
        with pytest.raises(Refused, match="limited to project a"):
            getattr(mine, name)
        assert getattr(services(service, EVERYTHING), name) is not None


def test_reads_of_the_fleet_need_access_to_everything(service: Service) -> None:
    with pytest.raises(Refused, match="limited to project a"):
        _ = services(service, Scope(caller=A)).reads.fleet
    reached = services(service, EVERYTHING).reads.fleet
    for name in FleetReads.__dataclass_fields__.keys() - {"unsaved_holds"}:  # they are not in the store
        each = getattr(reached, name)
        assert isinstance(each, Reading)
        assert not isinstance(each, UseCase)


def test_an_operator_who_narrows_the_scope_stays_an_operator(service: Service) -> None:
    reads = services(service, EVERYTHING).reads.narrowed(A)
    assert reads.scope == Scope(caller=None, asked=A)
    assert {view.machine.project for view in reads.views.machines(after=None, limit=10)[0]} == {A}
    assert service.transact(lambda tx: narrowed(tx, A).scope) == Scope(caller=None, asked=A)


def test_a_scope_is_never_widened(service: Service) -> None:
    reads = services(service, Scope(caller=A)).reads
    assert reads.narrowed(A).scope.project == A
    with pytest.raises(NotFound, match=r'^project "b" does not exist'):
        reads.narrowed(B)
    with pytest.raises(NotFound, match=r'^project "b" does not exist'):
        service.transact(lambda tx: narrowed(tx.scoped(Scope(caller=A)), B))
    with pytest.raises(ValueError, match="b"):
        service.transact(lambda tx: tx.scoped(Scope(caller=A)).narrowed(B))


def parts_of(opened: type) -> list[str]:
    """Name the parts of a snapshot or a transaction."""
    return [name for name in dir(opened) if isinstance(getattr_static(opened, name), SnapshotPart)]


def make(service: Service, opened: type) -> Any:
    with service.store.read() as snapshot:
        transaction = snapshot.transaction
        return opened(None, transaction) if issubclass(opened, WRITING) else opened(transaction)


def queries_of(made: object) -> set[str]:
    """Name all public queries and changes of a snapshot or a transaction."""
    return {
        f"{name}.{query}"
        for name in parts_of(type(made))
        for query in dir(getattr(made, name))
        if not query.startswith("_") and callable(getattr(type(getattr(made, name)), query, None))
    }


def test_each_query_of_a_projects_snapshot_is_limited_to_its_project(service: Service) -> None:
    read = NO_PROJECTS_OWN | OF_WHAT_WAS_FOUND | LOOKED_UP_TO_HIDE | FOUND_BY_PROJECT
    assert queries_of(make(service, ScopedSnapshot)) == read
    assert queries_of(make(service, ScopedTransaction)) == read | CHANGED_FOR_PROJECT
    unscoped = queries_of(make(service, Snapshot)) - read
    known = {"tokens.page", "rollouts.page", "rules.everything", "feed.since", "metrics.counts", "due.orders"}
    assert known <= unscoped


@pytest.mark.parametrize("opened", [ScopedSnapshot, ScopedTransaction, Snapshot, Transaction])
def test_a_snapshot_keeps_each_of_its_parts(service: Service, opened: type) -> None:
    made = make(service, opened)
    for name in parts_of(opened):
        assert getattr(made, name) is getattr(made, name)
