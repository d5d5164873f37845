"""The worker alone saves, so what it alone uses needs no lock: the feed, the engine, and how time passes."""

import asyncio
import threading
from pathlib import Path

import httpx

from forewarn.config import Settings
from forewarn.server.wiring import PreparedServer, drivers_of, prepare_server, wire
from forewarn.store.saved import Saved
from tests.helpers.service.racing import PATIENCE

FLEET = {
    "defaults": {"driver": "simulated"},
    "hosts": {"host-1": {}, "host-2": {}},
    "machines": [{"name": "web-0", "host": "host-1", "address": "127.0.0.1"}],
}
CALLS = (
    ("PUT", "/v1/fleet", FLEET),
    ("POST", "/v1/machines/web-0/redeploy", {}),
    ("POST", "/v1/clock/advance", {"seconds": 3600}),
    ("POST", "/v1/rollouts", {"hosts": "all", "action": "freeze"}),
    ("POST", "/v1/clock/advance", {"seconds": 3600}),
    ("POST", "/v1/holds", {"reason": "not now"}),
)


def test_whatever_callers_and_drivers_do_is_saved_and_handed_on_by_the_worker(tmp_path: Path) -> None:
    settings = Settings(database=f"sqlite:///{tmp_path / 'f.db'}", clock="manual")
    opened = prepare_server(settings, drivers_of(settings))
    saved_on, worker = asyncio.run(_called(opened))
    opened.close()
    assert len(saved_on) >= len(CALLS)
    assert set(saved_on) == {worker}


async def _called(opened: PreparedServer) -> tuple[list[int], int]:
    """Make calls; return the threads that told what was saved, and the worker's."""
    saved_on: list[int] = []
    parts = wire(opened)
    tell = opened.store.saved

    def told(saved: Saved) -> None:
        saved_on.append(threading.get_ident())
        tell(saved)

    opened.store.saved = told
    await parts.guest.start([])
    parts.worker.start()
    parts.lanes.start()
    try:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=parts.app), base_url="http://127.0.0.1", timeout=PATIENCE
        ) as client:
            for method, path, body in CALLS:
                answer = await client.request(method, path, json=body)
                assert answer.is_success, answer.text
            assert (await client.get("/v1/machines/web-0")).json()["machine"]["host"] == "host-2"
    finally:
        await parts.guest.stop()
        for each in (parts.reads, parts.lanes, parts.worker):
            await asyncio.to_thread(each.stop)
    return saved_on, parts.worker.thread
