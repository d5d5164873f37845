"""The stream when nothing happens, and when its client does not read."""

import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from forewarn.api.services import ApiSettings
from tests.contract.samples import record, save
from tests.helpers.database.stores import sqlite_url
from tests.helpers.programs.follower import Follower
from tests.helpers.programs.process import operator_client, until
from tests.helpers.service.harness import Service
from tests.helpers.service.served import app_of, sample, serving

# More than the socket buffers of a local connection hold.
MANY = 40_000


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(sqlite_url(tmp_path))
    service.apply(sample())
    yield service
    service.close()


def test_a_heartbeat_advances_past_filtered_records(service: Service) -> None:
    app = app_of(service, settings=ApiSettings(heartbeat=0.05))
    with serving(app) as url, Follower(url, "?kind=clock-jumped") as follower:
        with operator_client(url) as api:
            assert api.post("/v1/machines/web-0/freeze").status_code == 202
        follower.wait_for(service.records.newest())
        assert follower.records == []


def test_a_stream_is_closed_when_its_client_reads_nothing(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    first = service.records.newest() + 1
    save(service.store, records=tuple(record(first + n, reason="x" * 200) for n in range(MANY)))
    with serving(app_of(service, settings=ApiSettings(patience=0.1))) as url:
        place = urlsplit(url)
        with socket.create_connection((place.hostname, place.port)) as idle:
            idle.sendall(f"GET /v1/stream?since=0 HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
            until(lambda: "closed a stream" in caplog.text, what="the stream to be closed")
