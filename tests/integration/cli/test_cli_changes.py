"""The command line follows a server: by the stream, by polling if that is refused, and across errors."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from forewarn.cli.live.change_stream import ChangeStream, LinkState, Record, Refresher, parse_blocks
from forewarn.client.calls import OperatorClient
from forewarn.client.replies import RequestRefused, ServerUnreachable
from forewarn.core.basic_types import Action
from forewarn.wire.answers.order_answers import OrderOnMachineAnswer
from tests.helpers.database.stores import sqlite_url
from tests.helpers.programs.process import until
from tests.helpers.service.harness import Service
from tests.helpers.service.served import app_of, sample, serving


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(sample())
    yield service
    service.recent.close()
    service.close()


class StreamApp:
    """An app that answers requests for the stream as the test chooses."""

    def __init__(self, app: ASGIApp, status: int) -> None:
        self._app = app
        self.status = status

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != "/v1/stream" or not self.status:
            await self._app(scope, receive, send)
            return
        body = json.dumps({"error": {"code": "No", "message": "not for you"}}).encode()
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        await send({"type": "http.response.body", "body": body})


def read_records(changes: ChangeStream) -> list[Record]:
    return list(changes.wait(0.5).records)


def opened(changes: ChangeStream) -> bool:
    return until(lambda: changes.wait(0.5).opened, what="the link")


def test_records_are_yielded_as_they_happen(service: Service) -> None:
    app = app_of(service)
    with serving(app) as url, ChangeStream(OperatorClient(url)) as changes:
        opened(changes)
        assert changes.link is LinkState.LIVE
        OperatorClient(url).post("/v1/machines/web-0/freeze", OrderOnMachineAnswer)
        first, *_ = until(lambda: read_records(changes), what="records")
        assert first.value.kind == "order-placed"
        service.recent.close()


def test_a_refused_stream_is_replaced_by_polling(service: Service) -> None:
    with serving(StreamApp(app_of(service), 403)) as url, ChangeStream(OperatorClient(url)) as changes:
        opened(changes)
        assert changes.link is LinkState.POLLING
        for _ in range(2):
            placed = service.order("web-0", Action.FREEZE).order
            records = until(lambda: read_records(changes), what="records")
            assert {each.value.order for each in records} == {placed.id}
            service.orders.cancel_order(placed.id, by="test")
            until(lambda: read_records(changes), what="the end of it")


def test_an_unavailable_server_is_retried(service: Service) -> None:
    refusing = StreamApp(app_of(service), 503)
    with serving(refusing) as url, ChangeStream(OperatorClient(url)) as changes:
        until(lambda: changes.link is LinkState.LOST, what="the trouble")
        assert changes.trouble == "not for you"
        refusing.status = 0
        opened(changes)
        assert changes.link is LinkState.LIVE
        service.recent.close()


def test_any_other_refusal_is_raised(service: Service) -> None:
    def ask() -> bool:
        return not changes.wait(0.5)

    with (
        serving(StreamApp(app_of(service), 401)) as url,
        ChangeStream(OperatorClient(url)) as changes,
        pytest.raises(RequestRefused, match="not for you"),
    ):
        until(ask, what="the refusal")


def test_a_failed_read_is_repeated(service: Service) -> None:
    tries: list[bool] = []

    def load() -> None:
        tries.append(True)
        if len(tries) == 1:
            raise ServerUnreachable("gone")

    with serving(app_of(service)) as url, ChangeStream(OperatorClient(url)) as changes:
        current = Refresher(changes, load=load, take=lambda _: None)
        until(lambda: current.wait(0.2) or current.trouble == "gone", what="the trouble")
        assert current.link is LinkState.LOST
        until(lambda: current.wait(0.2) or current.link is LinkState.LIVE, what="the second try")
        assert len(tries) == 2
        service.recent.close()


def test_a_truncated_block_is_dropped() -> None:
    lines = ["id: 7", ": a comment", 'data: {"number":7}', "", "id: 8", "data: {"]
    assert list(parse_blocks(lines)) == [{"id": "7", "data": '{"number":7}'}]
