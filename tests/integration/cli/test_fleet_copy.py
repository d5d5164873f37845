"""`forewarn watch` requests only the watched part of the fleet."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from forewarn.cli.live.fleet_copy import FleetCopy, WatchFilter
from forewarn.client.calls import OperatorClient
from forewarn.core.basic_types import Action, Work
from forewarn.core.model.record import Record
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.wire.answers.record_answers import RecordAnswer
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.counts import seeds
from tests.helpers.service.harness import Service, fleet
from tests.helpers.service.served import app_of, sample, serving
from tests.histories.followed_histories import FollowedHistories
from tests.histories.situations import Reached


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(sample())
    yield service
    service.close()


class RecordingApp:
    """An app that records the requested paths."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.calls: list[tuple[str, dict[str, str]]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = {name: values[0] for name, values in parse_qs(scope["query_string"].decode()).items()}
        self.calls.append((scope["path"], query))
        await self._app(scope, receive, send)

    def about_machines(self) -> list[tuple[str, dict[str, str]]]:
        return [(path, query) for path, query in self.calls if path.startswith("/v1/machines")]


@pytest.fixture
def asked(service: Service) -> RecordingApp:
    return RecordingApp(app_of(service))


@pytest.fixture
def client(asked: RecordingApp) -> Iterator[OperatorClient]:
    with serving(asked) as url:
        yield OperatorClient(url)


@pytest.mark.parametrize("filters", [{"group": "web"}, {"host": "host-1"}, {"project": "default"}])
def test_only_watched_machines_are_read(
    asked: RecordingApp, client: OperatorClient, filters: dict[str, str]
) -> None:
    copy = FleetCopy(client, WatchFilter(**filters))
    copy.check()
    copy.load()
    assert copy.machines
    for path, query in asked.about_machines():
        assert (path, query | filters) == ("/v1/machines", query)


def test_a_change_to_another_group_is_not_read(
    service: Service, asked: RecordingApp, client: OperatorClient
) -> None:
    copy = FleetCopy(client, WatchFilter(group="web"))
    copy.load()
    before = len(service.history())
    for name in ("db", "web-0"):
        service.put(name, tags={"changed": "yes"})
    asked.calls.clear()
    copy.take([RecordAnswer.of(record) for record in service.history()[before:]])
    assert [path for path, _ in asked.about_machines()] == ["/v1/machines/web-0"]


def test_an_open_rollout_is_shown_however_many_have_ended_since(
    service: Service, client: OperatorClient
) -> None:
    old = service.roll("host-1")
    service.rollouts.pause(old.id, by="test")
    for _ in range(60):
        service.rollouts.abort(service.roll("host-2").id, by="test")
    copy = FleetCopy(client, WatchFilter())
    copy.load()
    assert copy.rollouts is not None
    assert [each.id for each in copy.rollouts] == [old.id]


def test_resources_removed_during_the_watch_disappear(service: Service, client: OperatorClient) -> None:
    copy = FleetCopy(client, WatchFilter(group="web"))
    service.order("web-0", Action.FREEZE)
    copy.load()
    assert (len(copy.machines), len(copy.events)) == (6, 1)
    service.apply(fleet())
    copy.load()
    assert (copy.machines, copy.events) == ({}, [])


def test_an_expired_reason_is_read_again_without_a_record(service: Service, client: OperatorClient) -> None:
    service.roll("host-1", "host-2", gap=timedelta(hours=1))
    service.advance(minutes=30)
    service.fleet.hosts.hold(OrderRequest(by="test", reason="a freeze"), project=None, host=None)
    copy = FleetCopy(client, WatchFilter())
    copy.load()
    assert "waits for the gap after wave 1" in reasons(copy)
    before = len(service.history())
    service.advance(hours=1)
    assert len(service.history()) == before
    copy.on_idle()
    assert "waits for the gap after wave 1" not in reasons(copy)


def reasons(copy: FleetCopy) -> str:
    return "; ".join(wait.reason for rollout in copy.rollouts or () for wait in rollout.waiting)


def test_open_orders_on_hosts_are_known(service: Service, client: OperatorClient) -> None:
    service.order("db", Action.FREEZE)
    open_ = service.host_order("host-1", Action.MAINTENANCE, Work.FREEZE).order
    copy = FleetCopy(client, WatchFilter())
    copy.load()
    assert [order.id for order in copy.orders] == [open_.id]
    service.advance(hours=1)
    copy.load()
    assert copy.orders == []


class CopiedHistories(FollowedHistories):
    """Compare a copy that follows the records with a copy that reads everything, over random histories."""

    def __init__(self, seed: int, reached: Reached) -> None:
        super().__init__(seed, reached)
        self.client: OperatorClient
        self._copy: FleetCopy | None = None

    def follow(self, records: Sequence[Record]) -> None:
        fresh = FleetCopy(self.client, WatchFilter())
        fresh.load()
        if self._copy is None:
            self._copy = fresh
            return
        if records:
            self._copy.take([RecordAnswer.of(record) for record in records])
        for name, settled in SETTLED.items():
            assert settled(getattr(self._copy, name)) == settled(getattr(fresh, name)), name


# An incarnation has the topic of its events. Other values change by themselves as time passes.
SETTLED: Mapping[str, Callable[[Any], Any]] = {
    "machines": lambda machines: machines,
    "groups": lambda groups: {name: replace(each, incarnation=0) for name, each in groups.items()},
    "hosts": lambda hosts: hosts,
    "unreachable": lambda hosts: hosts,
    "simulated": lambda hosts: hosts,
    "holds": lambda holds: holds,
    "events": lambda events: [replace(each, armed_at=None) for each in events],
    "rollouts": lambda rollouts: [(each.id, each.state, each.hosts_done) for each in rollouts],
    "orders": lambda orders: [(each.id, each.state) for each in orders],
}


def test_a_copy_that_follows_the_records_equals_the_answers_of_the_server() -> None:
    for seed in seeds(1, long=50):
        history = CopiedHistories(seed, Reached({}))
        with serving(app_of(history.service)) as url, OperatorClient(url).keeping_connection() as client:
            history.client = client
            try:
                history.play()
            finally:
                history.close()
