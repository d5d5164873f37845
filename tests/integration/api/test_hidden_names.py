"""A name of another project costs as many statements and rows as an unknown name."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from forewarn.core.basic_types import Action
from tests.helpers.database.statements import counted, listening
from tests.helpers.database.stores import sqlite_url
from tests.helpers.service.harness import Service
from tests.helpers.service.served import Api, app_of
from tests.helpers.service.tenants import A_USER, bearer, let_in, two_projects
from tests.helpers.service.working import WorkerByHand

NOBODYS_ID = "602D9444-D2CD-49C7-8624-8643E7171297"
BY_MACHINE = (
    *(
        f"POST /v1/machines/{{}}/{action}"
        for action in ("restart", "redeploy", "freeze", "terminate", "start")
    ),
    *(f"{method} /v1/machines/{{}}" for method in ("GET", "PUT", "DELETE")),
    *(f"GET /v1/{noun}?machine={{}}" for noun in ("orders", "events", "history", "stream")),
    "GET /v1/events?all=true&machine={}",
)
BY_GROUP = ("GET /v1/groups/{}", "GET /v1/machines?group={}", "GET /v1/history?group={}")
BY_ORDER = (
    *("GET /v1/orders/{}", "GET /v1/history?order={}"),
    *(
        f"POST /v1/orders/{{}}/{verb}"
        for verb in ("cancel", "retry", "abandon", "complete", "fail", "heartbeat")
    ),
)
BY_EVENT = (
    *("GET /v1/events/{}", "GET /v1/history?event={}"),
    *("POST /v1/events/{}/approve", "POST /v1/events/{}/cancel"),
)
BY_WEBHOOK = ("GET /v1/webhooks/{}", "DELETE /v1/webhooks/{}", "POST /v1/webhooks/{}/test")
BY_PROJECT = ("GET /v1/projects/{}", "GET /v1/machines?project={}", "GET /v1/projects/{}/rehearsal")


class World:
    """A service with a machine, an order, an event and a webhook of another project."""

    def __init__(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        self.service = service
        self.worker = WorkerByHand(service, monkeypatch)
        self.api = Api(app_of(service, worker=self.worker))
        order = service.order("b-0", Action.RESTART).order
        self.ids = {
            "order": order.id,
            "event": service.events("b-0")[0].id,
            "webhook": self._webhook(),
        }

    def _webhook(self) -> str:
        body = {"url": "https://example.org/b"}
        answer = self.api("POST", "/v1/webhooks", json=body, headers=bearer("fw_secret-5"))
        found: str = answer.json()["webhook"]["id"]
        return found

    def asked(self, call: str, name: str) -> Any:
        """Return the answer to a user of project a, and the statements of the store."""
        method, path = call.format(name).split()
        body = {"why": "x"} if path.endswith("/fail") else {}
        rows = 0

        def noted(_: Any, row: Any) -> Any:
            nonlocal rows
            rows += 1
            return row

        def begun(connection: Connection) -> None:
            connection.connection.dbapi_connection.row_factory = noted  # type: ignore[union-attr]

        engines = self.service.store.engines
        hooks = [(engine, "begin", begun) for engine in {engines.writing, engines.reading}]
        with listening(hooks), counted(self.service.store) as seen:
            answer = self.api(method, path, json=None if method == "GET" else body, headers=bearer(A_USER))
        said = re.sub(rf"\b{name}\b", "NAME", answer.text, flags=re.IGNORECASE)
        return answer.status_code, said, seen.texts, seen.reads, seen.writes, rows


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    service = Service(sqlite_url(tmp_path))
    service.apply(two_projects())
    let_in(service)
    service.poll("b-0")
    yield World(service, monkeypatch)
    service.close()


def check(world: World, call: str, theirs: str, nobodys: str) -> None:
    world.asked(call, nobodys)  # the token is loaded before the count
    asked = world.asked(call, theirs)
    assert asked == world.asked(call, nobodys)
    assert asked[0] in (403, 404), asked[1]


@pytest.mark.parametrize("call", BY_MACHINE)
def test_a_machine_of_another_project_is_unknown(world: World, call: str) -> None:
    check(world, call, "b-0", "c-0")


@pytest.mark.parametrize("call", BY_GROUP)
def test_a_group_of_another_project_is_unknown(world: World, call: str) -> None:
    check(world, call, "b-web", "c-web")


@pytest.mark.parametrize("call", BY_PROJECT)
def test_another_project_is_unknown(world: World, call: str) -> None:
    check(world, call, "b", "c")


@pytest.mark.parametrize(
    ("what", "call"),
    [
        *(("order", call) for call in BY_ORDER),
        *(("event", call) for call in BY_EVENT),
        *(("webhook", call) for call in BY_WEBHOOK),
    ],
)
def test_resources_of_another_project_are_unknown(world: World, what: str, call: str) -> None:
    check(world, call, world.ids[what], NOBODYS_ID)


def test_records_of_a_removed_machine_are_visible_to_its_project(world: World) -> None:
    mine = bearer(A_USER)
    world.service.poll("a-0")
    order = world.api("POST", "/v1/machines/a-0/restart", json={}, headers=mine).json()
    world.service.advance(minutes=20)
    world.service.delete("a-0")
    for what, wanted in (("orders", order["order"]["id"]), ("events", order["event"]["id"])):
        path = f"/v1/{what}?machine=A-0" + ("&all=true" if what == "events" else "")
        found = world.api("GET", path, headers=mine).json()[what]
        assert [each["id"] for each in found] == [wanted]
    records = world.api("GET", "/v1/history?machine=a-0", headers=mine).json()["records"]
    assert {"order-placed", "event-scheduled", "event-finished"} <= {each["kind"] for each in records}
