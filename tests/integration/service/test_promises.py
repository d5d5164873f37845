"""Promises are counted when an event ends, and the counts outlast the records."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from forewarn.control.engine.pruning import RecordPruning
from forewarn.core.basic_types import EXTERNAL, Action, Work
from forewarn.core.errors import Unavailable
from forewarn.core.model.order import OrderTerms
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.store.writes.saving import ChangeSaving
from forewarn.wire.answers.record_answers import PromiseAnswer
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import TEST, Service, fleet, group, machine
from tests.helpers.service.served import Api, app_of, check_page
from tests.helpers.service.tenants import A_USER, OPERATOR, bearer, let_in, two_projects

OUTSIDE = replace(TEST, driver=EXTERNAL)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    members = (machine(f"web-{n}", "host-1", group="web") for n in range(3))
    service.apply(fleet(group("web"), *members))
    service.poll("web-0")
    yield service
    service.close()


def counted(service: Service) -> list[tuple[Any, ...]]:
    found, _ = service.views.promises(month=None, after=None, limit=100)
    return [(each.month, each.simulated, each.kept, each.late, each.never, each.broken) for each in found]


def complete(service: Service) -> None:
    """Report all work as done, and advance the clock until its events are over."""
    for order in list(service.everything().orders):
        service.orders.complete_order(order, by="test")
    service.advance(minutes=2)


def maintain(service: Service, request: OrderRequest = OUTSIDE) -> None:
    service.fleet.hosts.order_host("host-1", Action.MAINTENANCE, request, work=Work.FREEZE)
    service.tick()


def test_every_machine_is_counted_once_when_its_event_ends(service: Service) -> None:
    maintain(service)
    service.fetch("web-0")
    service.advance(minutes=5)
    service.fetch("web-1")
    service.advance(minutes=10)
    assert counted(service) == []
    complete(service)
    assert counted(service) == [("2026-01", False, 2, 0, 1, 0)]
    service.advance(minutes=10)
    service.tick()
    assert counted(service) == [("2026-01", False, 2, 0, 1, 0)]


def test_the_month_is_that_of_the_end(service: Service) -> None:
    service.advance(days=26, hours=11, minutes=44)  # sixteen minutes before February
    maintain(service)
    service.fetch("web-0", "web-1", "web-2")
    service.advance(minutes=15)
    complete(service)
    assert counted(service) == [("2026-02", False, 3, 0, 0, 0)]


def test_simulated_events_are_counted_separately(service: Service) -> None:
    maintain(service, TEST)
    service.advance(minutes=20)
    assert counted(service) == [("2026-01", True, 0, 0, 3, 0)]


def test_withdrawn_events_and_events_without_notice_are_not_counted(service: Service) -> None:
    placed = service.order("web-0", Action.RESTART)
    service.orders.cancel_order(placed.order.id, by="test")
    service.host_order("host-1", Action.FAIL)
    assert counted(service) == []


def test_a_broken_promise_is_counted_beside_the_delivered_notice(service: Service) -> None:
    terms = OrderTerms(emergency="coolant leak", notice=timedelta(minutes=2))
    maintain(service, replace(OUTSIDE, terms=terms))
    assert counted(service) == [("2026-01", False, 0, 0, 0, 1)]
    service.fetch("web-0", "web-1", "web-2")
    service.advance(minutes=2)
    complete(service)
    assert counted(service) == [("2026-01", False, 3, 0, 0, 1)]


def test_counts_stay_when_records_are_removed(service: Service) -> None:
    maintain(service, TEST)
    service.advance(minutes=20)
    before = counted(service)
    assert before != []
    service.advance(days=90)
    pruning = RecordPruning(service.context, keep=timedelta(days=30))
    while pruning.prune(service.clock.now()):
        pass
    assert len(service.history()) == 1
    assert counted(service) == before


def test_a_failed_save_of_an_end_is_counted_once_it_succeeds(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    maintain(service, TEST)
    service.fetch("web-0", "web-1", "web-2")
    save = ChangeSaving.save

    def fail_after(saving: Any, changes: Any) -> None:
        save(saving, changes)
        if changes.promises:
            raise Unavailable("the disk is gone")

    with monkeypatch.context() as broken:
        broken.setattr(ChangeSaving, "save", fail_after)
        with pytest.raises(Unavailable):
            service.advance(minutes=20)
    assert counted(service) == []
    service.advance(minutes=20)
    assert counted(service) == [("2026-01", True, 3, 0, 0, 0)]


def test_a_project_sees_only_its_own_promises(tmp_path: Path) -> None:
    service = Service(sqlite_url(tmp_path))
    service.apply(two_projects())
    let_in(service)
    service.poll("a-0")
    service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    service.advance(minutes=20)
    api = Api(app_of(service))

    def asked(secret: str, query: str = "") -> list[tuple[str, int]]:
        answer = api("GET", f"/v1/promises{query}", headers=bearer(secret)).json()
        check_page(PromiseAnswer, answer)
        return [(each["project"], each["judged"]) for each in answer["promises"]]

    assert asked(OPERATOR) == [("a", 1), ("b", 1)]
    assert asked(A_USER) == asked(OPERATOR, "?project=a") == [("a", 1)]
    assert asked(OPERATOR, "?month=2026-01&limit=1") == [("a", 1)]
    assert asked(OPERATOR, "?month=2026-02") == []
    refused = api("GET", "/v1/promises?month=January", headers=bearer(OPERATOR))
    assert (refused.status_code, "month: expected a month such as 2026-11" in refused.text) == (400, True)
    service.close()
