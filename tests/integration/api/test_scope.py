"""What a caller can reach: reads that are made for its scope, and transactions of it."""

import asyncio
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import get_type_hints

import pytest

from forewarn.api.app import ENDPOINTS
from forewarn.api.inputs import OpenedBy, Reach
from forewarn.api.services import ApiDependencies, Services
from forewarn.control.all_use_cases import FleetReads
from forewarn.control.naming import narrowed
from forewarn.control.use_case import Reading, ScopedReading, UseCase
from forewarn.core.access import RIGHTS, Role
from forewarn.core.errors import NotFound, Refused
from forewarn.core.scope import EVERYTHING, Scope
from forewarn.server.threads.inventories import Listings
from forewarn.store.batch import ScopedTransaction, Transaction
from forewarn.store.snapshots import ScopedSnapshot, Snapshot
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
from tests.helpers.service.served import Health, Nobody, Worker
from tests.helpers.service.tenants import A, B, two_projects

WRITING = (ScopedTransaction, Transaction)
# What a project's snapshot gives of others: numbers alone, and what the rules need to decide.
NO_PROJECTS_OWN = {
    *("rules.around", "records.newest", "records.pruning", "work.absences"),
    *("webhooks.count", "work.scheduled_user_orders"),
}
# Of things that were found by the others.
OF_WHAT_WAS_FOUND = {
    *("work.projects_of_events", "work.simulated_events"),
    *("work.notices", "work.deferrals"),
}
# What must not be shown: `control/disclosing.py` asks for it, and nothing else may.
LOOKED_UP_TO_HIDE = {"fleet.names_among"}
FOUND_BY_PROJECT = {
    *("fleet.machine", "fleet.machines", "fleet.summary", "fleet.last_seen", "fleet.group", "fleet.groups"),
    *("fleet.host", "fleet.hosts", "fleet.project", "fleet.projects", "fleet.page_of_projects"),
    *("fleet.names_like", "fleet.stopped", "fleet.unreachable_hosts"),
    *("work.order", "work.orders", "work.event", "work.events", "work.events_of_order"),
    *("work.listed_events", "work.promises"),
    *("records.history", "records.following", "records.count_following", "webhooks.find", "webhooks.page"),
}
# What a project's transaction changes: what was decided, and what was found or made for it.
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
            pushing=Nobody(),
            timekeeper=service.time,
            probes=Health(),
            inventories=Listings(service.drivers),
        ),
        scope,
    )


def use_cases(of: object) -> dict[str, Reading | ScopedReading]:
    return {name: each for name, each in vars(of).items() if isinstance(each, Reading | ScopedReading)}


@pytest.mark.parametrize("scope", [EVERYTHING, Scope(caller=A), EVERYTHING.narrowed(B)])
def test_what_a_caller_changes_it_changes_in_a_transaction_of_its_scope(
    service: Service, scope: Scope
) -> None:
    async def opened() -> tuple[type, Scope]:
        return await services(service, scope).run(lambda tx: (type(tx), tx.scope))

    kind = Transaction if scope.project is None else ScopedTransaction
    assert asyncio.run(opened()) == (kind, scope)


def test_a_transaction_on_everything_is_refused_to_a_projects_people(service: Service) -> None:
    async def open_it(scope: Scope) -> type:
        return await services(service, scope).run_whole(type)

    assert asyncio.run(open_it(EVERYTHING)) is Transaction
    with pytest.raises(Refused, match="the people of project a see it alone"):
        asyncio.run(open_it(Scope(caller=A)))


def test_a_call_that_a_projects_people_may_make_never_has_a_transaction_on_everything() -> None:
    theirs = [route for route in ENDPOINTS if route.right in RIGHTS[Role.USER]]
    reaches = {
        route.operation: each.reach
        for route in theirs
        for each in route.inputs.values()
        if isinstance(each, OpenedBy)
    }
    assert {name for name, reach in reaches.items() if reach is not Reach.CALLER} == {"begin_session"}
    assert {"restart_machine", "approve_event", "cancel_order", "add_webhook"} <= reaches.keys()


@pytest.mark.parametrize("scope", [EVERYTHING, Scope(caller=A), EVERYTHING.narrowed(B)])
def test_what_a_caller_reads_is_made_for_its_scope_and_cannot_write(service: Service, scope: Scope) -> None:
    reached = use_cases(services(service, scope).reads)
    assert reached.keys() == {"views", "records", "webhooks", "rehearsals"}
    for each in reached.values():
        assert isinstance(each, ScopedReading)
        assert not isinstance(each, UseCase)
        assert each.scope == scope


def test_what_takes_no_transaction_and_is_of_no_scope_is_out_of_reach_of_a_projects_token(
    service: Service,
) -> None:
    mine = services(service, Scope(caller=A))
    for name in ("fleet", "answering", "timekeeper", "inventories"):
        with pytest.raises(Refused, match="the people of project a see it alone"):
            getattr(mine, name)
        assert getattr(services(service, EVERYTHING), name) is not None


def test_what_belongs_to_no_project_is_read_by_who_sees_everything(service: Service) -> None:
    with pytest.raises(Refused, match="the people of project a see it alone"):
        _ = services(service, Scope(caller=A)).reads.fleet
    reached = services(service, EVERYTHING).reads.fleet
    for name in FleetReads.__dataclass_fields__.keys() - {"unsaved_holds"}:  # those are no store's
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


# What a transaction has beside its parts.
NO_PARTS = {"scope", "lock", "narrowed", "scoped", "savepoint", "after_commit"}


def parts_of(opened: type) -> dict[str, cached_property[object]]:
    """Return the parts of a snapshot or a transaction, by name."""
    names = (name for name in dir(opened) if not name.startswith("_") and name not in NO_PARTS)
    return {name: getattr(opened, name) for name in names}


def reached_in(opened: type) -> set[str]:
    """Name all that can be asked of a snapshot or a transaction, by its parts."""
    parts = parts_of(opened)
    return {
        f"{name}.{asked}"
        for name, part in parts.items()
        for asked in dir(get_type_hints(part.func)["return"])
        if not asked.startswith("_")
    }


def test_each_read_of_a_projects_snapshot_is_known_to_leave_out_what_is_not_its_own() -> None:
    read = NO_PROJECTS_OWN | OF_WHAT_WAS_FOUND | LOOKED_UP_TO_HIDE | FOUND_BY_PROJECT
    assert reached_in(ScopedSnapshot) == read
    assert reached_in(ScopedTransaction) == read | CHANGED_FOR_PROJECT
    unscoped = reached_in(Snapshot) - read
    known = {"tokens.page", "rollouts.page", "rules.everything", "feed.since", "metrics.counts", "due.orders"}
    assert known <= unscoped


@pytest.mark.parametrize("opened", [ScopedSnapshot, ScopedTransaction, Snapshot, Transaction])
def test_a_snapshot_keeps_each_of_its_parts(service: Service, opened: type) -> None:
    with service.store.read() as snapshot:
        transaction = snapshot.transaction
        made = opened(None, transaction) if issubclass(opened, WRITING) else opened(transaction)
        for name, declared in parts_of(opened).items():
            assert isinstance(declared, cached_property)
            part = getattr(made, name)
            assert type(part) is get_type_hints(declared.func)["return"]
            assert getattr(made, name) is part
