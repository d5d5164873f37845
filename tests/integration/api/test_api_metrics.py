"""Metrics: their values, and that all of them are documented."""

import asyncio
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from forewarn.core.basic_types import Action, Work
from forewarn.core.model.order import OrderTerms
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.guest.board.board import Board
from forewarn.guest.server import GuestServer
from forewarn.guest.settings import EndpointSettings
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import TEST, Service, fleet, machine
from tests.helpers.service.served import Api, app_of, sample

DOCUMENTED = Path(__file__).parents[3] / "docs/reference/metrics.md"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(sample())
    yield service
    service.close()


@pytest.fixture
def api(service: Service) -> Api:
    return Api(app_of(service))


def measured(api: Api) -> dict[str, float]:
    """Return all values by name and labels."""
    lines = (line for line in api("GET", "/metrics").text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_the_documented_metrics_are_those_of_the_server(service: Service, api: Api) -> None:
    there = set(re.findall(r"^# TYPE (forewarn_\w+)", api("GET", "/metrics").text, re.MULTILINE))
    there |= {f"forewarn_guest_{name}_total" for name in asyncio.run(guest_counters(service))}
    documented = re.findall(r"^\| `(forewarn_\w+)`", DOCUMENTED.read_text(), re.MULTILINE)
    assert sorted(there) == sorted(documented)


async def guest_counters(service: Service) -> dict[str, float]:
    """Return the counters of the guest endpoint."""
    nobody: Any = None
    board, settings = Board(lineage="x"), EndpointSettings()
    return GuestServer(board, nobody, clock=service.clock, settings=settings, new_id=service.ids).counters()


def test_holds_are_counted_by_scope(service: Service, api: Api) -> None:
    for where in ({"host": "host-1"}, {"host": "host-2"}, {}):
        api("POST", "/v1/holds", json={"reason": "x", **where})
    values = measured(api)
    reaches = {reach: values[f'forewarn_holds{{reach="{reach}"}}'] for reach in ("fleet", "project", "host")}
    assert reaches == {"fleet": 1, "project": 0, "host": 2}


def test_open_rollouts_are_counted_by_state(service: Service, api: Api) -> None:
    rollout = service.roll("host-1")
    assert measured(api)['forewarn_rollouts{state="running"}'] == 1
    api("POST", f"/v1/rollouts/{rollout.id}/pause")
    values = measured(api)
    assert values['forewarn_rollouts{state="running"}'] == 0
    assert values['forewarn_rollouts{state="paused"}'] == 1
    api("POST", f"/v1/rollouts/{rollout.id}/abort")
    assert not any(value for name, value in measured(api).items() if name.startswith("forewarn_rollouts"))


def test_a_broken_promise_is_counted_for_each_machine(service: Service, api: Api) -> None:
    service.poll("web-0")
    terms = OrderTerms(emergency="it burns", notice=timedelta(minutes=1))
    service.fleet.hosts.order_host(
        "host-1", Action.MAINTENANCE, OrderRequest(by="olga", terms=terms), work=Work.REBOOT
    )
    broken = [each for each in service.history() if each.kind == "promise-broken"]
    assert len(broken) == 2  # web-0 and web-3 in one event, spot-0 in another
    assert measured(api)["forewarn_promise_broken_total"] == 3


def test_the_age_of_the_oldest_overdue_start_is_measured(service: Service, api: Api) -> None:
    service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE)
    assert measured(api)["forewarn_oldest_overdue_start_seconds"] == 0
    api("POST", "/v1/holds", json={"reason": "x"})
    service.advance(minutes=25)
    assert measured(api)["forewarn_oldest_overdue_start_seconds"] == 600


def test_calls_are_timed_by_operation_and_class_of_status(api: Api) -> None:
    for path in ("/v1/machines", "/v1/machines/web-0", "/v1/machines/nobody", "/v1/nowhere"):
        api("GET", path)
    api("POST", "/v1/hosts/host-1/cordon")
    values = measured(api)
    counted = {
        (operation, status): values.get(
            f'forewarn_request_duration_seconds_count{{operation="{operation}",status="{status}"}}'
        )
        for operation in ("list_machines", "show_machine", "cordon_host")
        for status in ("2xx", "4xx")
    }
    assert counted == {
        ("list_machines", "2xx"): 1,
        ("list_machines", "4xx"): None,
        ("show_machine", "2xx"): 1,
        ("show_machine", "4xx"): 1,
        ("cordon_host", "2xx"): 1,
        ("cordon_host", "4xx"): None,
    }
    assert not any("nowhere" in name for name in values)


def test_transactions_of_the_store_are_timed(service: Service) -> None:
    service.order("web-0", Action.RESTART)
    before = service.store.durations.seen()
    service.orders.order_machine("web-1", Action.RESTART, TEST)
    after = service.store.durations.seen()
    assert after[("write",)].up_to[-1] == before[("write",)].up_to[-1] + 1
    assert after[("read",)] == before[("read",)]


def test_the_queries_of_a_scrape_do_not_depend_on_the_size_of_the_fleet(service: Service, api: Api) -> None:
    asked: list[str] = []
    event.listen(service.store.engines.reading, "before_cursor_execute", _noting(asked))

    def statements() -> int:
        """Count only the statements of a scrape, because other threads of the service read too."""
        counts = []
        for _ in range(3):
            asked.clear()
            measured(api)
            counts.append(len(asked))
        return min(counts)

    few = statements()
    service.apply(fleet(*(machine(f"m-{n}", f"host-{n % 3 + 1}") for n in range(60))))
    assert statements() == few


def _noting(asked: list[str]) -> object:
    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        asked.append(statement)

    return note


def test_the_oldest_overdue_start_is_found_by_an_index(service: Service) -> None:
    with service.store.read() as snapshot:
        plan = snapshot.transaction.connection.exec_driver_sql(
            "EXPLAIN QUERY PLAN SELECT not_before FROM events "
            "WHERE ended_at IS NULL AND status = 'Scheduled' ORDER BY not_before LIMIT 1"
        ).all()
    assert "INDEX events_status" in str(plan)
    assert "B-TREE" not in str(plan)


def test_the_version_is_shown(api: Api) -> None:
    assert any(name.startswith('forewarn_build_info{python="3.') for name in measured(api))
